#include "onnx/model_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ir/print.h"
#include "model_builder.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test.
class ModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tenon_model_file_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  std::string load_error(const fs::path& path) {
    std::string text = error_of([&] { onnx::load_model(path); });
    // The folder's name differs from run to run.
    for (size_t at; (at = text.find(folder_.string() + "/")) != std::string::npos;)
      text.erase(at, folder_.string().size() + 1);
    return text;
  }
  fs::path folder_;
};

ModelBuilder small_model() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("batch"), 3});
  b.initializer("w", Tensor({3, 2}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}));
  b.node("MatMul", {"x", "w"}, {"y"}, "dense");
  b.output("y", ir::Type::tensor(ElementType::float32, SymbolicShape{Dim::symbol("batch"), 2}));
  return b;
}

TEST_F(ModelFile, WhatIsNotOnnxIsNamed) {
  struct Case {
    std::string content, text;
  } cases[] = {
      {"", "not-onnx: 'm.onnx': this is not an ONNX model: it looks like an empty file"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
       "not-onnx: 'm.onnx': this is not an ONNX model: it looks like a Git LFS pointer, not the file itself (run 'git "
       "lfs pull')"},
      {"<!DOCTYPE html><html><body>404</body></html>",
       "not-onnx: 'm.onnx': this is not an ONNX model: it looks like a web page, such as a download's error page"},
      {std::string("PK\x03\x04") + "abcdef",
       "not-onnx: 'm.onnx': this is not an ONNX model: it looks like a zip archive"},
      {std::string("PK\x03\x04") + std::string(26, '\0') + "m/code/__torch__.py",
       "not-onnx: 'm.onnx': this is not an ONNX model: it looks like a TorchScript archive (export it to ONNX with "
       "torch.onnx.export)"},
      {std::string("\x10\0\0\0\0\0\0\0", 8) + "{\"w\":{\"dtype\":\"F32\"}}",
       "not-onnx: 'm.onnx': this is not an ONNX model: it looks like a safetensors file: weights without a graph"},
      {std::string("\x08\x01\x12\x20", 4) + "\x0a\x05serve\x12\x08saver_defVarHandleOp",
       "not-onnx: 'm.onnx': this is not an ONNX model: it looks like a TensorFlow SavedModel (convert it with "
       "tf2onnx)"},
      {"\x08\x0a", "not-onnx: 'm.onnx': this is not an ONNX model: it has no graph"},
  };
  for (const Case& c : cases) EXPECT_EQ(load_error(write("m.onnx", c.content)), c.text);
}

TEST_F(ModelFile, MissingFile) {
  EXPECT_EQ(load_error(folder_ / "none.onnx"), "missing-file: cannot open 'none.onnx': No such file or directory");
  fs::create_directory(folder_ / "sub");
  EXPECT_EQ(load_error(folder_ / "sub"), "missing-file: 'sub' is a folder\n  hint: name the .onnx file in it");
}

TEST_F(ModelFile, TruncatedSaysWhere) {
  std::string bytes = small_model().bytes();
  EXPECT_EQ(load_error(write("m.onnx", bytes.substr(0, bytes.size() - 3))),
            "truncated: 'm.onnx': field 8 at byte 125 announces 4 bytes, 1 are left\n"
            "  hint: the file is incomplete: copy or download it again");
  // Every cut gives an error or, at a field's end, a model without its last fields; never anything else.
  for (size_t size = 1; size < bytes.size(); ++size) load_error(write("m.onnx", bytes.substr(0, size)));
}

TEST_F(ModelFile, SavingIsTheInverse) {
  ModelBuilder b = small_model();
  b.model().metadata = {{"author", "me"}};
  b.model().other_fields = std::string("\xa2\x06\x03", 3) + "abc";  // field 100, unknown
  b.graph().quantization_annotations.push_back({"y", {{"SCALE_TENSOR", "s"}}});
  b.graph().nodes().front().set_attribute(ir::Attribute("subgraph", b.graph().clone()));
  std::string first = b.bytes();
  auto model = onnx::parse_model(std::as_bytes(std::span(first)), nullptr);
  std::string second = onnx::serialize_model(*model);
  EXPECT_EQ(first, second);
  EXPECT_EQ(model->metadata, b.model().metadata);
  EXPECT_EQ(ir::to_text(*model), ir::to_text(b.model()));
}

void make_external(ir::Graph& graph) {
  for (ir::Value* value : graph.initializers()) {
    auto constant = std::make_shared<ir::Constant>(*value->constant());
    constant->storage = ir::Constant::Storage::external;
    graph.set_initializer(*value, ir::ConstantPtr(std::move(constant)));
  }
}

TEST_F(ModelFile, ExternalData) {
  ModelBuilder b = small_model();
  b.initializer("v", Tensor({2}, {7.0f, 8.0f}));
  make_external(b.graph());
  onnx::save_model(b.model(), folder_ / "m.onnx");
  EXPECT_TRUE(fs::exists(folder_ / "m.onnx.data"));
  auto model = onnx::load_model(folder_ / "m.onnx");
  EXPECT_TRUE(
      identical(model->graph->initializers()[0]->constant()->tensor, b.graph().initializers()[0]->constant()->tensor));
  EXPECT_TRUE(
      identical(model->graph->initializers()[1]->constant()->tensor, b.graph().initializers()[1]->constant()->tensor));

  fs::resize_file(folder_ / "m.onnx.data", 20);
  EXPECT_EQ(load_error(folder_ / "m.onnx"),
            "missing-external-data: external data of 2 tensors cannot be used:\n"
            "  tensor 'w' in 'm.onnx.data': needs bytes 0 to 24, the file has 20\n"
            "  tensor 'v' in 'm.onnx.data': needs bytes 4096 to 4104, the file has 20\n"
            "  hint: put the named files beside the model, complete and under these names");
  fs::remove(folder_ / "m.onnx.data");
  EXPECT_EQ(load_error(folder_ / "m.onnx"),
            "missing-external-data: external data of 2 tensors cannot be used:\n"
            "  tensor 'w' in 'm.onnx.data': cannot open 'm.onnx.data': No such file or directory\n"
            "  tensor 'v' in 'm.onnx.data': cannot open 'm.onnx.data': No such file or directory\n"
            "  hint: put the named files beside the model, complete and under these names");
}

// A TensorProto "w", float [2], external at `location`.
std::string model_with_location(const std::string& location) {
  auto field = [](int number, const std::string& content) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) + content;
  };
  std::string entry = field(13, field(1, "location") + field(2, location));
  std::string tensor = std::string("\x08\x02\x10\x01", 4) + field(8, "w") + entry + std::string("\x70\x01", 2);
  return std::string("\x08\x0a", 2) + field(7, field(5, tensor) + field(2, "g"));
}

TEST_F(ModelFile, ExternalDataStaysInTheFolder) {
  fs::create_directories(folder_ / "outside");
  fs::create_directories(folder_ / "models");
  std::ofstream(folder_ / "outside" / "data") << "12345678";
  auto error = [&](const std::string& location) {
    return load_error(write("models/m.onnx", model_with_location(location)));
  };
  std::string start = "missing-external-data: external data of 1 tensor cannot be used:\n  tensor 'w' in '";
  std::string end = "\n  hint: put the named files beside the model, complete and under these names";
  EXPECT_EQ(error("../outside/data"),
            start + "../outside/data': leaves the model's folder with '..', which is refused" + end);
  EXPECT_EQ(error("/etc/passwd"), start + "/etc/passwd': has an absolute path, which is refused" + end);
  fs::create_symlink(folder_ / "outside" / "data", folder_ / "models" / "link");
  EXPECT_EQ(error("link"), start + "link': links to 'outside/data' outside the model's folder, which is refused" + end);
  EXPECT_EQ(error(""), start + "': has an empty location" + end);
  fs::create_directories(folder_ / "models" / "sub");
  std::ofstream(folder_ / "models" / "sub" / "data") << "12345678";
  EXPECT_EQ(error("sub/data"), "");
}

TEST_F(ModelFile, LinksIntoAFolderOfBlobsLoad) {
  // As in Hugging Face's cache: model and data are links into one folder.
  fs::create_directories(folder_ / "blobs");
  fs::create_directories(folder_ / "snapshots" / "main");
  std::ofstream(folder_ / "blobs" / "aa", std::ios::binary) << model_with_location("w.data");
  std::ofstream(folder_ / "blobs" / "bb") << "12345678";
  fs::create_symlink("../../blobs/aa", folder_ / "snapshots" / "main" / "m.onnx");
  fs::create_symlink("../../blobs/bb", folder_ / "snapshots" / "main" / "w.data");
  EXPECT_EQ(load_error(folder_ / "snapshots" / "main" / "m.onnx"), "");
}

TEST_F(ModelFile, TensorsMustHoldWhatTheyDeclare) {
  auto field = [](int number, const std::string& content) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) + content;
  };
  auto error = [&](const std::string& tensor) {
    return load_error(write("m.onnx", std::string("\x08\x0a", 2) + field(7, field(5, tensor + field(8, "w")))));
  };
  EXPECT_EQ(error(std::string("\x08\x02\x10\x01", 4) + field(9, "1234")),
            "invalid-model, tensor 'w': shape [2] of float needs 8 bytes, 4 are there");
  EXPECT_EQ(error(std::string("\x08\x02\x10\x07", 4) + field(7, "\x01")),
            "invalid-model, tensor 'w': shape [2] needs 2 stored values, 1 are there");
  EXPECT_EQ(error(std::string("\x08\x02\x10\x63", 4)), "invalid-model, tensor 'w': element type 99 is unknown");
  EXPECT_EQ(error(std::string("\x08\x02\x10\x09", 4) + field(9, "\x01\x02")),
            "invalid-model, tensor 'w': element 1 of a bool tensor is stored as 2; it must be 0 or 1");
  std::string huge = std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10);
  EXPECT_EQ(
      error(huge + huge + std::string("\x10\x01", 2) + field(9, "1234")),
      "overflow, tensor 'w': shape [9223372036854775807, 9223372036854775807] has more elements than fit in 64 bits");
}

TEST_F(ModelFile, FilesOverFourGigabytesLoad) {
  // A hole in the file stands for the zeros of one tensor of 5 GB, so that neither disk nor memory is needed.
  constexpr int64_t size = int64_t{5} << 30;
  auto varint = [](uint64_t value) {
    std::string out;
    for (; value > 127; value >>= 7) out += static_cast<char>(value | 128);
    return out + static_cast<char>(value);
  };
  std::string tensor = "\x08" + varint(size / 4) + "\x10\x01" + "\x42\x01w" + "\x4a" + varint(size);
  std::string graph = "\x2a" + varint(tensor.size() + size) + tensor;
  std::string rest = "\x3a" + varint(graph.size() + size) + graph;
  // Aligned data becomes a view; a doc string of the right length sees to that.
  std::string padding(4 - (rest.size() % 4), 'x');
  std::string model = "\x08\x0a\x32" + varint(padding.size()) + padding + rest;
  ASSERT_EQ(model.size() % 4, 0u);
  fs::path path = write("large.onnx", model);
  fs::resize_file(path, model.size() + size);
  auto loaded = onnx::load_model(path);
  const Tensor& w = loaded->graph->initializers()[0]->constant()->tensor;
  EXPECT_EQ(w.elements(), size / 4);
  EXPECT_EQ(w.data<float>().back(), 0);
}

TEST_F(ModelFile, ASecondGraphReplacesTheFirst) {
  ModelBuilder b;
  b.initializer("w", Tensor(ElementType::float32, Shape{2000}));
  b.node("Relu", {"w"}, {"y"});
  b.output("y");
  std::string twice = b.bytes() + b.bytes();
  auto model = onnx::parse_model(std::as_bytes(std::span(twice)), nullptr);
  EXPECT_EQ(model->graph->initializers().size(), 1u);
}

}  // namespace
}  // namespace tenon
