#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_mean_variance_norm(Inference& i) {
  if (i.has_shape(0)) i.axes(i.node().ints_attribute("axes", {0, 2, 3}), i.rank(0));
  i.same_as_input(0);
}

}  // namespace

void define_mean_variance_norm(OperatorList& list) {
  list.add("MeanVarianceNormalization", {9, 13})
      .input("X", "T")
      .output("Y", "T")
      .types("T", types::floats)
      .attribute("axes", ir::AttributeKind::ints)
      .infer(infer_mean_variance_norm);
}

}  // namespace tenon::ops
