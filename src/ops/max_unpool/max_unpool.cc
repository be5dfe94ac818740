#include "ops/operator.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_max_unpool(Inference& i) {
  WindowAttributes window(i.node());
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank_at_least(0, 3);
  i.require_rank(1, i.rank(0));
  i.require_rank(2, 1);
  const SymbolicShape& x = i.shape(0);
  const int spatial = i.rank(0) - 2;
  window.check(spatial);
  for (size_t axis = 0; i.has_shape(1) && axis < x.size(); ++axis)
    i.equal(x[axis], i.shape(1)[axis], "the shapes of X and I");
  SymbolicShape result;
  if (i.has_input(2)) {
    auto sizes = i.values(2);
    if (!sizes) return i.output(0, i.element(0), std::nullopt);
    if (sizes->size() != x.size())
      i.fail("output_shape has {} elements for an input of rank {}", sizes->size(), x.size());
    result = SymbolicShape(sizes->begin(), sizes->end());
    i.equal(x[0], result[0], "the batches of X and output_shape");
    i.equal(x[1], result[1], "the channels of X and output_shape");
  } else {
    result = {x[0], x[1]};
    for (int d = 0; d < spatial; ++d)
      result.push_back(window.axis(d, spatial).transposed_output(x[static_cast<size_t>(d + 2)]));
  }
  for (const Dim& dim : result) {
    if (dim.is_known() && dim.value() < 0) i.fail("the output has the shape {}", to_string(result));
  }
  i.output(0, i.element(0), std::move(result));
}

}  // namespace

void define_max_unpool(OperatorList& list) {
  list.add("MaxUnpool", {9, 11, 22})
      .input("X", "T1")
      .input("I", TypeSet{ElementType::int64})
      .optional_input("output_shape", TypeSet{ElementType::int64})
      .output("output", "T1")
      .types("T1", types::floats)
      .required_attribute("kernel_shape", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints)
      .infer(infer_max_unpool);
}

}  // namespace tenon::ops
