#include "model_builder.h"

#include "onnx/model_file.h"

namespace tenon {

ModelBuilder::ModelBuilder(int64_t opset) {
  model_.ir_version = 10;
  model_.opset_imports.add("", opset);
  model_.graph = std::make_unique<ir::Graph>();
  model_.graph->name = "test";
}

ir::Value& ModelBuilder::value(const std::string& name) {
  for (ir::Value& value : graph().values()) {
    if (value.name == name) return value;
  }
  return graph().add_value(name);
}

ModelBuilder& ModelBuilder::input(const std::string& name, ElementType type, std::optional<SymbolicShape> shape) {
  ir::Value& v = value(name);
  v.type = ir::Type::tensor(type, std::move(shape));
  graph().add_input(v);
  return *this;
}

ModelBuilder& ModelBuilder::initializer(const std::string& name, Tensor tensor) {
  auto constant = std::make_shared<ir::Constant>();
  constant->tensor = std::move(tensor);
  constant->name = name;
  graph().set_initializer(value(name), ir::ConstantPtr(std::move(constant)));
  return *this;
}

ir::Node& ModelBuilder::node(const std::string& op, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs, const std::string& name,
                             const std::string& domain) {
  ir::Node& node = graph().add_node(op, domain);
  node.name = name;
  for (size_t i = 0; i < inputs.size(); ++i) node.set_input(i, inputs[i].empty() ? nullptr : &value(inputs[i]));
  for (const std::string& output : outputs) {
    ir::Value* v = output.empty() ? nullptr : &value(output);
    // A name that has a definition already is defined a second time: for tests of just that.
    if (v && !v->is_undefined()) v = &graph().add_value(output);
    node.add_output(v);
  }
  return node;
}

ModelBuilder& ModelBuilder::output(const std::string& name, ir::Type type) {
  if (type.known()) value(name).type = type;
  graph().add_output(value(name), std::move(type));
  return *this;
}

std::string ModelBuilder::bytes() const { return onnx::serialize_model(model_); }

Session ModelBuilder::session(const SessionOptions& options) const {
  std::string model = bytes();
  return Session::from_bytes(std::as_bytes(std::span(model)), options);
}

std::string ModelBuilder::load_error() const {
  return error_of([&] { session(); });
}

}  // namespace tenon
