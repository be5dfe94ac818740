#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"
#include "ops/resize/resize.h"

namespace tenon::ops {
namespace {

using enum ElementType;

// What is computed of one axis: coordinates are float64, sizes are lists of one.
struct ResizedTerm {
  int64_t axis;
  Term input, output;  // sizes
  Term scale, size;    // the same sizes and their ratio as float64
  Term crop_begin, crop_end;
};

class Resizer {
 public:
  explicit Resizer(Decomposition& d) : d_(d) {
    mode_ = d.node().string_attribute("mode", "nearest");
    transform_ = d.node().string_attribute("coordinate_transformation_mode", "half_pixel");
    antialias_ = d.node().int_attribute("antialias", 0) != 0;
    exclude_outside_ = d.node().int_attribute("exclude_outside", 0) != 0;
    cubic_coefficient_ = d.node().float_attribute("cubic_coeff_a", -0.75f);
    if (mode_ != "nearest" && !types::floats.contains(d.element(0)))
      d.give_up("elements of this type are not computed with");
    find_axes();
  }

  void write() {
    Term x = mode_ == "nearest" ? d_.input(0) : d_.wide_input(0), outside;
    for (const ResizedTerm& axis : axes_) {
      Term at = coordinates(axis);
      if (transform_ == "tf_crop_and_resize") outside = join(outside, lined_up(is_outside(axis, at), axis.axis));
      if (mode_ == "nearest")
        x = gather(x, place(axis, nearest(at)), axis.axis);
      else if (antialias_)
        x = smoothed(x, axis, at);
      else
        x = interpolated(x, axis, at);
    }
    if (outside) x = where(outside, d_.node().float_attribute("extrapolation_value", 0), x);
    d_.output(0, x);
  }

 private:
  bool is_given(size_t input) const { return d_.has_input(input) && d_.known_size(input, 0) != 0; }

  void find_axes() {
    const int rank = d_.rank(0);
    const std::vector<int> axes = resized_axes(d_.node(), rank);
    const bool by_scales = is_given(2), by_sizes = is_given(3);
    if (by_scales == by_sizes) d_.give_up("it is not known whether it has scales or sizes");
    Term x = d_.input(0), common;
    for (size_t k = 0; k < axes.size(); ++k) {
      const auto at = static_cast<int64_t>(k), count = static_cast<int64_t>(axes.size());
      ResizedTerm axis;
      axis.axis = axes[k];
      axis.input = size_of(x, axes[k]);
      axis.size = cast(axis.input, float64);
      if (by_scales) {
        Term scale = part(2, at);
        axis.scale = cast(scale, float64);
        axis.output = cast(floor(cast(axis.input, float32) * scale), int64);
      } else {
        axis.output = part(3, at);
        axis.scale = cast(axis.output, float64) / axis.size;
        common = !common ? axis.scale : policy() == "not_larger" ? min(common, axis.scale) : max(common, axis.scale);
      }
      if (transform_ == "tf_crop_and_resize") {
        axis.crop_begin = cast(part(1, at), float64);
        axis.crop_end = cast(part(1, at + count), float64);
      }
      axes_.push_back(axis);
    }
    if (by_scales || policy() == "stretch") return;
    for (ResizedTerm& axis : axes_) {
      axis.scale = common;
      axis.output = cast(common * axis.size + 0.5, int64);
    }
  }

  std::string policy() const { return d_.node().string_attribute("keep_aspect_ratio_policy", "stretch"); }
  Term part(size_t input, int64_t i) { return slice(d_.input(input), d_.ints({i}), d_.ints({i + 1}), 0); }
  static Term floor(Term x) { return x.decomposition->add("Floor", {x}); }
  static Term ceil(Term x) { return x.decomposition->add("Ceil", {x}); }
  static Term join(Term a, Term b) { return a ? either(a, b) : b; }

  // A list with the axes behind it that a tensor has behind `axis`.
  Term lined_up(Term list, int64_t axis) {
    std::vector<int64_t> behind;
    for (int64_t i = 1; i < d_.rank(0) - axis; ++i) behind.push_back(i);
    return behind.empty() ? list : unsqueeze(list, behind);
  }

