#include <algorithm>

#include "ops/adapters.h"
#include "ops/elementwise.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

Dim largest(std::span<const Dim> v) {
  Dim result = v[0];
  for (const Dim& dim : v.subspan(1)) result = max(result, dim);
  return result;
}

Dim smallest(std::span<const Dim> v) {
  Dim result = v[0];
  for (const Dim& dim : v.subspan(1)) result = min(result, dim);
  return result;
}

std::string one_shape(ir::Node& node) {
  auto same = [&](const ir::Value* value) {
    const auto &first = node.input(0)->type.shape, &shape = value->type.shape;
    return value == node.input(0) || (first && shape && *first == *shape);
  };
  return std::ranges::all_of(node.inputs(), same) ? "" : "before version 8 its inputs had to have one shape";
}

}  // namespace

void define_variadic(OperatorList& list) {
  auto add = [&](const char* name, std::vector<int> versions, TypeSet types, ValueFunction values) {
    list.add(name, std::move(versions))
        .variadic_input("inputs", "T")
        .output("output", "T")
        .types("T", types)
        .infer([values](Inference& i) {
          infer_broadcast(i, i.element(0));
          if (values) infer_values(i, values);
        })
        .lift(1, 6, drop_consumed_inputs)
        .lower(8, 6, one_shape);
  };
  add("Max", {1, 6, 8, 12, 13}, types::numbers, largest);
  add("Min", {1, 6, 8, 12, 13}, types::numbers, smallest);
  add("Sum", {1, 6, 8, 13}, types::floats, nullptr);
  add("Mean", {1, 6, 8, 13}, types::floats, nullptr);
}

}  // namespace tenon::ops
