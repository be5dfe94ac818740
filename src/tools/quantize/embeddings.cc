#include "tools/quantize/embeddings.h"

#include "tools/quantize/graph_writer.h"

namespace tenon::tools {
namespace {

ir::Value& gather(ir::Graph& graph, ir::Value& table, ir::Value& rows, const std::string& name) {
  ir::Value& taken = add_operator(graph, "Gather", "", {&table, &rows}, name);
  taken.producer()->set_attribute({"axis", int64_t{0}});
  return taken;
}

ir::Value& as_floats(ir::Graph& graph, ir::Value& codes, const std::string& name) {
  ir::Value& floats = add_operator(graph, "Cast", "", {&codes}, name);
  floats.producer()->set_attribute({"to", static_cast<int64_t>(ElementType::float32)});
  return floats;
}

// The node becomes the product of the rows' codes and scales, so that its result keeps its name.
void write_embedding(ir::Node& node, ConstantCoder& coder) {
  ir::Value &table = *node.input(0), &rows = *node.input(1);
  ir::Graph& graph = node.graph();
  const std::string name = node.output(0)->name;
  const ConstantCoder::Coded& coded = coder.code(table, 0);
  const int64_t count = table.constant()->tensor.dim(0);
  const auto column = [&](ir::Value& values, const char* what) -> ir::Value& {
    return gather(graph, graph.add_constant(values.constant()->tensor.reshaped(Shape{count, 1}), table.name + what),
                  rows, name + what);
  };
  ir::Value* floats = &as_floats(graph, gather(graph, *coded.codes, rows, name + "/codes"), name + "/cast");
  if (coded.zeros) {
    ir::Value& zeros = as_floats(graph, column(*coded.zeros, "/row_zero_point"), name + "/zero_cast");
    floats = &add_operator(graph, "Sub", "", {floats, &zeros}, name + "/centered");
  }
  ir::Value& scales = column(*coded.scale, "/row_scale");
  node.op_type = "Mul";
  node.attributes.clear();
  node.remove_trailing_inputs(0);
  node.add_input(floats);
  node.add_input(&scales);
}

}  // namespace

void write_embeddings(const Plan& plan, ConstantCoder& coder) {
  for (const Plan::Entry& entry : plan.entries()) {
    if (entry.is_quantized && entry.role == Role::embedding) write_embedding(*entry.node, coder);
  }
}

}  // namespace tenon::tools
