#include <cmath>

#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_global_pool(Inference& i) {
  i.require_rank_at_least(0, 2);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  SymbolicShape result = i.shape(0);
  for (size_t axis = 2; axis < result.size(); ++axis) result[axis] = Dim(1);
  i.output(0, i.element(0), std::move(result));
}

Operator& global_pool(OperatorList& list, const char* name, std::vector<int> versions) {
  return list.add(name, std::move(versions))
      .input("X", "T")
      .output("Y", "T")
      .types("T", types::floats)
      .infer(infer_global_pool);
}

// Version 1 had p as a float.
void make_p_an_integer(ir::Node& node) {
  float p = node.float_attribute("p", 2);
  if (p != std::floor(p)) {
    throw Error(ErrorCode::unsupported, fmt::format("p is {}; only whole numbers have a meaning in newer versions", p));
  }
  node.set_attribute({"p", static_cast<int64_t>(p)});
}

}  // namespace

void define_global_pool(OperatorList& list) {
  global_pool(list, "GlobalAveragePool", {1, 22});
  global_pool(list, "GlobalMaxPool", {1, 22});
  global_pool(list, "GlobalLpPool", {1, 2, 22}).attribute("p", ir::AttributeKind::int_).lift(1, 2, make_p_an_integer);
}

}  // namespace tenon::ops
