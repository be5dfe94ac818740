#include "ops/constant/constant.h"

#include "base/fail.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

template <typename T>
Tensor vector_of(const std::vector<T>& values) {
  return Tensor(Shape{static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

void infer_constant(Inference& i) {
  if (i.node().attribute("sparse_value")) return i.output(0, ElementType::undefined, std::nullopt);
  if (const Tensor* value = i.node().tensor_attribute("value")) return i.output(0, Fact::of(*value));
  Tensor content = constant_content(i.node());
  i.output(0, content.type(), symbolic(content.shape()));
}

}  // namespace

Tensor constant_content(const ir::Node& node) {
  if (node.attributes.size() != 1) {
    fail(ErrorCode::invalid_attribute, "Constant takes one attribute, {} are given", node.attributes.size());
  }
  const std::string& name = node.attributes[0].name;
  if (name == "value") return *node.tensor_attribute(name);
  if (name == "value_float") return Tensor::scalar(node.float_attribute(name, 0));
  if (name == "value_int") return Tensor::scalar(node.int_attribute(name, 0));
  if (name == "value_string") return Tensor::scalar(node.string_attribute(name, ""));
  if (name == "value_floats") return vector_of(node.floats_attribute(name));
  if (name == "value_ints") return vector_of(node.ints_attribute(name));
  if (name == "value_strings") return vector_of(node.strings_attribute(name));
  fail(ErrorCode::unsupported, "a Constant with attribute '{}' is not run as a node", name);
}

void define_constant(OperatorList& list) {
  list.add("Constant", {1, 9, 11, 12, 13, 19, 21, 23, 24, 25})
      .output("output", types::all)
      .attribute("value", AttributeKind::tensor)
      .attribute("sparse_value", AttributeKind::sparse_tensor)
      .attribute("value_float", AttributeKind::float_)
      .attribute("value_floats", AttributeKind::floats)
      .attribute("value_int", AttributeKind::int_)
      .attribute("value_ints", AttributeKind::ints)
      .attribute("value_string", AttributeKind::string)
      .attribute("value_strings", AttributeKind::strings)
      .infer(infer_constant)
      .attribute_since(11, "sparse_value")
      .attribute_since(12, "value_float")
      .attribute_since(12, "value_floats")
      .attribute_since(12, "value_int")
      .attribute_since(12, "value_ints")
      .attribute_since(12, "value_string")
      .attribute_since(12, "value_strings");
}

}  // namespace tenon::ops
