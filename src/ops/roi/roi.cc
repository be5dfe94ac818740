#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void output_regions(Inference& i, const Dim& regions, int64_t height, int64_t width) {
  if (height < 1 || width < 1)
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("the output size is {} x {}; both must be at least 1", height, width));
  Dim channels = i.has_shape(0) ? i.shape(0)[1] : Dim::unknown();
  i.output(0, i.element(0), SymbolicShape{regions, channels, Dim(height), Dim(width)});
}

void infer_roi_align(Inference& i) {
  i.require_rank(0, 4);
  i.require_rank(1, 2);
  i.require_rank(2, 1);
  Dim regions = i.has_shape(1) ? i.shape(1)[0] : Dim::unknown();
  if (i.has_shape(1)) i.equal(i.shape(1)[1], 4, "the last axis of rois and the coordinates of a region");
  if (i.has_shape(2)) regions = i.equal(regions, i.shape(2)[0], "the numbers of rois and batch_indices");
  output_regions(i, regions, i.node().int_attribute("output_height", 1), i.node().int_attribute("output_width", 1));
}

void infer_max_roi_pool(Inference& i) {
  i.require_rank(0, 4);
  i.require_rank(1, 2);
  if (i.has_shape(1))
    i.equal(i.shape(1)[1], 5, "the last axis of rois and the batch index and coordinates of a region");
  std::vector<int64_t> pooled = i.node().ints_attribute("pooled_shape");
  if (pooled.size() != 2)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("pooled_shape has {} values; it must have 2", pooled.size()));
  output_regions(i, i.has_shape(1) ? i.shape(1)[0] : Dim::unknown(), pooled[0], pooled[1]);
}

// Version 16 shifted regions by half a pixel unless told otherwise.
void keep_unshifted(ir::Node& node) {
  node.set_attribute({"coordinate_transformation_mode", std::string("output_half_pixel")});
}

std::string unshifted_only(ir::Node& node) {
  if (node.string_attribute("coordinate_transformation_mode", "half_pixel") != "output_half_pixel")
    return "before version 16 regions were not shifted by half a pixel";
  node.remove_attribute("coordinate_transformation_mode");
  return {};
}

}  // namespace

void define_roi(OperatorList& list) {
  list.add("RoiAlign", {10, 16, 22})
      .input("X", "T1")
      .input("rois", "T1")
      .input("batch_indices", TypeSet{ElementType::int64})
      .output("Y", "T1")
      .types("T1", types::floats)
      .attribute("coordinate_transformation_mode", AttributeKind::string)
      .attribute("mode", AttributeKind::string)
      .attribute("output_height", AttributeKind::int_)
      .attribute("output_width", AttributeKind::int_)
      .attribute("sampling_ratio", AttributeKind::int_)
      .attribute("spatial_scale", AttributeKind::float_)
      .infer(infer_roi_align)
      .lift(10, 16, keep_unshifted)
      .lower(16, 10, unshifted_only);
  list.add("MaxRoiPool", {1, 22})
      .input("X", "T")
      .input("rois", "T")
      .output("Y", "T")
      .types("T", types::floats)
      .required_attribute("pooled_shape", AttributeKind::ints)
      .attribute("spatial_scale", AttributeKind::float_)
      .infer(infer_max_roi_pool);
}

}  // namespace tenon::ops
