#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Samples the elements that each window reads with GridSample, and multiplies them with the weights.
void sample_and_multiply(Decomposition& d) {
  if (d.rank(0) != 4) d.give_up("its images do not have two axes");
  const int64_t height = d.known_size(1, 2), width = d.known_size(1, 3), elements = height * width;
  if (height < 0 || width < 0) d.give_up("the size of its weights is not known");
  const int64_t groups = d.node().int_attribute("group", 1), offset_groups = d.node().int_attribute("offset_group", 1);
  const std::vector<int64_t> strides = d.node().ints_attribute("strides", {1, 1}),
                             dilations = d.node().ints_attribute("dilations", {1, 1}),
                             pads = d.node().ints_attribute("pads", {0, 0, 0, 0});
  // In float64, so that GridSample's way to count coordinates moves none across an element.
  Term x = cast(d.input(0), ElementType::float64), weights = cast(d.input(1), x.type),
       offset = cast(d.input(2), x.type);
  Term rows = size_of(offset, 2), columns = size_of(offset, 3), batch = size_of(x, 0), channels = size_of(x, 1);
  auto shaped = [&](Term term, const std::vector<Term>& sizes) { return d.add("Reshape", {term, concat(sizes)}); };
  auto number = [&](int64_t n) { return d.ints({n}); };
  Term images = shaped(
      x, {batch * static_cast<double>(offset_groups), channels / number(offset_groups), size_of(x, 2), size_of(x, 3)});
  // [images, elements, 2, rows, columns]
  Term moved = shaped(offset, {number(-1), number(elements), number(2), rows, columns});
  // Where each element of each window is along an axis, as GridSample counts: from -1 to 1 from edge to edge.
  auto along = [&](size_t axis, Term count) {
    std::vector<int64_t> first;
    for (int64_t k = 0; k < elements; ++k)
      first.push_back((axis == 0 ? k / width : k % width) * dilations[axis] - pads[axis]);
    Term starts = cast(d.indices(count), x.type) * static_cast<double>(strides[axis]);
    Term at = unsqueeze(cast(d.ints(first), x.type), {1, 2}) + (axis == 0 ? unsqueeze(starts, {1}) : starts);
    at = at + gather(moved, d.number(static_cast<double>(axis), ElementType::int64), 2);
    return unsqueeze((at * 2 + 1) / cast(size_of(x, static_cast<int64_t>(axis) + 2), x.type) - 1, {4});
  };
  Term grid = concat({along(1, columns), along(0, rows)}, 4);
  grid = shaped(grid, {number(-1), rows * static_cast<double>(elements), columns, number(2)});
  Term samples = d.add("GridSample", {images, grid}, {{"align_corners", 0}});
  Term all_rows = rows * static_cast<double>(elements);
  if (d.has_input(4))
    samples = samples * shaped(cast(d.input(4), x.type), {size_of(images, 0), number(1), all_rows, columns});
  Term depth = channels / number(groups) * static_cast<double>(elements);
  Term windows = shaped(samples, {batch, number(groups), depth, rows * columns});
  Term kernels = shaped(weights, {number(groups), size_of(weights, 0) / number(groups), number(-1)});
  Term y = shaped(d.add("MatMul", {kernels, windows}), {batch, size_of(weights, 0), rows, columns});
  if (d.has_input(3)) y = y + unsqueeze(cast(d.input(3), x.type), {1, 2});
  d.output(0, y);
}

}  // namespace

void older_deform_conv(OlderForms& forms) { forms.add("DeformConv", 19, sample_and_multiply); }

}  // namespace tenon::ops
