#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

// The elements that one axis of the windows reads: of each window, one after the other.
struct Windows {
  int64_t count = 0, each = 0;
  std::vector<int64_t> positions;       // brought into the axis
  std::vector<int64_t> inside, in_pad;  // whether the axis has it, and whether it is there with the padding
};

Windows windows_of(const WindowAxis& axis, int64_t size) {
  Windows windows;
  windows.each = axis.kernel.value();
  windows.count = axis.output(size).value();
  const auto [begin, end] = axis.pads(size, windows.count);
  for (int64_t i = 0; i < windows.count * windows.each; ++i) {
    const int64_t at = i / windows.each * axis.stride + i % windows.each * axis.dilation - begin;
    windows.inside.push_back(at >= 0 && at < size ? 1 : 0);
    windows.in_pad.push_back(at < size + end ? 1 : 0);
    windows.positions.push_back(std::clamp<int64_t>(at, 0, size - 1));
  }
  return windows;
}

// What pools are written with: axes of positions in the windows beside those of the windows.
class Unfolded {
 public:
  explicit Unfolded(Decomposition& d) : d_(d), spatial_(d.rank(0) - 2) {
    const WindowAttributes attributes(d.node());
    attributes.check(spatial_);
    for (int axis = 0; axis < spatial_; ++axis) {
      const int64_t size = d.known_size(0, axis + 2);
      if (size <= 0) d.give_up("the sizes of its input are not known");
      axes_.push_back(windows_of(attributes.axis(axis, spatial_), size));
    }
  }

  // [N, C, windows, positions, windows, positions, …]
  Term elements(Term x) {
    for (int axis = 0; axis < spatial_; ++axis) {
      const Windows& windows = axes_[static_cast<size_t>(axis)];
      Term positions = d_.add("Reshape", {d_.ints(windows.positions), d_.ints({windows.count, windows.each})});
      x = gather(x, positions, 2 + 2 * axis);
    }
    return x;
  }

  // 1 where the image, or its padding too, has the element.
  Term there(std::vector<int64_t> Windows::*member, ElementType type) {
    Term all;
    for (int axis = 0; axis < spatial_; ++axis) {
      const Windows& windows = axes_[static_cast<size_t>(axis)];
      std::vector<int64_t> shape(static_cast<size_t>(2 * spatial_), 1);
      shape[static_cast<size_t>(2 * axis)] = windows.count;
      shape[static_cast<size_t>(2 * axis + 1)] = windows.each;
      Term here = d_.add("Reshape", {d_.ints(windows.*member), d_.ints(shape)});
      all = all ? all * here : here;
    }
    return cast(all, type);
  }

  // Over the positions; `first` is the axis of the first window.
  Term reduce_positions(const char* op, Term x, int first) {
    std::vector<int64_t> axes;
    for (int axis = 0; axis < spatial_; ++axis) axes.push_back(first + 2 * axis + 1);
    return reduce(op, x, d_.ints(axes), false);
  }

 private:
  Decomposition& d_;
  int spatial_;
  std::vector<Windows> axes_;
};

void average_windows(Decomposition& d) {
  Unfolded unfolded(d);
  Term x = d.wide_input(0), elements = unfolded.elements(x);
  Term inside = equal(unfolded.there(&Windows::inside, ElementType::int64), 1);
  Term sum = unfolded.reduce_positions("ReduceSum", where(inside, elements, 0), 2);
  const bool counts_pad = d.node().int_attribute("count_include_pad", 0) != 0;
  Term counted = unfolded.there(counts_pad ? &Windows::in_pad : &Windows::inside, x.type);
  d.output(0, sum / unfolded.reduce_positions("ReduceSum", counted, 0));
}

void norm_of_windows(Decomposition& d) {
  Unfolded unfolded(d);
  Term x = d.wide_input(0), size = abs(unfolded.elements(x));
  const auto p = static_cast<double>(d.node().int_attribute("p", 2));
  Term inside = equal(unfolded.there(&Windows::inside, ElementType::int64), 1);
  Term powers = d.add("Pow", {where(inside, size, 0), x.number(p)});
  d.output(0, d.add("Pow", {unfolded.reduce_positions("ReduceSum", powers, 2), x.number(1 / p)}));
}

void largest_of_windows(Decomposition& d) {
  if (d.wants_output(1)) d.give_up("its indices are an output");
  Unfolded unfolded(d);
  Term x = d.wide_input(0), elements = unfolded.elements(x);
  Term inside = equal(unfolded.there(&Windows::inside, ElementType::int64), 1);
  const double lowest = types::floats.contains(x.type) ? -INFINITY : std::numeric_limits<int>::lowest();
  d.output(0, unfolded.reduce_positions("ReduceMax", where(inside, elements, lowest), 2));
}

}  // namespace

void older_pool(OlderForms& forms) {
  forms.add("AveragePool", 19, average_windows);
  forms.add("LpPool", 18, norm_of_windows);
  forms.add("MaxPool", 12, largest_of_windows);
}

}  // namespace tenon::ops
