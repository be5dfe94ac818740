#include <cmath>

#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

Term mel(Term hertz) { return log(hertz / 700 + 1) * (2595 / std::log(10.0)); }
Term hertz(Term mel) { return (exp(mel * (std::log(10.0) / 2595)) - 1) * 700; }

// Each band's triangle, as what rises up to its peak and what falls from there.
void triangles_over_bins(Decomposition& d) {
  auto number = [&](size_t i) { return d.add("Reshape", {cast(d.input(i), ElementType::float64), d.ints({1})}); };
  Term bands = d.add("Reshape", {cast(d.input(0), ElementType::int64), d.ints({1})}), length = number(1);
  Term first = mel(number(3)), step = (mel(number(4)) - first) / (cast(bands, ElementType::float64) + 2);
  auto edges = [&](double offset) {
    Term k = cast(d.indices(bands), ElementType::float64) + offset;
    return d.add("Floor", {(length + 1) * hertz(first + k * step) / number(2)});
  };
  Term begin = edges(0), peak = edges(1), end = edges(2);
  Term bins = cast(d.add("Floor", {length / 2}), ElementType::int64) + 1;
  Term bin = unsqueeze(cast(d.indices(bins), ElementType::float64), {1});
  auto at_least_one = [](Term x) { return where(less(x, 1), 1, x); };
  Term rising = (bin - begin) / at_least_one(peak - begin), falling = (end - bin) / at_least_one(end - peak);
  Term on_the_way_up = both(less(bin, peak), negation(less(bin, begin)));
  Term on_the_way_down = both(greater(bin, peak), less(bin, end));
  Term is_peak = negation(either(less(bin, peak), greater(bin, peak)));
  Term zero = rising.number(0), one = rising.number(1);
  d.output(0, where(on_the_way_up, rising, where(on_the_way_down, falling, where(is_peak, one, zero))));
}

}  // namespace

void older_mel_weight_matrix(OlderForms& forms) { forms.add("MelWeightMatrix", 17, triangles_over_bins); }

}  // namespace tenon::ops
