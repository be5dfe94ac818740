#include <cmath>
#include <limits>

#include "ops/decomposition.h"
#include "ops/older_forms.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void distance_from_all_ones(Decomposition& d) {
  Term x = d.input(0);
  const bool is_signed = types::signed_ints.contains(x.type);
  d.output(0, (is_signed ? -1.0 : std::numeric_limits<double>::infinity()) - x);
}

Term floor(Term x) { return x.decomposition->add("Floor", {x}); }

// Halves go to the even neighbour.
void round_by_floor(Decomposition& d) {
  Term x = d.wide_input(0), below = floor(x), rest = x - below;
  Term is_odd = greater(below - floor(below / 2) * 2, 0.5);
  Term is_half = negation(either(less(rest, 0.5), greater(rest, 0.5)));
  d.output(0, where(either(greater(rest, 0.5), both(is_half, is_odd)), below + 1, below));
}

void beyond_finite(Decomposition& d) {
  Term x = d.wide_input(0), found;
  const double largest = x.type == ElementType::float64 ? std::numeric_limits<double>::max()
                                                        : static_cast<double>(std::numeric_limits<float>::max());
  if (d.node().int_attribute("detect_positive", 1) != 0) found = greater(x, largest);
  if (d.node().int_attribute("detect_negative", 1) != 0) {
    Term negative = less(x, -largest);
    found = found ? either(found, negative) : negative;
  }
  d.output(0, found ? found : less(x, -INFINITY));
}

// What is neither below infinity nor above its negative.
void without_order(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, negation(either(less(x, INFINITY), greater(x, -INFINITY))));
}

void sign_by_order(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, cast(greater(x, 0), x.type) - cast(less(x, 0), x.type));
}

Term half_difference(Term x, bool of_sum) {
  Term up = exp(x), down = exp(-x);
  return (of_sum ? up + down : up - down) / 2;
}

void sinh_by_exp(Decomposition& d) { d.output(0, half_difference(cast(d.input(0), ElementType::float64), false)); }
void cosh_by_exp(Decomposition& d) { d.output(0, half_difference(cast(d.input(0), ElementType::float64), true)); }

void asinh_by_log(Decomposition& d) {
  Term x = cast(d.input(0), ElementType::float64), size = abs(x), value = log(size + sqrt(size * size + 1));
  d.output(0, value * (cast(greater(x, 0), x.type) - cast(less(x, 0), x.type)));
}

void acosh_by_log(Decomposition& d) {
  Term x = cast(d.input(0), ElementType::float64);
  d.output(0, log(x + sqrt(x * x - 1)));
}

void atanh_by_log(Decomposition& d) {
  Term x = cast(d.input(0), ElementType::float64);
  d.output(0, log((1 + x) / (1 - x)) / 2);
}

}  // namespace

void older_unary(OlderForms& forms) {
  forms.add("BitwiseNot", 18, distance_from_all_ones);
  forms.add("Round", 11, round_by_floor);
  forms.add("IsInf", 10, beyond_finite);
  forms.add("IsNaN", 9, without_order);
  forms.add("Sign", 9, sign_by_order);
  forms.add("Sinh", 9, sinh_by_exp);
  forms.add("Cosh", 9, cosh_by_exp);
  forms.add("Asinh", 9, asinh_by_log);
  forms.add("Acosh", 9, acosh_by_log);
  forms.add("Atanh", 9, atanh_by_log);
}

}  // namespace tenon::ops
