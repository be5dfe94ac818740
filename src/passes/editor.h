#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"
#include "tenon/optimization.h"
#include "tenon/value.h"

namespace tenon::passes {

class Patch;

// Computes the outputs of a node whose inputs are all constants. Throws Error when the node cannot run.
using Evaluator = std::function<std::vector<Value>(const ir::Node&)>;

// What is to run the nodes.
struct Target {
  bool is_device = false;       // with a memory of its own; else the host
  bool rounds_float32 = false;  // whether products of float32 may round their operands
};

// What a pass sees and changes a graph through. It knows the types and symbolic contents of all values, keeps them up
// to date, and records every rewrite.
//
//   editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add("Gelu", {x})); });
class Editor {
 public:
  // The graph's nodes are lifted, sorted and not yet changed by anyone since infer_types. `keep` names values of it, or
  // of graphs in it, that stay. With `exact` no result may change by a bit.
  Editor(ir::Graph& graph, std::span<const std::string> keep, Evaluator evaluator = nullptr, bool exact = false,
         Target target = {});

  const Target& target() const { return target_; }

  // What is known about a value. The reference holds until the graph changes.
  const ops::Fact& fact(const ir::Value& value);
  // The sizes of a tensor; null when not even the rank is known, or when there is no value.
  const SymbolicShape* shape(const ir::Value* value);
  // -1 when it is not known.
  int rank(const ir::Value* value);
  // Whether both are tensors of one known rank whose sizes are certainly equal.
  bool same_shape(const ir::Value* a, const ir::Value* b);
  // The content, where no run can change it; else null.
  static const Tensor* constant(const ir::Value* value);
  // The content of an integer tensor of rank 0 or 1, as far as it is known before the model runs.
  std::optional<ops::SymbolicValues> values(const ir::Value* value);
  // The same when all of it is known.
  std::optional<std::vector<int64_t>> ints(const ir::Value* value);

  // Whether more than nodes depend on the value: it is an output of a graph, or the user keeps it.
  bool is_pinned(const ir::Value& value) const { return outputs_.count(&value) || kept_.count(&value); }
  // Whether this node is all that depends on the value.
  bool is_only_user(const ir::Value& value) const { return value.users().size() == 1 && !is_pinned(value); }
  // Whether a constant may take the value's place. Kernels that pack constant weights may add in another order than
  // they do with computed ones, so where results must be exact those stay computed.
  bool can_be_constant(const ir::Value& value) const;
  // Whether `by` can stand wherever `old` does. Not if both have a name that must stay, for one.
  bool can_replace(const ir::Value& old, const ir::Value& by) const;
  bool can_evaluate() const { return evaluator_ != nullptr; }
  std::vector<Value> evaluate(const ir::Node& node) const { return evaluator_(node); }

  // Changes the graph around `at` and records it as one rewrite. New nodes come before `at` and go by its name in
  // errors and reports. Nodes that nobody needs any more are removed. Where a new node cannot be, because those it is
  // made from contradict each other (as in a branch that never runs), nothing changes.
  void rewrite(ir::Node& at, const std::function<void(Patch&)>& change);
  // Removes nodes that nobody needs, and what only they need, as one rewrite.
  void remove_unused(std::span<ir::Node* const> nodes);
  // Removes initializers of `graph` that nobody reads.
  void remove_unused_initializers(ir::Graph& graph);
  // Whether the node was removed since the pass began. Until the pass ends it may be pointed at.
  bool is_removed(const ir::Node& node) const { return removed_.count(&node) != 0; }

  void begin_pass(std::string_view name) { pass_ = name; }
  // Infers again what depends on changed values, and lets go of what was removed.
  void end_pass();
  // The rewrites so far, and how many there may be: others are not made.
  std::vector<Rewrite> rewrites;
  size_t most_rewrites = std::numeric_limits<size_t>::max();

