#include <cmath>

#include "ops/operator.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_pool(Inference& i) {
  WindowAttributes window(i.node());
  std::optional<SymbolicShape> result;
  if (i.has_shape(0)) {
    result = window_output(i, window, {});
    result->insert(result->begin(), i.shape(0)[1]);
    result->insert(result->begin(), i.shape(0)[0]);
  }
  i.output(0, i.element(0), result);
  i.output(1, ElementType::int64, std::move(result));
}

Operator& pool(OperatorList& list, const char* name, std::vector<int> versions, TypeSet types) {
  return list.add(name, std::move(versions))
      .input("X", "T")
      .output("Y", "T")
      .types("T", types)
      .attribute("auto_pad", AttributeKind::string)
      .attribute("ceil_mode", AttributeKind::int_)
      .attribute("dilations", AttributeKind::ints)
      .required_attribute("kernel_shape", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints)
      .infer(infer_pool);
}

// Version 1 had p as a float.
void make_p_an_integer(ir::Node& node) {
  float p = node.float_attribute("p", 2);
  if (p != std::floor(p)) {
    throw Error(ErrorCode::unsupported, fmt::format("p is {}; only whole numbers have a meaning in newer versions", p));
  }
  node.set_attribute({"p", static_cast<int64_t>(p)});
}

std::string without_indices(ir::Node& node) { return node.output(1) ? "its indices came with version 8" : ""; }

}  // namespace

void define_pool(OperatorList& list) {
  pool(list, "MaxPool", {1, 8, 10, 11, 12, 22}, types::floats | TypeSet{ElementType::int8, ElementType::uint8})
      .optional_output("Indices", TypeSet{ElementType::int64})
      .lower(8, 1, without_indices)
      .attribute("storage_order", AttributeKind::int_)
      .attribute_since(8, "storage_order", 0)
      .attribute_since(10, "ceil_mode", 0)
      .attribute_since(10, "dilations");
  pool(list, "AveragePool", {1, 7, 10, 11, 19, 22}, types::floats)
      .attribute("count_include_pad", AttributeKind::int_)
      .attribute_since(7, "count_include_pad", 0)
      .attribute_since(10, "ceil_mode", 0)
      .attribute_since(19, "dilations");
  pool(list, "LpPool", {1, 2, 11, 18, 22}, types::floats)
      .attribute("p", AttributeKind::int_)
      .lift(1, 2, make_p_an_integer)
      .attribute_since(18, "ceil_mode", 0)
      .attribute_since(18, "dilations");
}

}  // namespace tenon::ops
