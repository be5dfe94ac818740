#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_mean_variance_norm(Inference& i) {
  if (i.has_shape(0)) i.axes(i.node().ints_attribute("axes", {0, 2, 3}), i.rank(0));
  i.same_as_input(0);
}

void decompose_mean_variance_norm(Decomposition& d) {
  Term x = d.wide_input(0), axes = d.ints(d.node().ints_attribute("axes", {0, 2, 3}));
  auto mean = [&](Term values) { return d.add("ReduceMean", {values, axes}, {{"noop_with_empty_axes", 1}}); };
  Term centered = x - mean(x);
  // Keeps the deviation of constant data from being zero.
  constexpr double least_deviation = 1e-9;
  d.output(0, centered / (sqrt(mean(centered * centered)) + least_deviation));
}

}  // namespace

void define_mean_variance_norm(OperatorList& list) {
  list.add("MeanVarianceNormalization", {9, 13})
      .input("X", "T")
      .output("Y", "T")
      .types("T", types::floats)
      .attribute("axes", ir::AttributeKind::ints)
      .infer(infer_mean_variance_norm)
      .decompose(decompose_mean_variance_norm);
}

}  // namespace tenon::ops
