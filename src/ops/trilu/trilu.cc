#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_trilu(Inference& i) {
  i.require_rank_at_least(0, 2);
  i.same_as_input(0);
}

}  // namespace

void define_trilu(OperatorList& list) {
  list.add("Trilu", {14})
      .input("input", "T")
      .optional_input("k", TypeSet{ElementType::int64})
      .output("output", "T")
      .types("T", types::movable)
      .attribute("upper", ir::AttributeKind::int_)
      .infer(infer_trilu);
}

}  // namespace tenon::ops
