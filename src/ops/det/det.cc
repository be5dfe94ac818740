#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_det(Inference& i) {
  i.require_rank_at_least(0, 2);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  const SymbolicShape& x = i.shape(0);
  i.equal(x[x.size() - 2], x.back(), "the rows and columns of the matrices");
  i.output(0, i.element(0), SymbolicShape(x.begin(), x.end() - 2));
}

}  // namespace

void define_det(OperatorList& list) {
  list.add("Det", {11, 22}).input("X", "T").output("Y", "T").types("T", types::floats).infer(infer_det);
}

}  // namespace tenon::ops
