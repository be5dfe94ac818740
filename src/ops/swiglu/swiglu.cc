#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_swiglu(Inference& i) {
  if (!i.has_shape(0) || !i.has_shape(1)) return i.output(0, i.element(0), i.type(i.has_shape(0) ? 0 : 1).shape);
  i.require_rank(1, i.rank(0));
  SymbolicShape shape;
  for (size_t axis = 0; axis < i.shape(0).size(); ++axis)
    shape.push_back(i.equal(i.shape(0)[axis], i.shape(1)[axis], fmt::format("axis {} of A and B", axis)));
  i.output(0, i.element(0), std::move(shape));
}

void decompose_swiglu(Decomposition& d) {
  // B has the shape of A and is not broadcast.
  Term a = d.wide_input(0), b = reshape(d.wide_input(1), shape_of(a));
  d.output(0, a * sigmoid(a * d.node().float_attribute("alpha", 1)) * b);
}

}  // namespace

void define_swiglu(OperatorList& list) {
  list.add("SwiGLU", {28})
      .input("A", "T")
      .input("B", "T")
      .output("Y", "T")
      .types("T", types::floats)
      .attribute("alpha", ir::AttributeKind::float_)
      .infer(infer_swiglu)
      .decompose(decompose_swiglu);
}

}  // namespace tenon::ops
