#include "session/compiled_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/cpu_features.h"
#include "model_builder.h"
#include "tenon/compile.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

Tensor weights(const Shape& shape, float scale = 1) {
  Tensor result(ElementType::float32, shape);
  std::span<float> numbers = result.mutable_data<float>();
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = scale * std::sin(static_cast<float>(i));
  return result;
}

// Convolutions, one of them for Winograd's, a depthwise one, a product and a table.
std::string model(float scale = 1) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("batch"), 16, 12, 12});
  b.initializer("w1", weights({32, 16, 3, 3}, scale)).initializer("b1", weights({32}));
  b.initializer("w2", weights({32, 1, 3, 3})).initializer("w3", weights({24, 32, 1, 1}));
  b.initializer("m", weights({24, 10}))
      .initializer("table", weights({100, 10}))
      .initializer("axes", Tensor({2}, {int64_t{2}, int64_t{3}}));
  b.initializer("index", Tensor({3}, {int64_t{5}, int64_t{7}, int64_t{99}}));
  b.node("Conv", {"x", "w1", "b1"}, {"c1"}, "first").set_attribute({"pads", std::vector<int64_t>{1, 1, 1, 1}});
  b.node("Relu", {"c1"}, {"r1"}, "rectify");
  b.node("Conv", {"r1", "w2"}, {"c2"}, "deep").set_attribute({"group", int64_t{32}});
  b.node("Conv", {"c2", "w3"}, {"c3"}, "narrow");
  b.node("ReduceMean", {"c3", "axes"}, {"mean"}, "pool").set_attribute({"keepdims", int64_t{0}});
  b.node("MatMul", {"mean", "m"}, {"scores"}, "score");
  b.node("Gather", {"table", "index"}, {"rows"}, "look_up");
  b.node("ReduceSum", {"rows"}, {"sum"}, "sum_rows").set_attribute({"keepdims", int64_t{0}});
  b.node("Add", {"scores", "sum"}, {"y"}, "together");
  b.output("y");
  b.model().producer_name = "a test";
  b.model().metadata.emplace_back("key", "value");
  return b.bytes();
}

class CompiledFiles : public testing::Test {
 protected:
  CompiledFiles() : folder_(fs::temp_directory_path() / ("tenon_compiled_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    write(onnx_, model());
  }
  ~CompiledFiles() override { fs::remove_all(folder_); }

  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path.string() + ".new", std::ios::binary) << bytes;
    fs::rename(path.string() + ".new", path);
  }
  static std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  std::string load_error(const SessionOptions& options = {}) const {
    return error_of([&] { Session::load(compiled_, options); });
  }

  fs::path folder_, onnx_ = folder_ / "m.onnx", compiled_ = folder_ / "m.tenon";
};

Tensor run(const Session& session) { return session.run({{"x", weights({2, 16, 12, 12})}}).at("y").tensor(); }

TEST_F(CompiledFiles, AreWhatTheModelIs) {
  for (auto [level, memory] : {std::pair(OptimizationLevel::all, MemoryUse::normal),
                               {OptimizationLevel::none, MemoryUse::normal},
                               {OptimizationLevel::basic, MemoryUse::low}}) {
    SessionOptions options;
    options.level = level;
    options.memory = memory;
    compile(onnx_, compiled_, options);
    const Session expected = Session::load(onnx_, options), actual = Session::load(compiled_, options);
    EXPECT_TRUE(identical(run(actual), run(expected)));
    EXPECT_EQ(actual.model().producer_name, "a test");
    EXPECT_EQ(actual.model().metadata, expected.model().metadata);
    EXPECT_EQ(actual.model().opsets, expected.model().opsets);
    EXPECT_EQ(actual.notes(), expected.notes());
    EXPECT_EQ(actual.rewrites().size(), expected.rewrites().size());
    EXPECT_EQ(actual.memory().weights, expected.memory().weights);
    ASSERT_EQ(actual.inputs().size(), expected.inputs().size());
    EXPECT_EQ(actual.inputs()[0].shape, expected.inputs()[0].shape);
    EXPECT_EQ(actual.outputs()[0].shape, expected.outputs()[0].shape);
    ASSERT_EQ(actual.placement().size(), expected.placement().size());
    for (size_t i = 0; i < actual.placement().size(); ++i) {
      EXPECT_EQ(actual.placement()[i].node, expected.placement()[i].node);
      EXPECT_EQ(actual.placement()[i].kernel, expected.placement()[i].kernel);
      EXPECT_EQ(actual.placement()[i].flops, expected.placement()[i].flops);
    }
  }
}

