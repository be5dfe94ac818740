#include <vector>

#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

// One of the elements along an axis that make up a sample.
struct Tap {
  Term index, weight, inside;  // the last two may hold nothing: a weight of 1, always inside
};

// Finds the taps of samples along one axis; all numbers are of the type in which is computed.
class Axis {
 public:
  Axis(const Decomposition& d, Term size) : size_(size), align_(d.node().int_attribute("align_corners", 0) != 0) {
    mode_ = d.node().string_attribute("mode", "linear");
    padding_ = d.node().string_attribute("padding_mode", "zeros");
  }

  std::vector<Tap> taps(Term normalized) const {
    Term x = not_far_outside(position(normalized));
    if (mode_ == "nearest") x = x.decomposition->add("Round", {x});
    if (mode_ != "cubic") x = padded(x);
    if (mode_ == "nearest") return {tap(x, {})};
    Term below = floor(x), r = x - below;
    if (mode_ == "linear") return {tap(below, 1 - r), tap(below + 1, r)};
    return {tap(below - 1, outer(r + 1)), tap(below, inner(r)), tap(below + 1, inner(1 - r)),
            tap(below + 2, outer(2 - r))};
  }

 private:
  static Term floor(Term x) { return x.decomposition->add("Floor", {x}); }

  Term position(Term x) const { return align_ ? (x + 1) / 2 * (size_ - 1) : ((x + 1) * size_ - 1) / 2; }

  // What is far outside, or not a number, as far outside as needed.
  Term not_far_outside(Term x) const {
    constexpr double far = 1 << 22;
    Term low = where(greater(x, -far), x, padding_ == "zeros" ? -far : 0.0);
    return where(less(low, size_ + far), low, size_ + far);
  }

  double lowest() const { return align_ ? 0 : -0.5; }
  Term highest() const { return size_ - (align_ ? 1 : 0.5); }
  Term is_outside(Term x) const { return either(less(x, lowest()), greater(x, highest())); }
  Term clamped(Term x) const { return min(max(x, 0), size_ - 1); }

  Term padded(Term x) const {
    if (padding_ == "zeros") return x;
    return where(is_outside(x), padding_ == "border" ? clamped(x) : reflected(x), x);
  }

  Term reflected(Term x) const {
    const double low = lowest();
    Term range = highest() - low, is_flat = negation(greater(range, 0)), length = where(is_flat, 1, range);
    Term is_below = less(x, low), distance = where(is_below, low - x, x - highest());
    Term turns = floor(distance / length), rest = distance - turns * length;
    Term is_even = equal(turns - floor(turns / 2) * 2, 0);
    Term from_low = negation(x.decomposition->add("Xor", {is_even, is_below}));
    Term moved = where(from_low, low + rest, highest() - rest);
    return where(is_flat, low, where(is_outside(x), moved, x));
  }

  Tap tap(Term index, Term weight) const {
    Term inside = both(greater(index, -1), less(index, size_));
    if (padding_ != "reflection") return {clamped(index), weight, padding_ == "zeros" ? inside : Term{}};
    Term whole = cast(cast(reflected(index), ElementType::int64), index.type);
    return {where(inside, index, clamped(whole)), weight, {}};
  }

  static Term inner(Term d) { return ((d * 1.25) - 2.25) * d * d + 1; }
  static Term outer(Term d) { return ((d * -0.75 + 3.75) * d - 6) * d + 3; }

  Term size_;
  bool align_;
  std::string mode_, padding_;
};

Term product(Term a, Term b) { return a && b ? a * b : a ? a : b; }
Term conjunction(Term a, Term b) { return a && b ? both(a, b) : a ? a : b; }

// The taps of all axes together, as positions in an image whose axes are one.
std::vector<Tap> all_taps(Decomposition& d, Term image, Term points, int axes, ElementType type) {
  std::vector<Tap> taps;
  for (int axis = 0; axis < axes; ++axis) {
    Term size = cast(size_of(image, axis + 2), type);
    Term coordinate = gather(points, d.number(axes - 1 - axis, ElementType::int64), 2);
    const std::vector<Tap> along = Axis(d, size).taps(coordinate);
    std::vector<Tap> product_taps;
    for (const Tap& a : taps.empty() ? std::vector<Tap>{Tap{}} : taps) {
      for (const Tap& b : along) {
        Term index = cast(b.index, ElementType::int64);
        if (a.index) index = a.index * size_of(image, axis + 2) + index;
        product_taps.push_back({index, product(a.weight, b.weight), conjunction(a.inside, b.inside)});
      }
    }
    taps = std::move(product_taps);
  }
  return taps;
}

void gather_taps(Decomposition& d) {
  const std::string mode = d.node().string_attribute("mode", "linear");
  const ElementType element = d.element(0), grid_type = wide(d.element(1));
  const bool computes = mode != "nearest";
  if (!(computes ? types::floats : types::numbers).contains(element))
    d.give_up("elements of this type are not computed with");
  const bool is_double = element == ElementType::float64 || grid_type == ElementType::float64;
  const ElementType type = is_double ? ElementType::float64 : ElementType::float32;
  const int axes = d.rank(0) - 2;
  Term image = d.input(0), grid = cast(d.input(1), type);
  Term count = size_of(image, 0), channels = size_of(image, 1);
  Term pixels = reduce("ReduceProd", shape_of(image, 2), d.ints({0}));
  Term points = d.add("Reshape", {grid, concat({count, d.ints({-1}), d.ints({axes})})});
  std::vector<int64_t> channels_last{0};
  for (int axis = 2; axis < axes + 2; ++axis) channels_last.push_back(axis);
  channels_last.push_back(1);
  Term rows = d.add(
      "Reshape", {transpose(computes ? cast(image, type) : image, channels_last), concat({count * pixels, channels})});
  Term first = unsqueeze(d.indices(count) * pixels, {1});
  Term sum;
  for (const Tap& tap : all_taps(d, image, points, axes, type)) {
    Term value = gather(rows, tap.index + first, 0);
    if (tap.inside) value = where(unsqueeze(tap.inside, {2}), value, 0);
    if (tap.weight) value = value * unsqueeze(tap.weight, {2});
    sum = sum ? sum + value : value;
  }
  Term sizes = d.add("Shape", {grid}, {{"start", 1}, {"end", -1}}, ElementType::int64);
  d.output(0, d.add("Reshape", {transpose(sum, {0, 2, 1}), concat({count, channels, sizes})}));
}

}  // namespace

void older_grid_sample(OlderForms& forms) { forms.add("GridSample", 22, gather_taps); }

}  // namespace tenon::ops
