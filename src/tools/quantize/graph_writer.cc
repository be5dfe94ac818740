#include "tools/quantize/graph_writer.h"

#include "base/fail.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "ops/operator.h"

namespace tenon::tools {

ir::Value& add_operator(ir::Graph& graph, const std::string& op, const std::string& domain,
                        std::initializer_list<ir::Value*> inputs, const std::string& name) {
  ir::Node& node = graph.add_node(op, domain);
  node.origin = nullptr;
  for (ir::Value* input : inputs) node.add_input(input);
  while (node.input_count() > 0 && !node.input(node.input_count() - 1))
    node.remove_trailing_inputs(node.input_count() - 1);
  ir::Value& output = graph.add_value(name, /*fresh=*/true);
  node.add_output(&output);
  node.name = output.name;
  return output;
}

void replace_input(ir::Node& node, const ir::Value& old, ir::Value& by) {
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (node.input(i) == &old) node.set_input(i, &by);
  }
}

void import_microsoft(ir::Model& model) {
  const std::string domain(ops::microsoft);
  if (model.opset_imports.version(domain) == 0) model.opset_imports.add(domain, 1);
}

std::string quantize_domain(ir::Model& model, ElementType type) {
  constexpr int64_t has_all_types = 21;
  const bool is_byte = type == ElementType::int8 || type == ElementType::uint8;
  if (is_byte || model.opset_imports.version("") >= has_all_types) return "";
  if (bits_of(type) != 16) {
    throw Error(ErrorCode::unsupported,
                fmt::format("opset {} has no {} codes", model.opset_imports.version(""), name_of(type)),
                "convert the model first: tenon convert --opset 21");
  }
  import_microsoft(model);
  return std::string(ops::microsoft);
}

void finish(ir::Model& model) {
  ir::for_each_graph(*model.graph, [](ir::Graph& graph) {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto node = graph.nodes().begin(); node != graph.nodes().end();) {
        ir::Node& candidate = *node++;
        const bool is_ours = candidate.op_type == "Transpose" || candidate.op_type == "DequantizeLinear";
        const ir::Value* output = candidate.output(0);
        if (!is_ours || !output->users().empty() || std::ranges::find(graph.outputs(), output) != graph.outputs().end())
          continue;
        graph.remove_node(candidate);
        changed = true;
      }
    }
    graph.remove_unused_initializers([](const ir::Value& value) { return !value.is_graph_input(); });
  });
  ir::verify_and_sort(*model.graph);
}

int64_t constant_bytes(const ir::Model& model) {
  int64_t bytes = 0;
  ir::for_each_graph(*model.graph, [&](const ir::Graph& graph) {
    for (const ir::Value* value : graph.initializers()) {
      if (value->constant()) bytes += value->constant()->tensor.bytes();
    }
    for (const ir::Node& node : graph.nodes()) {
      if (node.op_type == "Constant" && node.tensor_attribute("value"))
        bytes += node.tensor_attribute("value")->bytes();
    }
  });
  return bytes;
}

}  // namespace tenon::tools