TEST_F(CompiledFiles, SayWhatIsInThem) {
  const CompiledModelInfo info = compile(onnx_, compiled_);
  EXPECT_EQ(info.bytes, static_cast<int64_t>(fs::file_size(compiled_)));
  EXPECT_GT(info.packed, 2);
  EXPECT_GT(info.packed_bytes, 32 * 16 * 9 * 4);
  EXPECT_EQ(info.model, fs::absolute(onnx_));
  const CompiledModelInfo checked = check_compiled(compiled_);
  EXPECT_EQ(checked.packed_bytes, info.packed_bytes);
  EXPECT_EQ(checked.nodes, info.nodes);
}

TEST_F(CompiledFiles, ErrorsNameNodesAsTheFileOfTheModelDoes) {
  compile(onnx_, compiled_);
  Tensor x(ElementType::float32, Shape{1, 16, 1, 1});
  const auto text = [&](const fs::path& path) { return error_of([&] { Session::load(path).run({{"x", x}}); }); };
  EXPECT_NE(text(onnx_), "");
  EXPECT_EQ(text(compiled_), text(onnx_));
}

TEST_F(CompiledFiles, OptionsOfTheFileHoldUnlessOthersAreAskedFor) {
  SessionOptions basic, none;
  basic.level = OptimizationLevel::basic;
  none.level = OptimizationLevel::none;
  compile(onnx_, compiled_, basic);
  EXPECT_EQ(Session::load(compiled_, basic).notes(), std::vector<std::string>{});
  EXPECT_EQ(Session::load(compiled_).notes(), std::vector<std::string>{"the model was compiled with level 'basic'"});
  const Session other = Session::load(compiled_, none);
  ASSERT_EQ(other.notes().size(), 1u);
  EXPECT_EQ(other.notes()[0],
            "'" + compiled_.string() +
                "' cannot be used: it was compiled with level 'basic', the session asks for 'none'; loaded '" +
                onnx_.string() + "' instead");
  EXPECT_TRUE(other.rewrites().empty());
  fs::remove(onnx_);
  EXPECT_EQ(load_error(none), "stale-file: '" + compiled_.string() +
                                  "' cannot be used: it was compiled with level 'basic', the session asks for 'none'\n"
                                  "  hint: compile the model again: tenon compile");
  EXPECT_EQ(load_error(basic), "");
}

TEST_F(CompiledFiles, AreStaleWhenTheModelChanges) {
  compile(onnx_, compiled_);
  const Tensor before = run(Session::load(compiled_));
  fs::last_write_time(onnx_, fs::last_write_time(onnx_) + std::chrono::seconds(5));
  EXPECT_TRUE(Session::load(compiled_).notes().empty()) << "the contents are the same";
  write(onnx_, model(2));
  const Session changed = Session::load(compiled_);
  ASSERT_EQ(changed.notes().size(), 1u);
  EXPECT_NE(changed.notes()[0].find("'" + onnx_.string() + "' has changed since it was compiled"), std::string::npos);
  EXPECT_FALSE(identical(run(changed), before));
  EXPECT_NE(error_of([&] { check_compiled(compiled_); }).find("stale-file: '"), std::string::npos);
}

