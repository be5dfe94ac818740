#include "tools/bisect/float_nodes.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tools/graph_edit.h"

namespace tenon::tools {
namespace {

bool is_quantize(const ir::Node* node) { return node && node->op_type == "QuantizeLinear"; }
bool is_dequantize(const ir::Node* node) { return node && node->op_type == "DequantizeLinear"; }

bool is_quantized(const ir::Node& node) {
  if (is_quantize(&node) || is_dequantize(&node)) return false;
  return std::ranges::any_of(node.inputs(),
                             [](const ir::Value* input) { return input && is_dequantize(input->producer()); });
}

std::string output_of(const ir::Node& node) { return node.output(0) ? node.output(0)->name : ""; }
std::string name_of(const ir::Node& node) { return node.name.empty() ? output_of(node) : node.name; }

// What `value` was before it was quantized and dequantized; null if it was not.
ir::Value* before_quantizing(const ir::Value& value) {
  if (!is_dequantize(value.producer()) || !value.producer()->input(0)) return nullptr;
  const ir::Node* quantize = value.producer()->input(0)->producer();
  return is_quantize(quantize) ? quantize->input(0) : nullptr;
}

class Floats {
 public:
  Floats(ir::Graph& graph, const ir::Graph& original) : graph_(graph) {
    for (const ir::Node& node : original.nodes()) {
      by_output_[output_of(node)] = &node;
      if (!node.name.empty()) by_name_[node.name] = &node;
    }
  }

  void keep(ir::Node& node) {
    for (size_t i = 0; i < node.input_count(); ++i) {
      ir::Value* input = node.input(i);
      if (!input || !is_dequantize(input->producer())) continue;
      ir::Value* before = before_quantizing(*input);
      before = before ? activated(node, i, *before) : weight_of(node, i);
      if (before) node.set_input(i, before);
    }
    for (ir::Value* output : node.outputs()) {
      if (output) hand_on(*output);
    }
  }

 private:
  // The same node in the original, null if there is none.
  const ir::Node* original_of(const ir::Node& node) const {
    const auto named = by_name_.find(node.name);
    if (named != by_name_.end()) return named->second->op_type == node.op_type ? named->second : nullptr;
    const auto found = by_output_.find(output_of(node));
    return found != by_output_.end() && found->second->op_type == node.op_type ? found->second : nullptr;
  }

  // What the original has there; null if nothing.
  const ir::Value* original_input(const ir::Node& node, size_t i) const {
    const ir::Node* original = original_of(node);
    return original ? original->input(i) : nullptr;
  }

  // The same if it is a constant.
  ir::Value* weight_of(const ir::Node& node, size_t i) {
    const ir::Value* weight = original_input(node, i);
    return weight && weight->is_fixed() ? &constant(*weight) : nullptr;
  }

  ir::Value& constant(const ir::Value& weight) {
    ir::Value*& here = added_[&weight];
    if (!here) here = &graph_.add_constant(weight.constant()->tensor, weight.name);
    return *here;
  }

  // Quantizers take out a Relu or Clip whose work the range of a QuantizeLinear does: `value`, or what such a node
  // makes of it.
  ir::Value* activated(ir::Node& node, size_t i, ir::Value& value) {
    const ir::Value* expected = original_input(node, i);
    const ir::Node* taken_out = expected ? expected->producer() : nullptr;
    if (!taken_out || (taken_out->op_type != "Relu" && taken_out->op_type != "Clip")) return &value;
    if (!value.producer() || original_of(*value.producer()) != taken_out->input(0)->producer()) return &value;
    ir::Value*& here = added_[expected];
    if (here) return here;
    ir::Node& again = graph_.add_node(taken_out->op_type, taken_out->domain, &node);
    again.name = taken_out->name;
    again.add_input(&value);
    for (size_t k = 1; k < taken_out->input_count(); ++k) {
      const ir::Value* bound = taken_out->input(k);
      again.add_input(bound && bound->is_fixed() ? &constant(*bound) : nullptr);
    }
    std::map<const ir::Value*, ir::Value*> none;
    for (const ir::Attribute& attribute : taken_out->attributes) again.attributes.push_back(ir::clone(attribute, none));
    here = &graph_.add_value(expected->name, /*fresh=*/true);
    again.add_output(here);
    return here;
  }

  // Outputs of the graph that the node makes are no longer quantized, either.
  void hand_on(ir::Value& made) {
    for (ir::Value* output : graph_.outputs()) {
      if (before_quantizing(*output) != &made) continue;
      ir::Node& dequantize = *output->producer();
      dequantize.op_type = "Identity";
      dequantize.domain.clear();
      dequantize.attributes.clear();
      dequantize.remove_trailing_inputs(1);
      dequantize.set_input(0, &made);
    }
  }

  ir::Graph& graph_;
  std::unordered_map<std::string, const ir::Node*> by_name_, by_output_;  // nodes of the original
  std::unordered_map<const ir::Value*, ir::Value*> added_;                // what is now here, of the original's values
};

}  // namespace

std::vector<QuantizedNode> quantized_nodes(const OnnxModel& quantized) {
  std::vector<QuantizedNode> nodes;
  for (const ir::Node& node : quantized.ir().graph->nodes()) {
    if (is_quantized(node)) nodes.push_back({name_of(node), output_of(node)});
  }
  return nodes;
}

OnnxModel with_float_nodes(const OnnxModel& quantized, const OnnxModel& original,
                           const std::vector<std::string>& nodes) {
  const std::unordered_set<std::string> wanted(nodes.begin(), nodes.end());
  std::unique_ptr<ir::Model> model = quantized.ir().clone();
  Floats floats(*model->graph, *original.ir().graph);
  for (ir::Node& node : model->graph->nodes()) {
    if (is_quantized(node) && wanted.contains(name_of(node))) floats.keep(node);
  }
  std::vector<ModelChange> changes;
  remove_unneeded(*model->graph, changes);
  return quantized.with(std::move(model));
}

}  // namespace tenon::tools
