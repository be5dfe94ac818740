#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

// The positions of blocks' elements along one axis of the padded image: [elements, blocks], lined up with the axes of
// all elements and all blocks.
Term positions(Decomposition& d, int64_t axis, int64_t axes, Term block, Term padded, int64_t dilation,
               int64_t stride) {
  Term reach = (block - 1) * static_cast<double>(dilation) + 1;
  Term blocks = (padded - reach) / d.ints({stride}) + 1;
  auto along = [&](Term count, int64_t place, int64_t step) {
    std::vector<int64_t> behind;
    for (int64_t i = 1; i < 2 * axes - place; ++i) behind.push_back(i);
    Term numbers = d.indices(count) * static_cast<double>(step);
    return behind.empty() ? numbers : unsqueeze(numbers, behind);
  };
  return along(block, axis, dilation) + along(blocks, axes + axis, stride);
}

// Adds the elements of blocks to the padded image, whose pixels are rows here, and cuts the padding off.
void add_to_rows(Decomposition& d) {
  if (!types::numbers.contains(d.element(0))) d.give_up("elements of this type are not computed with");
  const int64_t axes = d.known_size(1, 0);
  if (axes <= 0) d.give_up("the number of axes of the image is not known");
  const auto count = static_cast<size_t>(axes);
  const std::vector<int64_t> ones(count, 1), dilations = d.node().ints_attribute("dilations", ones),
                                             strides = d.node().ints_attribute("strides", ones),
                                             pads = d.node().ints_attribute("pads", std::vector<int64_t>(2 * count, 0));
  if (dilations.size() != count || strides.size() != count || pads.size() != 2 * count)
    d.give_up("its attributes do not fit its image");
  const std::vector<int64_t> before(pads.begin(), pads.begin() + axes), after(pads.begin() + axes, pads.end());
  Term x = d.wide_input(0), image = d.input(1), blocks = d.input(2);
  Term padded = image + d.ints(before) + d.ints(after);
  auto element = [&](Term list, int64_t i) { return gather(list, d.ints({i}), 0); };
  Term pixel;
  for (int64_t i = 0; i < axes; ++i) {
    const auto at = static_cast<size_t>(i);
    Term along = positions(d, i, axes, element(blocks, i), element(padded, i), dilations[at], strides[at]);
    pixel = pixel ? pixel * element(padded, i) + along : along;
  }
  Term elements = reduce("ReduceProd", blocks, d.ints({0}));
  Term batch = size_of(x, 0), channels = size_of(x, 1) / elements;
  Term rows = d.add("Reshape", {x, concat({batch, channels, elements, d.ints({-1})})});
  rows = d.add("Reshape", {transpose(rows, {2, 3, 0, 1}), concat({d.ints({-1}), batch * channels})});
  Term pixels = reduce("ReduceProd", padded, d.ints({0}));
  Term empty = expand(x.number(0), concat({pixels, batch * channels}));
  Term sums = d.add("ScatterND", {empty, d.add("Reshape", {pixel, d.ints({-1, 1})}), rows},
                    {{"reduction", std::string("add")}});
  Term whole = d.add("Reshape", {sums, concat({padded, batch, channels})});
  Term cut = d.add("Slice", {whole, d.ints(before), d.ints(before) + image, d.ints(numbers_up_to(axes))});
  std::vector<int64_t> order{axes, axes + 1};
  for (int64_t i = 0; i < axes; ++i) order.push_back(i);
  d.output(0, transpose(cut, order));
}

}  // namespace

void older_col2im(OlderForms& forms) { forms.add("Col2Im", 18, add_to_rows); }

}  // namespace tenon::ops
