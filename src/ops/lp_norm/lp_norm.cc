#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_lp_norm(Inference& i) {
  int64_t p = i.node().int_attribute("p", 2);
  if (p != 1 && p != 2) i.fail_with(ErrorCode::invalid_attribute, fmt::format("p is {}; it may be 1 or 2", p));
  if (i.has_shape(0)) i.axis(i.node().int_attribute("axis", -1), i.rank(0));
  i.same_as_input(0);
}

}  // namespace

void define_lp_norm(OperatorList& list) {
  list.add("LpNormalization", {1, 22})
      .input("input", "T")
      .output("output", "T")
      .types("T", types::floats)
      .attribute("axis", AttributeKind::int_)
      .attribute("p", AttributeKind::int_)
      .infer(infer_lp_norm);
}

}  // namespace tenon::ops
