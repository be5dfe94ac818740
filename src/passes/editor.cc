#include "passes/editor.h"

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "base/names.h"
#include "ir/visit.h"
#include "ops/check_types.h"
#include "passes/infer.h"

namespace tenon::passes {
namespace {

using ops::Fact;

bool has_subgraph(const ir::Node& node) {
  bool has = false;
  for_each_subgraph(node, [&](const ir::Graph&) { has = true; });
  return has;
}

void collect_names(const ir::Graph& graph, std::vector<std::string_view>& names) {
  for (const ir::Value& value : graph.values()) names.push_back(value.name);
  for (const ir::Node& node : graph.nodes())
    for_each_subgraph(node, [&](const ir::Graph& subgraph) { collect_names(subgraph, names); });
}

}  // namespace

Editor::Editor(ir::Graph& graph, std::span<const std::string> keep, Evaluator evaluator, bool exact, Target target)
    : graph_(graph),
      evaluator_(std::move(evaluator)),
      exact_(exact),
      target_(target),
      facts_(infer_types(graph).facts) {
  std::unordered_set<std::string_view> missing(keep.begin(), keep.end());
  index(graph, missing);
  for (const std::string& name : keep) {
    if (!missing.count(name)) continue;
    std::vector<std::string_view> names;
    collect_names(graph, names);
    std::string_view nearest = nearest_name(name, names);
    throw Error(ErrorCode::unknown_name, fmt::format("'{}' is to be kept, but the model has no such value", name),
                nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest));
  }
}

void Editor::index(ir::Graph& graph, std::unordered_set<std::string_view>& missing) {
  for (ir::Value* value : graph.outputs()) {
    auto& graphs = outputs_[value];
    if (graphs.empty() || graphs.back() != &graph) graphs.push_back(&graph);
  }
  // Gradient names the tensors that it differentiates.
  std::unordered_set<std::string> named;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op_type != "Gradient" || node.domain != ops::ai_onnx_training) continue;
    named.insert(node.string_attribute("y", ""));
    for (const char* list : {"xs", "zs"}) {
      for (std::string& name : node.strings_attribute(list)) named.insert(std::move(name));
    }
  }
  for (const ir::Value& value : graph.values()) {
    if (missing.erase(value.name) || named.count(value.name)) kept_.insert(&value);
  }
  for (const ir::Node& node : graph.nodes())
    for_each_subgraph(node, [&](ir::Graph& subgraph) { index(subgraph, missing); });
}

const Fact& Editor::fact(const ir::Value& value) {
  auto [at, added] = facts_.try_emplace(&value);
  if (added) {
    if (value.is_fixed())
      at->second = Fact::of(value.constant()->tensor);
    else
      at->second.type = value.type;
  }
  return at->second;
}

const SymbolicShape* Editor::shape(const ir::Value* value) {
  if (!value) return nullptr;
  const ir::Type& type = fact(*value).type;
  return type.is_tensor() && type.shape ? &*type.shape : nullptr;
}

int Editor::rank(const ir::Value* value) {
  const SymbolicShape* sizes = shape(value);
  return sizes ? static_cast<int>(sizes->size()) : -1;
}

bool Editor::same_shape(const ir::Value* a, const ir::Value* b) {
  const SymbolicShape *first = shape(a), *second = shape(b);
  return first && second && std::ranges::equal(*first, *second);
}

const Tensor* Editor::constant(const ir::Value* value) {
  return value && value->is_fixed() ? &value->constant()->tensor : nullptr;
}

std::optional<ops::SymbolicValues> Editor::values(const ir::Value* value) {
  if (!value) return std::nullopt;
  return ops::values_of(fact(*value));
}

std::optional<std::vector<int64_t>> Editor::ints(const ir::Value* value) {
  if (!value) return std::nullopt;
  return ops::ints_of(fact(*value));
}

bool Editor::can_be_constant(const ir::Value& value) const {
  if (!exact_ || value.is_fixed()) return true;
  constexpr std::array packing = {"MatMul", "Gemm", "Conv", "ConvTranspose",
                                  "LSTM",   "GRU",  "RNN",  "BatchNormalization"};
  return std::ranges::none_of(
      value.users(), [&](const ir::Node* user) { return std::ranges::find(packing, user->op_type) != packing.end(); });
}

bool Editor::can_replace(const ir::Value& old, const ir::Value& by) const {
  if (by.is_fixed() && !can_be_constant(old)) return false;
  if (!is_pinned(old)) return true;
  return &old.graph() == &by.graph() && !by.is_graph_input() && !is_pinned(by);
}

