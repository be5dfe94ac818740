#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/fused_elementwise/program.h"
#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

using ops::ElementwiseOperation;
using ops::ElementwiseProgram;

// The operation that the node is, without the numbers of its operands; nullopt if it cannot be part of a program.
std::optional<ElementwiseOperation> operation_of(Editor& editor, const ir::Node& node) {
  if (!node.domain.empty() || node.output_count() != 1) return std::nullopt;
  std::string name = node.op_type;
  if (name == "Gelu" && node.attribute("approximate")) {
    const std::string approximate = node.string_attribute("approximate", "none");
    if (approximate != "none" && approximate != "tanh") return std::nullopt;
    if (approximate == "tanh") name = "TanhGelu";
  }
  ElementwiseOperation operation{ops::find_elementwise_operator(name)};
  if (!operation.op || !has_fused_type(editor, node.output(0))) return std::nullopt;
  if (node.op_type == "Clip") {
    std::optional<std::array<float, 2>> limits = constant_limits(node);
    if (!limits) return std::nullopt;
    operation.parameters = *limits;
  } else if (node.op_type == "Pow") {
    if (!is_number(node.input(1)) || !editor.same_shape(node.input(0), node.output(0))) return std::nullopt;
    operation.parameters[0] = static_cast<float>(*uniform_constant(node.input(1)));
  } else {
    if (static_cast<int>(node.input_count()) != operation.op->operand_count) return std::nullopt;
    for (size_t i = 0; i < static_cast<size_t>(operation.op->parameter_count); ++i) {
      const auto& [attribute, otherwise] = operation.op->parameters[i];
      operation.parameters[i] = node.float_attribute(attribute, otherwise);
    }
    if (name == "Celu" && operation.parameters[0] == 0) return std::nullopt;
  }
  return operation;
}

// The nodes that become one.
class Group {
 public:
  // With `may_broadcast`, it may have operands that are broadcast, other than single numbers.
  Group(Editor& editor, ir::Node& last, const ElementwiseOperation& operation, bool may_broadcast)
      : editor_(editor), last_(last), may_broadcast_(may_broadcast) {
    add(last, operation);
    while (grow()) continue;
  }

  // On the host, to lay out an operand that is broadcast takes about as long as two operations. A device reads it where
  // it is.
  bool is_worth_it() const {
    return std::ssize(members_) >= 2 + (editor_.target().is_device ? 0 : 2 * broadcast_operands());
  }

  // `positions` are those of the graph's nodes.
  void fuse(const std::unordered_map<const ir::Node*, size_t>& positions) {
    std::ranges::sort(members_, {}, [&](const Member& member) { return positions.at(member.node); });
    // In the order in which they are read.
    operands_.clear();
    for (const Member& member : members_) add_operands(member);
    std::erase_if(operands_, [&](const ir::Value* operand) { return has(operand->producer()); });
    std::unordered_map<const ir::Value*, int> numbers;
    for (const ir::Value* input : operands_) numbers.emplace(input, static_cast<int>(numbers.size()));
    ElementwiseProgram program;
    for (Member& member : members_) {
      for (size_t i = 0; i < member.operation.inputs().size(); ++i)
        member.operation.operands[i] = numbers.at(member.node->input(i));
      numbers.emplace(member.node->output(0), static_cast<int>(numbers.size()));
      program.operations.push_back(member.operation);
    }
    editor_.rewrite(last_, [&](Patch& patch) {
      patch.replace(last_, *patch.add("FusedElementwise", operands_,
                                      {{"operators", program.operator_names()},
                                       {"operands", program.operand_numbers()},
                                       {"parameters", program.parameter_numbers()}},
                                      std::string(ops::tenon_domain)));
    });
  }

 private:
  struct Member {
    const ir::Node* node;
    ElementwiseOperation operation;
  };

  bool has(const ir::Node* node) const { return std::ranges::find(members_, node, &Member::node) != members_.end(); }

  ptrdiff_t broadcast_operands() const {
    return std::ranges::count_if(operands_, [&](const ir::Value* operand) {
      const SymbolicShape* shape = editor_.shape(operand);
      return !editor_.same_shape(operand, last_.output(0)) && !(shape && element_count(*shape).is(1));
    });
  }

  void add_operands(const Member& member) {
    for (size_t i = 0; i < member.operation.inputs().size(); ++i) {
      ir::Value* operand = member.node->input(i);
      if (std::ranges::find(operands_, operand) == operands_.end()) operands_.push_back(operand);
    }
  }

  void add(const ir::Node& node, const ElementwiseOperation& operation) {
    std::erase(operands_, node.output(0));
    members_.push_back({&node, operation});
    add_operands(members_.back());
  }

  // Tries to take in a node that computes an operand that no one else needs; false when there is none left to try.
  bool grow() {
    if (members_.size() == ElementwiseProgram::most_operations) return false;
    for (const ir::Value* operand : operands_) {
      const ir::Node* node = operand->producer();
      if (!node || refused_.count(node) || !is_inner(*operand)) continue;
      if (std::optional<ElementwiseOperation> operation = operation_of(editor_, *node)) {
        std::vector<ir::Value*> before = operands_;
        add(*node, *operation);
        const bool broadcasts = !may_broadcast_ && broadcast_operands() > 0;
        if (operands_.size() <= ElementwiseProgram::most_inputs && !broadcasts) return true;
        members_.pop_back();
        operands_ = std::move(before);
        refused_.insert(node);
        return true;
      }
      refused_.insert(node);
    }
    return false;
  }

  // Whether it is a result that only members need, and of the output's shape. On a device it may be smaller: computing
  // it again for each element that needs it takes less than a kernel of its own.
  bool is_inner(const ir::Value& value) const {
    return !editor_.is_pinned(value) && &value.graph() == &last_.graph() &&
           std::ranges::all_of(value.users(), [&](const ir::Node* user) { return has(user); }) &&
           (editor_.target().is_device ? editor_.shape(&value) != nullptr
                                       : editor_.same_shape(&value, last_.output(0)));
  }

  Editor& editor_;
  ir::Node& last_;
  bool may_broadcast_;
  std::vector<Member> members_;
  std::vector<ir::Value*> operands_;  // what members read and do not compute
  std::unordered_set<const ir::Node*> refused_;
};

}  // namespace

void fuse_elementwise(Editor& editor, ir::Graph& graph) {
  std::vector<ir::Node*> order;
  std::unordered_map<const ir::Node*, size_t> positions;
  for (ir::Node& node : graph.nodes()) {
    positions.emplace(&node, order.size());
    order.push_back(&node);
  }
  // From the end, so that what is not a part of a group by then is where one ends.
  for (size_t i = order.size(); i-- > 0;) {
    if (editor.is_removed(*order[i])) continue;
    std::optional<ElementwiseOperation> operation = operation_of(editor, *order[i]);
    if (!operation) continue;
    for (bool may_broadcast : {true, false}) {
      Group group(editor, *order[i], *operation, may_broadcast);
      if (!group.is_worth_it()) continue;
      group.fuse(positions);
      break;
    }
  }
}

}  // namespace tenon::passes
