#include <limits>
#include <map>

#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

using enum ElementType;

const std::map<ElementType, std::pair<double, double>> ranges = {
    {int8, {-128, 127}},
    {uint8, {0, 255}},
    {int16, {-32768, 32767}},
    {uint16, {0, 65535}},
    {int32, {std::numeric_limits<int32_t>::lowest(), std::numeric_limits<int32_t>::max()}},
};

// A scale or zero point, of which each counts for a block of elements, for one channel or for all, with the rank of x.
Term lined_up(Decomposition& d, Term x, size_t input, ElementType type) {
  Term value = cast(d.input(input), type);
  const int64_t block = d.node().int_attribute("block_size", 0);
  const int rank = d.rank(0);
  if (d.rank(input) == 0) return value;
  int64_t axis = d.node().int_attribute("axis", 1);
  axis = axis < 0 ? axis + rank : axis;
  if (block == 0) {
    if (d.known_size(input, 0) == 1 && d.rank(input) == 1) return d.add("Reshape", {value, d.ints({})});
    std::vector<int64_t> behind;
    for (int64_t i = axis + 1; i < rank; ++i) behind.push_back(i - axis);
    return behind.empty() ? value : unsqueeze(value, behind);
  }
  Term repeated = gather(value, d.indices(size_of(x, axis)) / d.number(static_cast<double>(block), int64), axis);
  return repeated;
}

// In float32: the types of scales are float32 or shorter.
void quantize_in_steps(Decomposition& d) {
  const ElementType type = d.node().output(0)->type.element;
  const auto range = ranges.find(type);
  if (range == ranges.end()) d.give_up("older operators do not know its output type");
  Term x = d.input(0);
  Term steps = d.add("Round", {cast(x, float32) / lined_up(d, x, 1, float32)});
  if (d.has_input(2)) steps = steps + lined_up(d, x, 2, float32);
  d.output(0, cast(min(max(steps, range->second.first), range->second.second), type));
}

void dequantize_in_steps(Decomposition& d) {
  if (!ranges.count(d.element(0))) d.give_up("older operators do not know its input type");
  Term x = d.input(0), steps = cast(x, float32);
  if (d.element(0) == int32) steps = cast(x, float64);
  if (d.has_input(2)) steps = steps - lined_up(d, x, 2, steps.type);
  d.output(0, steps * lined_up(d, x, 1, steps.type));
}

}  // namespace

void older_quantize(OlderForms& forms) {
  forms.add("QuantizeLinear", 28, quantize_in_steps);
  forms.add("DequantizeLinear", 28, dequantize_in_steps);
}

}  // namespace tenon::ops