  // Where in the input the elements of the output are.
  Term coordinates(const ResizedTerm& axis) {
    Term x = cast(d_.indices(axis.output), float64), exact = axis.scale * axis.size, is_one = equal(exact, 1);
    Term half_pixel = (x + 0.5) / axis.scale - 0.5;
    if (transform_ == "asymmetric") return x / axis.scale;
    if (transform_ == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
    if (transform_ == "half_pixel_symmetric")
      return axis.size / 2 * (1 - cast(axis.output, float64) / exact) + half_pixel;
    if (transform_ == "pytorch_half_pixel") return where(is_one, 0, half_pixel);
    Term steps = where(is_one, 1, exact - 1);
    if (transform_ == "align_corners") return where(is_one, 0, x * (axis.size - 1) / steps);
    if (transform_ != "tf_crop_and_resize") return half_pixel;
    Term length = (axis.crop_end - axis.crop_begin) * (axis.size - 1);
    return axis.crop_begin * (axis.size - 1) + where(is_one, length / 2, x * length / steps);
  }

  static Term is_outside(const ResizedTerm& axis, Term at) {
    return negation(both(negation(less(at, 0)), negation(greater(at, axis.size - 1))));
  }

  Term nearest(Term x) const {
    const std::string rounding = d_.node().string_attribute("nearest_mode", "round_prefer_floor");
    if (rounding == "floor") return floor(x);
    if (rounding == "ceil") return ceil(x);
    return rounding == "round_prefer_ceil" ? floor(x + 0.5) : ceil(x - 0.5);
  }

  static Term place(const ResizedTerm& axis, Term index) { return cast(min(max(index, 0), axis.size - 1), int64); }

  Term filter(Term offset) const {
    Term x = abs(offset);
    if (mode_ == "linear") return max(1 - x, 0);
    const double a = cubic_coefficient_;
    Term inner = ((a + 2) * x - (a + 3)) * x * x + 1, outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return where(greater(x, 1), where(less(x, 2), outer, 0), inner);
  }

  Term interpolated(Term x, const ResizedTerm& axis, Term at) {
    Term base = ceil(at) - 1;
    const int first = mode_ == "cubic" ? -1 : 0, last = 1 - first;
    std::vector<Term> weights;
    Term total, result;
    for (int k = first; k <= last; ++k) {
      Term index = base + k, weight = filter(index - at);
      if (exclude_outside_) weight = where(is_outside(axis, index), 0, weight);
      weights.push_back(weight);
      total = total ? total + weight : weight;
    }
    for (int k = first; k <= last; ++k) {
      Term weight = weights[static_cast<size_t>(k - first)];
      if (exclude_outside_) weight = weight / where(equal(total, 0), 1, total);
      Term value = gather(x, place(axis, base + k), axis.axis) * lined_up(cast(weight, x.type), axis.axis);
      result = result ? result + value : value;
    }
    return result;
  }

  // A product with a matrix of weights, of as many elements as a filter that widens with the axis' shrinking needs.
  Term smoothed(Term x, const ResizedTerm& axis, Term at) {
    Term spread = min(axis.scale, 1);
    Term reach = cast(ceil((mode_ == "cubic" ? 2.0 : 1.0) / spread), int64) + 1;
    Term index = cast(d_.indices(axis.input + reach * 2) - reach, float64);
    Term weights = filter((unsqueeze(index, {1}) - at) * spread);
    if (exclude_outside_) weights = where(unsqueeze(is_outside(axis, index), {1}), 0, weights);
    Term total = reduce("ReduceSum", weights, d_.ints({0}));
    weights = weights / where(equal(total, 0), 1, total);
    std::vector<int64_t> order = numbers_up_to(d_.rank(0));
    std::swap(order[static_cast<size_t>(axis.axis)], order.back());
    Term rows = transpose(gather(x, place(axis, index), axis.axis), order);
    return transpose(d_.add("MatMul", {rows, cast(weights, x.type)}), order);
  }

  Decomposition& d_;
  std::vector<ResizedTerm> axes_;
  std::string mode_, transform_;
  bool antialias_, exclude_outside_;
  double cubic_coefficient_;
};

void gather_and_weigh(Decomposition& d) { Resizer(d).write(); }

}  // namespace

void older_resize(OlderForms& forms) { forms.add("Resize", 19, gather_and_weigh); }

}  // namespace tenon::ops
