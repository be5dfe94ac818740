#include <algorithm>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/names.h"
#include "onnx/graph_reader.h"
#include "onnx/model_file.h"
#include "onnx/string_pairs.h"

namespace tenon::onnx {
namespace {

std::unique_ptr<ir::Model> read_model(std::string_view bytes, TensorReader& tensors, const ReadOptions& options) {
  auto model = std::make_unique<ir::Model>();
  GraphReader graphs(tensors, options.given);
  WireReader message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case 1:
        model->ir_version = message.int64();
        break;
      case 2:
        model->producer_name = message.string();
        break;
      case 3:
        model->producer_version = message.string();
        break;
      case 4:
        model->domain = message.string();
        break;
      case 5:
        model->model_version = message.int64();
        break;
      case 6:
        model->doc_string = message.string();
        break;
      case 7:
        graphs.initializers_are_constants =
            options.old_inputs_are_constants && model->ir_version > 0 && model->ir_version < 4;
        model->graph = graphs.read_graph(message.message());
        break;
      case 8:
        read_opset(message.message(), model->opset_imports);
        break;
      case 14:
        model->metadata.push_back(read_string_pair(message.message()));
        break;
      case 25:
        model->functions.push_back(graphs.read_function(message.message()));
        break;
      default:
        model->other_fields += message.skip();
    }
  }
  return model;
}

void require_initializers(const ir::Graph& graph, const GivenTensors& given) {
  if (given.empty()) return;
  std::vector<std::string_view> names;
  for (const ir::Value* value : graph.initializers()) {
    if (value->constant()) names.push_back(value->name);
  }
  for (const auto& [name, _] : given) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string_view nearest = nearest_name(name, names);
    throw Error(ErrorCode::unknown_name, "a tensor is given for this initializer, which the model does not have",
                nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest))
        .on_tensor(name);
  }
}

// Reads, and when that fails says what the bytes look like instead, if they look like something.
std::unique_ptr<ir::Model> read_or_identify(std::span<const std::byte> bytes, TensorReader& tensors,
                                            const ReadOptions& options) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::unique_ptr<ir::Model> model;
  std::exception_ptr problem;
  try {
    model = read_model(text, tensors, options);
    if (model->graph && (model->ir_version > 0 || !model->graph->nodes().empty())) {
      require_initializers(*model->graph, options.given);
      tensors.finish();
      record_origins(*model);
      return model;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::truncated && error.code() != ErrorCode::invalid_model) throw;
    problem = std::current_exception();
  }
  if (std::string other = looks_like(bytes); !other.empty()) {
    throw Error(ErrorCode::not_onnx, "this is not an ONNX model: it looks like " + other);
  }
  if (problem) std::rethrow_exception(problem);
  throw Error(ErrorCode::not_onnx, "this is not an ONNX model: it has no graph");
}

}  // namespace

std::unique_ptr<ir::Model> load_model(const std::filesystem::path& path, std::vector<FileIdentity>* files,
                                      const ReadOptions& options) {
  auto file = MappedFile::open(path);
  TensorReader tensors(file, nullptr, ExternalData(path), options.external_problems);
  try {
    std::unique_ptr<ir::Model> model = read_or_identify(file->bytes(), tensors, options);
    if (files) *files = tensors.external_files();
    if (files) files->push_back(file->identity());
    return model;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_onnx || error.code() == ErrorCode::truncated) {
      Error named(error.code(), fmt::format("'{}': {}", path.string(), error.message()), error.hint());
      if (error.code() == ErrorCode::truncated) named.with_hint("the file is incomplete: copy or download it again");
      if (!error.node().empty()) named.at_node(error.node());
      if (!error.tensor().empty()) named.on_tensor(error.tensor());
      throw named;
    }
    throw;
  }
}

std::unique_ptr<ir::Model> parse_model(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                       const std::filesystem::path& folder, const ReadOptions& options) {
  TensorReader tensors(nullptr, std::move(owner), ExternalData::in_folder(folder), options.external_problems);
  return read_or_identify(bytes, tensors, options);
}

std::unique_ptr<ir::Model> parse_model(std::span<const std::byte> bytes, const DataFiles& files) {
  TensorReader tensors(nullptr, nullptr, ExternalData::of_files(files));
  return read_or_identify(bytes, tensors, {});
}

}  // namespace tenon::onnx