 private:
  friend class Patch;
  void index(ir::Graph& graph, std::unordered_set<std::string_view>& keep);
  void infer(ir::Node& node);
  void infer_again(ir::Graph& graph);
  void infer_better(ir::Node& node);
  // Takes what `better` knows and the value's fact does not; says whether that was anything.
  bool improve(const ir::Value& value, ops::Fact better);
  void move_uses(ir::Value& old, ir::Value& by, bool takes_name, Rewrite& record);
  void take_name(ir::Value& value, ir::Value& from);
  void remove_if_unused(std::vector<ir::Node*> nodes, Rewrite& record);
  void forget_subgraph(ir::Graph& graph, std::vector<ir::Value*>& read);
  void lost_user(ir::Value& value, std::vector<ir::Node*>& unused);

  ir::Graph& graph_;
  Evaluator evaluator_;
  bool exact_;
  Target target_;
  std::string_view pass_;
  std::unordered_map<const ir::Value*, ops::Fact> facts_;
  std::unordered_map<const ir::Value*, std::vector<ir::Graph*>> outputs_;  // the graphs whose output a value is
  std::unordered_set<const ir::Value*> kept_;
  std::unordered_set<const ir::Node*> removed_;
  std::unordered_set<const ir::Node*> outdated_;  // whose inputs are better known than when they were inferred
  std::unordered_set<const ir::Value*> unread_;   // initializers that lost their last user
  std::unordered_set<ir::Graph*> changed_;
  ir::Graph::Removed bin_;
};

// One rewrite in the making.
class Patch {
 public:
  using Settings = std::initializer_list<ops::Setting>;

  // A node of ai.onnx, or of another domain, with one output, which is returned. Its type is inferred at once. Trailing
  // nulls among the inputs are left out.
  ir::Value* add(std::string op, const std::vector<ir::Value*>& inputs, Settings attributes = {},
                 std::string domain = {});
  // The same with several outputs.
  ir::Node& add_node(std::string op, const std::vector<ir::Value*>& inputs, Settings attributes, size_t outputs,
                     std::string domain = {});
  // A node like `node` with other inputs: attributes, overload and count of outputs are the same.
  ir::Node& add_like(const ir::Node& node, const std::vector<ir::Value*>& inputs, Settings changed_attributes = {});
  // A node of domain tenon, or of another, with the attributes of `like` that it has too, and others.
  ir::Value* add_fused(std::string op, const ir::Node& like, const std::vector<ir::Value*>& inputs,
                       Settings more_attributes, std::string domain = std::string(ops::tenon_domain));
  // A copy of a node of a subgraph, which reads what `values` has in place of its inputs; its outputs are added there.
  ir::Node& add_copy(const ir::Node& node, std::map<const ir::Value*, ir::Value*>& values);
  // An initializer.
  ir::Value* constant(Tensor tensor);
  ir::Value* ints(const std::vector<int64_t>& numbers);
  // A scalar of a floating-point type.
  ir::Value* number(double value, ElementType type);

  // Errors and reports give nodes that are added from now on the name of `node`.
  void name_after(const ir::Node& node);

  // Every use of `old` becomes one of `by`. A new value takes the name of the first one that it replaces.
  void replace(ir::Value& old, ir::Value& by);
  // The same for the only output of `old`.
  void replace(ir::Node& old, ir::Value& by) { replace(*old.output(0), by); }
  // The record says that `by` is the image `old` in blocks of channels, or with its channels last.
  void record_blocked(const ir::Value& old, const ir::Value& by, int64_t channels) {
    record_.blocked.push_back({old.name, by.name, channels});
  }

 private:
  friend class Editor;
  Patch(Editor& editor, ir::Node& at, Rewrite& record) : editor_(editor), at_(at), named_after_(&at), record_(record) {}
  ir::Node& start_node(std::string op, std::string domain, const std::vector<ir::Value*>& inputs);
  void finish_node(ir::Node& node);
  void undo();

  Editor& editor_;
  ir::Node& at_;
  const ir::Node* named_after_;
  Rewrite& record_;
  std::vector<ir::Node*> added_;
  std::vector<ir::Value*> constants_;
  std::unordered_set<const ir::Value*> unnamed_;  // new values that have no name of the model yet
  std::vector<ir::Node*> replaced_;
};

}  // namespace tenon::passes
