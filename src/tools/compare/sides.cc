// What is compared with a model, other than models: tensors in files, and what onnxruntime computes.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "ir/graph.h"
#include "ir/visit.h"
#include "tenon/tools/compare.h"
#include "tenon/tools/value_files.h"
#include "tools/all_outputs.h"
#include "tools/npy.h"
#include "tools/subprocess.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;

// Inputs that have no default, or outputs.
std::vector<ValueInfo> infos(const std::vector<ir::Value*>& values) {
  std::vector<ValueInfo> list;
  for (const ir::Value* value : values) {
    if (value->is_initializer()) continue;
    ValueInfo& info = list.emplace_back();
    info.name = value->name;
    info.type = value->type.name();
    if (value->type.is_tensor()) info.element = value->type.element;
  }
  return list;
}

NamedValues read_numbered(const fs::path& folder, const char* what, const std::vector<ValueInfo>& values) {
  NamedValues read;
  for (size_t i = 0; i < values.size(); ++i) {
    const fs::path file = folder / fmt::format("{}_{}.pb", what, i);
    if (fs::exists(file)) read[values[i].name] = read_value(file, values[i]);
  }
  return read;
}

NamedValues read_archive(const fs::path& path) {
  NamedValues read;
  const auto file = MappedFile::open(path);
  for (const auto& [name, bytes] : arrays_in_npz(file->bytes())) read[name] = parse_npy(bytes, ElementType::undefined);
  return read;
}

std::map<std::string, fs::path> listed_files(const fs::path& index) {
  std::map<std::string, fs::path> files;
  std::ifstream stream(index);
  const nlohmann::json json = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("values"))
    fail(ErrorCode::invalid_value, "'{}' is not an index that `tenon run --dump` writes", index.string());
  for (const nlohmann::json& tensor : json["values"]) {
    if (tensor.contains("name") && tensor.contains("file"))
      files[tensor["name"].get<std::string>()] = index.parent_path() / tensor["file"].get<std::string>();
  }
  return files;
}

// Files without an index have the names of values, as far as file names can.
std::map<std::string, fs::path> named_files(const fs::path& folder, const ir::Model& model) {
  std::map<std::string, std::string> names;
  ir::for_each_graph(*model.graph, [&](const ir::Graph& graph) {
    for (const ir::Value& value : graph.values()) names.emplace(file_name_for(value.name), value.name);
  });
  std::map<std::string, fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".npy") continue;
    const std::string stem = entry.path().stem().string();
    const auto known = names.find(stem);
    files[known == names.end() ? stem : known->second] = entry.path();
  }
  return files;
}

NamedValues read_folder(const fs::path& folder, const ir::Model& model) {
  const fs::path index = folder / "index.json";
  NamedValues read;
  for (const auto& [name, file] : fs::exists(index) ? listed_files(index) : named_files(folder, model)) {
    ValueInfo info;
    info.name = name;
    read[name] = read_value(file, info);
  }
  return read;
}

// A folder that is gone in the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "tenon-XXXXXX").string();
    if (!mkdtemp(pattern.data())) fail(ErrorCode::write_failed, "'{}' cannot be made", pattern);
    path = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  fs::path path;
};

constexpr const char* onnxruntime_script = R"(
import sys
import numpy
import onnxruntime
folder = sys.argv[1]
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
session = onnxruntime.InferenceSession(folder + "/model.onnx", options, providers=["CPUExecutionProvider"])
inputs = {i.name: numpy.load(f"{folder}/input_{number}.npy") for number, i in enumerate(session.get_inputs())}
for number, value in enumerate(session.run(None, inputs)):
    if isinstance(value, numpy.ndarray):
        numpy.save(f"{folder}/output_{number}.npy", value)
)";

}  // namespace

CompareSide CompareSide::of_file(const fs::path& path, const OnnxModel& model, InputSources& inputs) {
  CompareSide side;
  side.label = path.string();
  const ir::Graph& graph = *model.ir().graph;
  if (!fs::exists(path)) fail(ErrorCode::missing_file, "'{}' is not there", path.string());
  const fs::path set = fs::exists(path / "output_0.pb") ? path : path / "test_data_set_0";
  if (!fs::is_directory(path)) {
    side.saved = read_archive(path);
  } else if (fs::exists(set / "output_0.pb")) {
    side.saved = read_numbered(set, "output", infos(graph.outputs()));
    inputs.values.merge(read_numbered(set, "input", infos(graph.inputs())));
  } else {
    side.saved = read_folder(path, model.ir());
  }
  if (side.saved.empty()) fail(ErrorCode::invalid_argument, "'{}' has no tensors", path.string());
  return side;
}

CompareSide CompareSide::of_onnxruntime(const OnnxModel& model, const NamedValues& inputs, const std::string& python) {
  const TemporaryFolder folder;
  std::vector<std::string> names;
  with_all_outputs(model, names).save(folder.path / "model.onnx");
  const std::vector<ValueInfo> wanted = infos(model.ir().graph->inputs());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto found = inputs.find(wanted[i].name);
    if (found == inputs.end() || !found->second.is_tensor())
      throw Error(ErrorCode::unsupported, "onnxruntime is given tensors only").on_tensor(wanted[i].name);
    write_npy(folder.path / fmt::format("input_{}.npy", i), found->second.tensor());
  }
  const FinishedProcess done = run_program({python, "-c", onnxruntime_script, folder.path.string()});
  if (done.code != 0) {
    const std::string last = done.error.substr(0, done.error.find_last_not_of('\n') + 1);
    const bool is_missing = last.find("No module named") != std::string::npos;
    throw Error(is_missing ? ErrorCode::provider_unavailable : ErrorCode::invalid_model,
                fmt::format("onnxruntime: {}", last.substr(last.rfind('\n') + 1)),
                is_missing ? "pip install onnxruntime, or --python PROGRAM for one that has it" : "");
  }
  CompareSide side;
  side.label = "onnxruntime";
  for (size_t i = 0; i < names.size(); ++i) {
    const fs::path file = folder.path / fmt::format("output_{}.npy", i);
    ValueInfo info;
    info.name = names[i];
    if (fs::exists(file)) side.saved[names[i]] = read_value(file, info);
  }
  return side;
}

}  // namespace tenon::tools
