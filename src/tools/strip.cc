#include "tenon/tools/strip.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/content_hash.h"
#include "base/fail.h"
#include "base/new_file.h"
#include "onnx/model_file.h"
#include "tools/graph_edit.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;
using Storage = ir::Constant::Storage;
using nlohmann::json;

constexpr std::string_view hash_key = "tenon.weights";

std::string hash_text(std::span<const std::byte> bytes) { return fmt::format("{:016x}", content_hash(bytes)); }

StrippedTensor describe(const ir::Constant& constant) {
  const Tensor& tensor = constant.tensor;
  const auto* bytes = static_cast<const std::byte*>(tensor.raw());
  return {constant.name, std::string(name_of(tensor.type())), tensor.shape(), tensor.bytes(),
          hash_text({bytes, static_cast<size_t>(tensor.bytes())})};
}

std::string hash_of(const std::vector<StrippedTensor>& tensors) {
  std::string text;
  for (const StrippedTensor& t : tensors)
    text += fmt::format("{}\n{}\n{}\n{}\n", t.name, t.type, t.shape.to_string(), t.hash);
  return hash_text(std::as_bytes(std::span(text)));
}

// The tensors that `chosen` is true for, in the order of the file.
template <typename Chosen>
std::vector<StrippedTensor> list_tensors(ir::Model& model, Chosen chosen) {
  std::vector<StrippedTensor> tensors;
  change_constants(model, [&](const ir::Constant& constant) -> ir::ConstantPtr {
    if (constant.tensor.type() != ElementType::string && chosen(constant)) tensors.push_back(describe(constant));
    return nullptr;
  });
  return tensors;
}

json to_json(const StrippedModel& model) {
  json tensors = json::array();
  for (const StrippedTensor& t : model.tensors) {
    tensors.push_back({{"name", t.name},
                       {"type", t.type},
                       {"shape", std::vector<int64_t>(t.shape.begin(), t.shape.end())},
                       {"bytes", t.bytes},
                       {"hash", t.hash}});
  }
  return {{"file", model.weights.filename().string()}, {"hash", model.hash}, {"tensors", tensors}};
}

fs::path manifest_of(const fs::path& weights) { return weights.string() + ".json"; }

json read_manifest(const fs::path& weights) {
  const fs::path path = manifest_of(weights);
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorCode::missing_file, fmt::format("cannot read '{}'", path.string()),
                "it lists what is in the weights, and was written together with them");
  }
  json manifest = json::parse(file, nullptr, /*allow_exceptions=*/false);
  const bool sound = manifest.is_object() && manifest.contains("file") && manifest["file"].is_string() &&
                     manifest.contains("tensors") && manifest["tensors"].is_array();
  if (!sound) fail(ErrorCode::damaged_file, "'{}' is no list of weights", path.string());
  return manifest;
}

// "'w' and 3 more": the tensors that are not what the manifest says they were.
std::string changed_tensors(const std::vector<StrippedTensor>& tensors, const json& manifest) {
  std::map<std::string, std::string> expected;
  for (const json& tensor : manifest["tensors"]) {
    if (tensor.is_object()) expected[tensor.value("name", "")] = tensor.value("hash", "");
  }
  std::string first;
  size_t count = 0;
  for (const StrippedTensor& tensor : tensors) {
    auto found = expected.find(tensor.name);
    if (found != expected.end() && found->second == tensor.hash) continue;
    if (count++ == 0) first = tensor.name;
  }
  if (count == 0) return "";
  return count == 1 ? fmt::format("; '{}' differs", first) : fmt::format("; '{}' and {} more differ", first, count - 1);
}

struct Found {
  std::unique_ptr<ir::Model> model;
  fs::path weights;
  std::vector<fs::path> files;
};

Found find_weights(const fs::path& stripped, const fs::path& weights) {
  Found found;
  if (weights.empty()) {
    std::vector<FileIdentity> files;
    found.model = onnx::load_model(stripped, &files);
    for (const FileIdentity& file : files) {
      found.files.push_back(file.path);
      if (fs::exists(manifest_of(file.path))) found.weights = file.path;
    }
    return found;
  }
  const auto model_file = MappedFile::open(stripped);
  const onnx::DataFiles data{{read_manifest(weights)["file"].get<std::string>(), MappedFile::open(weights)}};
  found.model = onnx::parse_model(model_file->bytes(), data);
  found.weights = weights;
  found.files = {stripped, weights};
  return found;
}

}  // namespace

StrippedModel strip(const OnnxModel& model, const fs::path& path, const StripOptions& options) {
  if (fs::path(options.weights_file).has_parent_path())
    fail(ErrorCode::invalid_argument, "'{}' is no name of a file beside the model", options.weights_file);
  StrippedModel result;
  result.model = path;
  result.weights = path.parent_path() /
                   (options.weights_file.empty() ? path.filename().string() + ".weights" : options.weights_file);
  result.manifest = manifest_of(result.weights);
  std::unique_ptr<ir::Model> copy = model.ir().clone();
  result.tensors =
      list_tensors(*copy, [&](const ir::Constant& constant) { return constant.tensor.bytes() >= options.from_bytes; });
  if (result.tensors.empty())
    fail(ErrorCode::invalid_argument, "the model has no tensor of {} bytes or more", options.from_bytes);
  result.hash = hash_of(result.tensors);
  std::erase_if(copy->metadata, [](const auto& entry) { return entry.first == hash_key; });
  copy->metadata.emplace_back(hash_key, result.hash);
  SaveOptions how;
  how.data = SaveOptions::Data::outside;
  how.outside_from = options.from_bytes;
  how.data_file = result.weights.filename().string();
  how.overwrite = options.overwrite;
  model.with(std::move(copy)).save(path, how);
  NewFile manifest(result.manifest);
  manifest.write(to_json(result).dump(2) + "\n");
  manifest.commit();
  return result;
}

ChangedModel restore(const fs::path& stripped, const fs::path& weights) {
  Found found = find_weights(stripped, weights);
  ir::Model& model = *found.model;
  auto mark = std::ranges::find(model.metadata, hash_key, &std::pair<std::string, std::string>::first);
  if (mark == model.metadata.end()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("no weights were taken out of '{}'", stripped.string()),
                "restore takes what strip wrote");
  }
  const std::vector<StrippedTensor> tensors =
      list_tensors(model, [](const ir::Constant& constant) { return constant.storage == Storage::external; });
  if (hash_of(tensors) != mark->second) {
    const std::string which = found.weights.empty() ? "" : changed_tensors(tensors, read_manifest(found.weights));
    throw Error(ErrorCode::damaged_file,
                fmt::format("the weights are not those that were taken out of '{}'{}", stripped.string(), which));
  }
  model.metadata.erase(mark);
  change_constants(model, [](const ir::Constant& constant) -> ir::ConstantPtr {
    if (constant.storage != Storage::external) return nullptr;
    auto inside = std::make_shared<ir::Constant>(constant);
    inside->storage = Storage::raw;
    inside->external_data.clear();
    return inside;
  });
  std::vector<ModelChange> changes;
  for (const StrippedTensor& tensor : tensors)
    changes.push_back({"restored tensor", tensor.name, tensor.type + " " + tensor.shape.to_string()});
  return {OnnxModel(std::move(found.model), std::move(found.files)), std::move(changes), {}};
}

}  // namespace tenon::tools