void Editor::infer(ir::Node& node) {
  const ops::Operator* op = ops::operator_of(node);
  if (!op) fail(ErrorCode::internal, "pass '{}' adds the operator {}, which does not exist", pass_, node.op_type);
  if (std::string problem = ops::check_node(*op, node); !problem.empty())
    fail(ErrorCode::internal, "pass '{}' adds a node that is not valid: {}", pass_, problem);
  std::vector<const Fact*> inputs;
  for (const ir::Value* value : node.inputs()) inputs.push_back(value ? &fact(*value) : nullptr);
  ops::check_input_types(*op, node, inputs);
  std::vector<Fact> outputs(node.output_count());
  // Nodes with subgraphs do not come here; its being there asks for symbolic contents.
  const ops::Inference::InferSubgraph subgraphs = [](std::string_view, std::span<const Fact>) {
    return std::vector<Fact>();
  };
  ops::Inference inference(node, inputs, outputs, &subgraphs);
  if (op->infer_types) op->infer_types(inference);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (ir::Value* value = node.output(i); value && improve(*value, std::move(outputs[i]))) {
      value->type = facts_[value].type;
      outdated_.insert(value->users().begin(), value->users().end());
    }
  }
}

bool Editor::improve(const ir::Value& value, Fact better) {
  auto [at, added] = facts_.try_emplace(&value);
  Fact& known = at->second;
  if (added) known.type = value.type;
  bool improved = false;
  auto take = [&](auto& field, auto& news) {
    field = std::move(news);
    improved = true;
  };
  auto take_sizes = [&](auto& sizes, auto& news) {
    for (size_t i = 0; i < sizes.size() && i < news.size(); ++i) {
      const Dim &before = sizes[i], &after = news[i];
      if ((before.has_unknown() && !after.has_unknown()) || (!before.is_known() && after.is_known()))
        take(sizes[i], news[i]);
    }
  };
  if (!known.type.known()) {
    if (better.type.known()) take(known.type, better.type);
  } else if (known.type.is_tensor() && better.type.is_tensor() && better.type.shape) {
    if (known.type.element == ElementType::undefined && better.type.element != ElementType::undefined)
      take(known.type.element, better.type.element);
    if (!known.type.shape) {
      known.type.shape = better.type.shape;
      improved = true;
    }
    take_sizes(*known.type.shape, *better.type.shape);
  }
  if (!known.values && better.values) take(known.values, better.values);
  if (known.values && better.values) take_sizes(*known.values, *better.values);
  if (!known.constant && better.constant) take(known.constant, better.constant);
  return improved;
}

void Editor::rewrite(ir::Node& at, const std::function<void(Patch&)>& change) {
  TENON_CHECK(!is_removed(at));
  if (rewrites.size() >= most_rewrites) return;
  Rewrite record;
  record.pass = pass_;
  changed_.insert(&at.graph());
  Patch patch(*this, at, record);
  try {
    change(patch);
  } catch (Error& error) {
    if (error.code() == ErrorCode::internal || !patch.replaced_.empty())
      throw Error(ErrorCode::internal, fmt::format("pass '{}': {}", pass_, error.message())).at_node(at.describe());
    // The nodes contradict each other, which is an error only if they ever run.
    patch.undo();
    return;
  }
  for (const ir::Node* node : patch.added_) {
    record.after.push_back(node->op_type + (node->name.empty() ? "" : " '" + node->name + "'"));
  }
  remove_if_unused(std::move(patch.replaced_), record);
  for (ir::Value* value : patch.constants_) {
    if (value->users().empty()) unread_.insert(value);
  }
  rewrites.push_back(std::move(record));
}

void Editor::remove_unused(std::span<ir::Node* const> nodes) {
  if (rewrites.size() >= most_rewrites) return;
  Rewrite record;
  record.pass = pass_;
  for (const ir::Node* node : nodes) changed_.insert(&node->graph());
  remove_if_unused({nodes.begin(), nodes.end()}, record);
  if (!record.before.empty()) rewrites.push_back(std::move(record));
}

void Editor::remove_unused_initializers(ir::Graph& graph) {
  for (const ir::Value* value : graph.initializers()) {
    if (value->users().empty() && !value->is_graph_input() && !is_pinned(*value)) {
      unread_.insert(value);
      changed_.insert(&graph);
    }
  }
}

void Editor::move_uses(ir::Value& old, ir::Value& by, bool takes_name, Rewrite& record) {
  TENON_CHECK(&old != &by && can_replace(old, by));
  Fact before = fact(old);
  bool better_now = improve(old, fact(by));
  if (improve(by, std::move(before))) outdated_.insert(by.users().begin(), by.users().end());
  by.type = facts_[&by].type;
  if (better_now) outdated_.insert(old.users().begin(), old.users().end());
  changed_.insert(&old.graph());
  if (takes_name || is_pinned(old)) {
    if (!takes_name) record.renamed.emplace_back(by.name, old.name);
    take_name(by, old);
  } else {
    record.renamed.emplace_back(old.name, by.name);
  }
  old.graph().replace_uses(old, by);
  if (old.is_initializer()) unread_.insert(&old);
}

