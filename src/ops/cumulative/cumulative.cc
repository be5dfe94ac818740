#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_cumulative(Inference& i) {
  if (i.has_shape(1) && i.rank(1) > 1) i.fail("the axis must be one number");
  if (auto axis = i.ints(1); axis && i.has_shape(0)) {
    if (axis->size() != 1) i.fail("the axis must be one number, there are {}", axis->size());
    i.axis((*axis)[0], i.rank(0));
  }
  i.same_as_input(0);
}

}  // namespace

void define_cumulative(OperatorList& list) {
  auto add = [&](const char* name, std::vector<int> versions) {
    list.add(name, std::move(versions))
        .input("x", "T").input("axis", types::index).output("y", "T")
        .types("T", types::floats | TypeSet{ElementType::int32, ElementType::int64, ElementType::uint32, ElementType::uint64})
        .attribute("exclusive", ir::AttributeKind::int_)
        .attribute("reverse", ir::AttributeKind::int_)
        .infer(infer_cumulative);
  };
  add("CumSum", {11, 14});
  add("CumProd", {26});
}

}  // namespace tenon::ops
