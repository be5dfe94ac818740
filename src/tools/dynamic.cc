#include "tenon/tools/dynamic.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "ir/unique_names.h"
#include "tools/batch_edit.h"
#include "tools/batch_proof.h"
#include "tools/batch_rules.h"
#include "tools/graph_edit.h"
#include "tools/known_types.h"
#include "tools/type_edit.h"

namespace tenon::tools {
namespace {

// The axes that were asked for, by input.
RowAxes find_axes(const ir::Graph& graph, const DynamicOptions& options) {
  RowAxes axes;
  for (const DynamicAxis& wanted : options.axes) {
    std::vector<std::string_view> names;
    bool found = false;
    for (const ir::Value* input : graph.inputs()) {
      if (input->is_initializer()) continue;
      names.push_back(input->name);
      if (!wanted.input.empty() && input->name != wanted.input) continue;
      const int rank = input->type.shape ? static_cast<int>(input->type.shape->size()) : 0;
      const int axis = wanted.axis < 0 ? wanted.axis + rank : wanted.axis;
      found = true;
      if (axis >= 0 && axis < rank) {
        axes[input->name] = static_cast<size_t>(axis);
      } else if (!wanted.input.empty()) {
        throw Error(ErrorCode::invalid_argument, fmt::format("it has no axis {}", wanted.axis)).on_tensor(input->name);
      }
    }
    if (!found && !wanted.input.empty()) {
      throw Error(ErrorCode::unknown_name, fmt::format("the model has no input '{}'", wanted.input),
                  nearest_hint(wanted.input, names));
    }
  }
  return axes;
}

ir::Value& input_named(const ir::Graph& graph, const std::string& name) {
  return **std::ranges::find(graph.inputs(), name, &ir::Value::name);
}

// The number that all of the axes have. Those that have a name already are left out.
int64_t common_size(const ir::Graph& graph, RowAxes& axes, const std::string& name) {
  std::erase_if(
      axes, [&](const auto& entry) { return !(*input_named(graph, entry.first).type.shape)[entry.second].is_known(); });
  if (axes.empty()) fail(ErrorCode::invalid_argument, "no input has a number there that could become '{}'", name);
  std::string text;
  std::set<int64_t> sizes;
  for (const auto& [input, axis] : axes) {
    const int64_t size = (*input_named(graph, input).type.shape)[axis].value();
    sizes.insert(size);
    text += fmt::format("{}'{}' has {} along axis {}", text.empty() ? "" : ", ", input, size, axis);
  }
  if (sizes.size() > 1)
    throw Error(ErrorCode::invalid_argument, "the inputs have different sizes there: " + text,
                "name those that are meant");
  if (*sizes.begin() == 0) fail(ErrorCode::invalid_argument, "the size is 0: {}", text);
  return *sizes.begin();
}

// What was inferred, or declared, before must not count as declared.
void forget_shapes(ir::Graph& graph) {
  for_each_graph(graph, [&](ir::Graph& inner) {
    for (ir::Value& value : inner.values()) {
      const bool is_main_input = &inner == &graph && value.is_graph_input();
      if (!is_main_input && value.type.is_tensor() && !value.is_initializer()) value.type.shape.reset();
    }
  });
}

class Freer {
 public:
  Freer(const OnnxModel& model, const DynamicOptions& options)
      : original_(model), options_(options), model_(model.ir().clone()), axes_(find_axes(*model_->graph, options)) {
    size_.old_size = common_size(*model_->graph, axes_, options.name);
    size_.size = Dim::symbol(options.name);
    lifted_ = lifted_copy(*model_);
    passes::infer_types(*lifted_->graph);
    before_ = types_of(*lifted_->graph);
    for_each_graph(*model_->graph, [&](ir::Graph& graph) {
      for (ir::Node& node : graph.nodes()) nodes_.emplace(node.origin.get(), &node);
    });
  }

  DynamicModel run() {
    for (const auto& [name, axis] : axes_) {
      for (ir::Graph* graph : {model_->graph.get(), lifted_->graph.get()})
        (*input_named(*graph, name).type.shape)[axis] = size_.size;
      result_.changes.push_back({"freed input", name, input_named(*model_->graph, name).type.to_string()});
    }
    while (free_one()) {
    }
    if (result_.blockers.empty()) finish();
    return std::move(result_);
  }

 private:
  // Frees the first node that needs it; says whether to look for more.
  bool free_one() {
    forget_shapes(*lifted_->graph);
    passes::InferenceResult facts;
    std::optional<Error> problem;
    try {
      passes::infer_types(*lifted_->graph, facts);
    } catch (const Error& error) {
      problem = error;
    }
    const std::optional<BatchFinding> finding = find_baked(*lifted_->graph, facts, before_, size_);
    if (!finding && problem) {
      result_.blockers.push_back({problem->node(), problem->tensor(), problem->message()});
      return false;
    }
    if (!finding) return false;
    if (!finding->edit) {
      result_.blockers.push_back({finding->node->describe(), finding->constant, finding->reason});
      return false;
    }
    return apply(*finding);
  }