void Editor::take_name(ir::Value& value, ir::Value& from) {
  std::swap(value.name, from.name);
  value.value_info_position = std::max(value.value_info_position, from.value_info_position);
  from.value_info_position = -1;
  if (value.constant()) {
    auto renamed = std::make_shared<ir::Constant>(*value.constant());
    renamed->name = value.name;
    value.graph().set_initializer(value, ir::ConstantPtr(renamed));
    facts_[&value].constant = &value.constant()->tensor;
    outdated_.insert(value.users().begin(), value.users().end());
  }
  if (auto found = outputs_.find(&from); found != outputs_.end()) {
    for (ir::Graph* graph : found->second) {
      for (size_t i = 0; i < graph->outputs().size(); ++i) {
        if (graph->outputs()[i] == &from) graph->set_output(i, value);
      }
    }
    outputs_[&value] = std::move(found->second);
    outputs_.erase(&from);
  }
  if (kept_.erase(&from)) kept_.insert(&value);
}

void Editor::lost_user(ir::Value& value, std::vector<ir::Node*>& unused) {
  if (!value.users().empty()) return;
  if (value.producer()) unused.push_back(value.producer());
  if (value.is_initializer()) {
    unread_.insert(&value);
    changed_.insert(&value.graph());
  }
}

void Editor::forget_subgraph(ir::Graph& graph, std::vector<ir::Value*>& read) {
  for (ir::Value* value : graph.outputs()) {
    auto found = outputs_.find(value);
    if (found == outputs_.end()) continue;
    std::erase(found->second, &graph);
    if (found->second.empty()) outputs_.erase(found);
    read.push_back(value);
  }
  for (ir::Node& node : graph.nodes()) {
    removed_.insert(&node);
    outdated_.erase(&node);
    for_each_subgraph(node, [&](ir::Graph& inner) { forget_subgraph(inner, read); });
    for (ir::Value* value : node.inputs()) {
      if (value) read.push_back(value);
    }
    node.remove_trailing_inputs(0);
  }
  for (const ir::Value& value : graph.values()) {
    facts_.erase(&value);
    unread_.erase(&value);
  }
  changed_.erase(&graph);
}

void Editor::remove_if_unused(std::vector<ir::Node*> nodes, Rewrite& record) {
  while (!nodes.empty()) {
    ir::Node* node = nodes.back();
    nodes.pop_back();
    if (is_removed(*node)) continue;
    auto is_used = [&](const ir::Value* value) { return value && (!value->users().empty() || is_pinned(*value)); };
    if (std::ranges::any_of(node->outputs(), is_used)) continue;
    record.before.push_back(node->describe());
    removed_.insert(node);
    outdated_.erase(node);
    std::vector<ir::Value*> read;
    for_each_subgraph(*node, [&](ir::Graph& subgraph) { forget_subgraph(subgraph, read); });
    // Values of the removed subgraphs themselves are of no interest any more.
    std::erase_if(read, [&](const ir::Value* value) { return value->producer() && is_removed(*value->producer()); });
    for (ir::Value* value : node->inputs()) {
      if (value) read.push_back(value);
    }
    changed_.insert(&node->graph());
    node->graph().remove_node(*node, &bin_);
    for (ir::Value* value : read) lost_user(*value, nodes);
  }
}

void Editor::infer_better(ir::Node& node) {
  try {
    infer(node);
  } catch (const Error& error) {
    // Now it is known that the node cannot run; whoever runs it gets the error.
    if (error.code() == ErrorCode::internal) throw;
  }
}

void Editor::infer_again(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes()) {
    if (outdated_.empty()) return;
    if (outdated_.erase(&node) && !has_subgraph(node)) infer_better(node);
    for_each_subgraph(node, [&](ir::Graph& subgraph) { infer_again(subgraph); });
  }
}

void Editor::end_pass() {
  for (ir::Graph* graph : changed_) {
    graph->sort_topologically();
    if (!unread_.empty()) {
      graph->remove_unused_initializers(
          [&](const ir::Value& value) { return unread_.count(&value) && !is_pinned(value); }, &bin_);
    }
  }
  infer_again(graph_);
  for (const ir::Value& value : bin_.values) facts_.erase(&value);
  bin_ = {};
  outdated_.clear();
  removed_.clear();
  unread_.clear();
  changed_.clear();
}

}  // namespace tenon::passes
