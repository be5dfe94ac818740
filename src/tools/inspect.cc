#include "tenon/tools/inspect.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "onnx/model_file.h"
#include "ops/cost.h"
#include "ops/operator.h"
#include "passes/constants.h"
#include "passes/infer.h"
#include "passes/lift.h"
#include "session/compiled_file.h"
#include "session/custom_operator.h"
#include "session/describe.h"

namespace tenon::tools {
namespace {

class Counter {
 public:
  explicit Counter(ModelSummary& summary) : summary_(summary) {}

  void graph(const ir::Graph& graph) {
    for (const ir::Value* value : graph.initializers()) {
      if (value->constant()) tensor(value->constant()->tensor);
      if (value->sparse_constant()) tensor(value->sparse_constant()->values->tensor);
    }
    for (const ir::Node& node : graph.nodes()) {
      ++summary_.nodes;
      ++uses_[{node.domain, node.op_type}];
      for (const ir::Attribute& attribute : node.attributes) {
        if (auto* constant = std::get_if<ir::ConstantPtr>(&attribute.value)) tensor((*constant)->tensor);
        attribute.for_each_graph([&](const ir::Graph& subgraph) { this->graph(subgraph); });
      }
    }
  }

  void finish(const ir::Model& model, const ops::CustomOperatorList& custom) {
    std::set<std::pair<std::string, std::string>> functions;
    for (const auto& function : model.functions) functions.insert({function->domain, function->name});
    for (const auto& [key, count] : uses_) {
      const auto& [domain, name] = key;
      bool known = functions.count(key) || ops::operators().find(domain, name) || custom.has(domain, name);
      summary_.operators.push_back({domain.empty() ? name : domain + "." + name, count, known});
    }
    std::ranges::stable_sort(summary_.operators, std::greater(), &OperatorUse::count);
  }

 private:
  void tensor(const Tensor& tensor) {
    summary_.parameters += tensor.elements();
    summary_.parameter_bytes += tensor.type() == ElementType::string ? 0 : tensor.bytes();
  }

  ModelSummary& summary_;
  std::map<std::pair<std::string, std::string>, int64_t> uses_;
};

// Of the operators that multiply matrices, which is nearly all that most models do.
std::string total_flops(const ir::Graph& graph) {
  Dim total = 0;
  for (const ir::Node& node : graph.nodes()) {
    const ops::Operator* op = ops::operator_of(node);
    if (!op || !op->multiply_adds_rule) continue;
    if (std::optional<ops::Cost> cost = ops::cost_of(node)) total = total + cost->flops;
  }
  return total.to_string();
}

// A model as its file has it: an ONNX model, or a compiled one after all passes.
struct ModelInFile {
  std::unique_ptr<ir::Model> model;
  ModelInfo info;
  bool is_compiled;
};

ModelInFile read(const std::filesystem::path& path, const onnx::ReadOptions& options = {}) {
  if (CompiledFile::is_one(path)) {
    CompiledFile file = CompiledFile::open(path);
    return {file.read_model(), file.description.report.info, true};
  }
  std::unique_ptr<ir::Model> model = onnx::load_model(path, nullptr, options);
  const ModelInfo info = describe(*model);
  return {std::move(model), info, false};
}

std::unique_ptr<ir::Model> lifted(const ModelInFile& file, const ops::CustomOperatorList& custom,
                                  std::vector<std::string>& notes) {
  std::unique_ptr<ir::Model> copy = file.model->clone();
  if (!file.is_compiled) notes = passes::lift_to_newest_opset(*copy, custom);
  passes::inline_functions(*copy);
  passes::constants_to_initializers(*copy->graph);
  ir::verify_and_sort(*copy->graph);
  for (std::string& note : passes::infer_types(*copy->graph).notes) notes.push_back(std::move(note));
  return copy;
}

}  // namespace

ModelSummary inspect(const std::filesystem::path& path, const SessionOptions& options) {
  const ops::CustomOperatorList custom =
      list_custom_operators(options.custom_operators, options.custom_operator_libraries);
  ModelInFile file = read(path, {.old_inputs_are_constants = true});
  const ir::Model& model = *file.model;
  ModelSummary summary;
  summary.info = file.info;
  Counter counter(summary);
  counter.graph(*model.graph);
  for (const auto& function : model.functions) {
    counter.graph(*function->body);
    summary.functions.push_back(function->domain + "." + function->name);
  }
  counter.finish(model, custom);
  std::unique_ptr<ir::Model> understood;
  try {
    understood = lifted(file, custom, summary.notes);
    summary.flops = total_flops(*understood->graph);
  } catch (const Error& error) {
    summary.problem = error.what();
    understood = std::move(file.model);
  }
  for (const ir::Value* value : understood->graph->inputs()) {
    (value->is_initializer() ? summary.overridable_initializers : summary.inputs).push_back(describe(*value));
    if (!value->type.shape) continue;
    for (const Dim& dim : *value->type.shape) {
      std::string name(dim.symbol_name());
      if (!name.empty() && std::ranges::find(summary.dynamic_dims, name) == summary.dynamic_dims.end())
        summary.dynamic_dims.push_back(name);
    }
  }
  for (const ir::Value* value : understood->graph->outputs()) summary.outputs.push_back(describe(*value));
  return summary;
}

std::string model_text(const std::filesystem::path& path, bool inferred, const SessionOptions& options) {
  ModelInFile file = read(path);
  std::vector<std::string> notes;
  if (inferred) {
    file.model =
        lifted(file, list_custom_operators(options.custom_operators, options.custom_operator_libraries), notes);
  }
  return ir::to_text(*file.model);
}

PlacementReport placement_for(const Session& session, const NamedValues& inputs) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, value] : inputs) {
    if (value.is_tensor()) shapes[name] = value.tensor().shape();
  }
  try {
    return session.placement_report(shapes);
  } catch (const Error&) {
    return session.placement_report();  // a body that did not run may not fit the shapes
  }
}

}  // namespace tenon::tools
