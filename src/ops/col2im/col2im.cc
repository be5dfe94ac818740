#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_col2im(Inference& i) {
  i.require_rank(0, 3);
  i.require_rank(1, 1);
  i.require_rank(2, 1);
  auto image = i.values(1), block = i.values(2);
  if (!image) return i.output(0, i.element(0), std::nullopt);
  Dim channels = Dim::unknown();
  if (block && i.has_shape(0)) {
    Dim elements = 1;
    for (const Dim& dim : *block) elements = elements * dim;
    const Dim& rows = i.shape(0)[1];
    if (rows.is_known() && elements.is_known() && (elements.value() <= 0 || rows.value() % elements.value() != 0)) {
      i.fail("{} rows of the input are no multiple of the {} elements of a block", rows.value(), elements.value());
    }
    channels = exact_div(rows, elements);
  }
  SymbolicShape result{i.has_shape(0) ? i.shape(0)[0] : Dim::unknown(), channels};
  for (const Dim& dim : *image) {
    if (dim.is_known() && dim.value() < 0) i.fail("image_shape has {}", dim.value());
    result.push_back(dim);
  }
  i.output(0, i.element(0), std::move(result));
}

}  // namespace

void define_col2im(OperatorList& list) {
  list.add("Col2Im", {18})
      .input("input", "T")
      .input("image_shape", TypeSet{ElementType::int64})
      .input("block_shape", TypeSet{ElementType::int64})
      .output("output", "T")
      .types("T", types::movable)
      .attribute("dilations", AttributeKind::ints)
      .attribute("pads", AttributeKind::ints)
      .attribute("strides", AttributeKind::ints)
      .infer(infer_col2im);
}

}  // namespace tenon::ops