  bool apply(const BatchFinding& finding) {
    auto found = nodes_.find(finding.node->origin.get());
    const BatchEdit& edit = *finding.edit;
    const std::string where = finding.node->describe();
    const auto blocked = [&](const std::string& reason) {
      result_.blockers.push_back({where, finding.constant, fmt::format("{}: {}", edit.what, reason)});
      return false;
    };
    if (found == nodes_.end()) return blocked("the node is in a function of the model, which is left as it is");
    ir::Node& node = *found->second;
    if (node.op_type != finding.node->op_type || (edit.kind != BatchEdit::Kind::reshape && !node.input(edit.input)))
      return blocked("the opset has it in an attribute; `tenon convert --opset 13` first");
    if (!done_.insert({&node, edit.input, edit.what}).second) return blocked("that did not help");
    result_.changes.push_back({"rewrote " + node.op_type, where, edit.what});
    const auto& [name, axis] = *axes_.begin();
    apply_edit(edit, node, {*model_->graph, name, axis});
    apply_edit(edit, const_cast<ir::Node&>(*finding.node), {*lifted_->graph, name, axis});
    return true;
  }

  void finish() {
    const TypesByName after = types_of(*lifted_->graph);
    RowAxes rows;
    for (const ir::Value& value : lifted_->graph->values()) {
      auto before = before_.find(value.name);
      if (before == before_.end() || !before->second.shape || !value.type.shape) continue;
      if (auto axis = size_.axis(*before->second.shape, *value.type.shape)) rows[value.name] = *axis;
    }
    write_types(after);
    ir::make_names_unique(*model_);
    OnnxModel freed = original_.with(std::move(model_));
    BatchProof proof = prove_rows(original_, freed, axes_, rows, size_.old_size, options_);
    result_.notes = std::move(proof.notes);
    result_.proven = std::move(proof.sizes);
    result_.largest_difference = proof.largest_difference;
    result_.blockers = std::move(proof.failures);
    if (result_.blockers.empty())
      result_.model = std::move(freed);
    else
      suspect_nodes();
  }

  void write_types(const TypesByName& after) {
    const auto replace = [&](const ir::Value& value, ir::Type& type) {
      if (!type.is_tensor()) return;
      auto found = after.find(unique_name(value));
      type.shape.reset();
      if (found != after.end()) type.shape = found->second.shape;
    };
    ir::Graph& graph = *model_->graph;
    for_each_graph(graph, [&](ir::Graph& inner) {
      for (ir::Value& value : inner.values()) {
        const bool is_main_input = &inner == &graph && value.is_graph_input();
        if (!value.is_initializer() && !is_main_input) replace(value, value.type);
      }
      for_each_output_type(inner, replace);
    });
  }

  // Nodes that mix rows, or take some of them, for the report of a proof that failed.
  void suspect_nodes() {
    for (const ir::Node& node : lifted_->graph->nodes()) {
      bool reads_rows = false, makes_rows = false;
      for (const ir::Value* value : node.inputs()) reads_rows |= value && has_rows(*value);
      for (const ir::Value* value : node.outputs()) makes_rows |= value && has_rows(*value);
      if (!reads_rows || makes_rows || node.op_type == "Shape") continue;
      result_.blockers.push_back({node.describe(), "", "what it makes has no rows, though it reads them"});
      return;
    }
  }
  bool has_rows(const ir::Value& value) const {
    return value.type.shape &&
           std::ranges::any_of(*value.type.shape, [&](const Dim& dim) { return size_.occurs_in(dim); });
  }

  const OnnxModel& original_;
  const DynamicOptions& options_;
  std::unique_ptr<ir::Model> model_, lifted_;
  RowAxes axes_;
  FreedSize size_;
  TypesByName before_;
  std::map<const ir::Origin*, ir::Node*> nodes_;
  std::set<std::tuple<const ir::Node*, size_t, std::string>> done_;
  DynamicModel result_;
};

}  // namespace

const OnnxModel& DynamicModel::require() const {
  if (model) return *model;
  std::string text = "the size cannot be freed:";
  for (const DynamicBlocker& blocker : blockers) {
    text += "\n  " + blocker.node;
    if (!blocker.constant.empty()) text += fmt::format("{}'{}'", blocker.node.empty() ? "" : ", ", blocker.constant);
    text += ": " + blocker.reason;
  }
  throw Error(ErrorCode::unsupported, text);
}

DynamicModel make_dynamic(const OnnxModel& model, const DynamicOptions& options) {
  if (options.name.empty()) fail(ErrorCode::invalid_argument, "the new dimension has no name");
  return Freer(model, options).run();
}

}  // namespace tenon::tools
