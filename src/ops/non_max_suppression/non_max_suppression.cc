#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_non_max_suppression(Inference& i) {
  i.require_rank(0, 3);
  i.require_rank(1, 3);
  if (i.has_shape(0)) i.equal(i.shape(0)[2], 4, "the last axis of boxes and the coordinates of a box");
  if (i.has_shape(0) && i.has_shape(1)) {
    i.equal(i.shape(0)[0], i.shape(1)[0], "the batches of boxes and scores");
    i.equal(i.shape(0)[1], i.shape(1)[2], "the numbers of boxes in boxes and scores");
  }
  i.output(0, ElementType::int64, SymbolicShape{Dim::unknown(), Dim(3)});
}

}  // namespace

void define_non_max_suppression(OperatorList& list) {
  constexpr TypeSet floats{ElementType::float32}, ints{ElementType::int64};
  list.add("NonMaxSuppression", {10, 11})
      .input("boxes", floats)
      .input("scores", floats)
      .optional_input("max_output_boxes_per_class", ints)
      .optional_input("iou_threshold", floats)
      .optional_input("score_threshold", floats)
      .output("selected_indices", ints)
      .attribute("center_point_box", ir::AttributeKind::int_)
      .infer(infer_non_max_suppression);
}

}  // namespace tenon::ops
