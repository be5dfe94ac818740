// Compiled files: whatever graph, description and contents one holds, with checksums that fit, loading it gives a
// session or an error, and a session with small inputs runs or gives an error. An input is a message of these three.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "onnx/wire.h"
#include "run_model.h"
#include "session/compiled_description.h"
#include "session/compiled_header.h"

namespace {

namespace fs = std::filesystem;
using tenon::CompiledHeader;

fs::path temporary(const char* name) {
  return fs::temp_directory_path() / ("tenon_fuzz_" + std::to_string(getpid()) + name);
}

// The parts of the model's compiled file.
std::string seed_of(const fs::path& model) {
  const fs::path path = temporary(".tenon");
  tenon::compile(model, path);
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  fs::remove(path);
  const std::string file = text.str();
  CompiledHeader header;
  std::memcpy(static_cast<void*>(&header), file.data(), sizeof(header));
  const auto part = [&](const CompiledHeader::Part& p) { return file.substr(p.offset, p.bytes); };
  tenon::CompiledDescription description = tenon::read_description(part(header.description));
  description.key.model.clear();  // or it would be loaded instead
  tenon::onnx::WireWriter parts;
  parts.bytes(1, part(header.graph));
  parts.bytes(2, tenon::write_description(description));
  parts.bytes(3, file.substr(tenon::contents_offset, header.graph.offset - tenon::contents_offset));
  return parts.to_string();
}

CompiledHeader::Part append(std::string& file, std::string_view bytes) {
  file.append((64 - file.size() % 64) % 64, '\0');
  const CompiledHeader::Part part{file.size(), bytes.size(), tenon::content_hash(std::as_bytes(std::span(bytes)))};
  file += bytes;
  return part;
}

std::string assembled(std::string_view input) {
  std::string_view graph, description, contents;
  for (tenon::onnx::WireReader parts(input); parts.next();) {
    if (parts.field() > 3 || parts.field() == 0)
      parts.skip();
    else
      (parts.field() == 1 ? graph : parts.field() == 2 ? description : contents) = parts.bytes();
  }
  std::string file(tenon::contents_offset, '\0');
  file += contents;
  CompiledHeader header;
  header.graph = append(file, graph);
  header.description = append(file, description);
  header.file_bytes = file.size();
  header.hash = header.own_hash();
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const char* model : {"examples/digits/digits.onnx", "build/suite/node/test_lstm_defaults/model.onnx",
                            "build/suite/node/test_qlinearconv/model.onnx", "build/suite/node/test_loop11/model.onnx",
                            "build/suite/pytorch-operator/test_operator_conv/model.onnx"}) {
    if (fs::exists(fs::path(TENON_SOURCE_DIR) / model)) seeds.push_back(seed_of(fs::path(TENON_SOURCE_DIR) / model));
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  tenon::fuzz::Generator generator(std::hash<std::string_view>()(input));
  tenon::fuzz::load_and_run(generator, [&] {
    const fs::path path = temporary(".input.tenon");
    std::ofstream(path, std::ios::binary) << assembled(input);
    tenon::SessionOptions options;
    options.memory_limit = 64 << 20;
    return tenon::Session::load(path, options);
  });
  return 0;
}