TEST_F(CompiledFiles, AreForOneInstructionSet) {
  const std::vector<Isa> isas = available_isas(cpu_features());
  if (isas.size() < 2) GTEST_SKIP() << "there is only one here";
  compile(onnx_, compiled_);
  fs::remove(onnx_);
  const ScopedIsa other(isas[0]);
  EXPECT_NE(
      load_error().find("stale-file: '" + compiled_.string() + "' cannot be used: it was compiled for kernels for "),
      std::string::npos);
}

TEST_F(CompiledFiles, CannotHoldWhatIsTheUsersOwn) {
  SessionOptions given;
  given.initializers.emplace("m", weights({24, 10}));
  EXPECT_EQ(error_of([&] { compile(onnx_, compiled_, given); }),
            "unsupported: a compiled file cannot hold tensors in place of initializers");
  compile(onnx_, compiled_);
  EXPECT_NE(Session::load(compiled_, given).notes().at(0).find("brings tensors in place of initializers"),
            std::string::npos);
  EXPECT_NE(error_of([&] { compile(compiled_, folder_ / "n.tenon"); }).find("is compiled already"), std::string::npos);
  EXPECT_NE(error_of([&] { compile(onnx_, onnx_); }).find("is the model itself"), std::string::npos);
}

TEST_F(CompiledFiles, EveryChangedByteOfHeaderGraphAndDescriptionIsNoticed) {
  compile(onnx_, compiled_);
  fs::remove(onnx_);
  const std::string whole = read(compiled_);
  uint64_t header[10] = {};  // offset and size of the graph at 3, of the description at 6
  std::memcpy(header, whole.data(), sizeof(header));
  for (auto [begin, bytes] : {std::pair<uint64_t, uint64_t>(8, 72), {header[3], header[4]}, {header[6], header[7]}}) {
    ASSERT_LE(begin + bytes, whole.size());
    for (size_t at = begin; at < begin + bytes; at += 5) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 4);
      write(compiled_, changed);
      const std::string error = load_error();
      EXPECT_TRUE(error.starts_with("damaged-file") || error.starts_with("stale-file")) << at << " " << error;
    }
  }
}

TEST_F(CompiledFiles, AreRefusedWhenTheyAreCut) {
  compile(onnx_, compiled_);
  const std::string whole = read(compiled_);
  for (size_t size : {size_t{8}, size_t{60}, size_t{100}, size_t{5000}, whole.size() / 2, whole.size() - 1}) {
    write(compiled_, whole.substr(0, size));
    const Session session = Session::load(compiled_);
    ASSERT_EQ(session.notes().size(), 1u) << "the model beside it is loaded";
    EXPECT_NE(session.notes()[0].find("cannot be used: it "), std::string::npos) << session.notes()[0];
  }
  fs::remove(onnx_);
  EXPECT_TRUE(load_error().starts_with("damaged-file: '"));
  write(compiled_, whole + "more");
  EXPECT_TRUE(load_error().starts_with("damaged-file: '"));
}

TEST_F(CompiledFiles, ChecksFindChangedWeights) {
  compile(onnx_, compiled_);
  std::string whole = read(compiled_);
  whole[4096 + 17] = static_cast<char>(whole[4096 + 17] ^ 1);
  write(compiled_, whole);
  EXPECT_EQ(load_error(), "");
  const std::string error = error_of([&] { check_compiled(compiled_); });
  EXPECT_TRUE(error.starts_with("damaged-file: bytes ")) << error;
}

TEST_F(CompiledFiles, SessionsShareThem) {
  compile(onnx_, compiled_);
  const Session first = Session::load(compiled_), second = Session::load(compiled_);
  EXPECT_EQ(&first.placement(), &second.placement());
}

TEST_F(CompiledFiles, OtherToolsSayWhatTheyAre) {
  compile(onnx_, compiled_);
  const std::string bytes = read(compiled_);
  EXPECT_NE(error_of([&] {
              Session::from_bytes(std::as_bytes(std::span(bytes)));
            }).find("it looks like a model compiled by 'tenon compile'"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon
