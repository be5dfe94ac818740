#include "ops/elementwise.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

Dim choose(std::span<const Dim> v) {
  if (v[0].is_known()) return v[0].value() ? v[1] : v[2];
  return v[1] == v[2] ? v[1] : Dim::unknown();
}

}  // namespace

void define_where(OperatorList& list) {
  list.add("Where", {9, 16})
      .input("condition", types::bools).input("X", "T").input("Y", "T").output("output", "T")
      .types("T", types::movable)
      .infer([](Inference& i) {
        infer_broadcast(i, i.element(1));
        infer_values(i, choose);
      });
}

}  // namespace tenon::ops
