#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_lrn(Inference& i) {
  i.require_rank_at_least(0, 2);
  int64_t size = i.node().int_attribute("size", 0);
  if (size < 1) i.fail_with(ErrorCode::invalid_attribute, fmt::format("size is {}; it must be at least 1", size));
  i.same_as_input(0);
}

}  // namespace

void define_lrn(OperatorList& list) {
  list.add("LRN", {1, 13})
      .input("X", "T")
      .output("Y", "T")
      .types("T", types::floats)
      .attribute("alpha", AttributeKind::float_)
      .attribute("beta", AttributeKind::float_)
      .attribute("bias", AttributeKind::float_)
      .required_attribute("size", AttributeKind::int_)
      .infer(infer_lrn);
}

}  // namespace tenon::ops
