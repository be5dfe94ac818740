#include <cmath>
#include <limits>

#include "ops/decomposition.h"
#include "ops/older_forms.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using enum ElementType;

// How a type writes a number: sign, exponent, and what is below the leading 1.
struct FloatFormat {
  int exponent_bits, fraction_bits;

  int64_t bias() const { return (int64_t{1} << (exponent_bits - 1)) - 1; }
  int64_t largest_exponent() const { return (int64_t{1} << exponent_bits) - 1; }  // of infinity and NaN
  double fraction_unit() const { return std::ldexp(1.0, -fraction_bits); }
};

FloatFormat format_of(ElementType type) {
  switch (type) {
    case float16:
      return {5, 10};
    case bfloat16:
      return {8, 7};
    case float32:
      return {8, 23};
    default:
      return {11, 52};
  }
}

Term constant(Decomposition& d, const std::vector<double>& numbers) {
  return d.add("Constant", {}, {{"value", Tensor({static_cast<int64_t>(numbers.size())}, std::span(numbers))}},
               float64);
}

std::vector<double> powers_of_two(const std::vector<int64_t>& exponents, int sign = 1) {
  std::vector<double> powers;
  for (int64_t exponent : exponents) powers.push_back(std::ldexp(1.0, sign * static_cast<int>(exponent)));
  return powers;
}

// A number that is scaled to 1 or more, and the exponent that was taken from it.
struct Scaled {
  Term number, exponent;
};

// Takes from each number the largest of the exponents that leaves it 1 or more, else the first. They go up.
Scaled take_exponent(Term x, const std::vector<int64_t>& exponents) {
  Decomposition& d = *x.decomposition;
  const std::vector<int64_t> higher(exponents.begin() + 1, exponents.end());
  Term reached = negation(less(unsqueeze(x, {-1}), constant(d, powers_of_two(higher))));
  Term which = reduce("ReduceSum", cast(reached, int64), d.ints({-1}), false);
  return {x * gather(constant(d, powers_of_two(exponents, -1)), which, 0), gather(d.ints(exponents), which, 0)};
}

// Every `step`-th exponent of a double, and those below `step`.
std::vector<int64_t> coarse_exponents(int64_t step) {
  std::vector<int64_t> exponents = {-1022};
  for (int64_t exponent = -1024 + step; exponent < 1024; exponent += step) exponents.push_back(exponent);
  return exponents;
}
std::vector<int64_t> fine_exponents(int64_t step) {
  std::vector<int64_t> exponents;
  for (int64_t exponent = 0; exponent < step; ++exponent) exponents.push_back(exponent);
  return exponents;
}

// The bits of a number that is neither negative nor infinite, as int64.
Term bits_of_magnitude(Term x, const FloatFormat& format) {
  constexpr int64_t step = 64;
  const int bias = static_cast<int>(format.bias()), fraction_bits = format.fraction_bits;
  Term is_normal = negation(less(x, std::ldexp(1.0, 1 - bias)));
  const Scaled coarse = take_exponent(x, coarse_exponents(step));
  const Scaled fine = take_exponent(coarse.number, fine_exponents(step));
  const double one = std::ldexp(1.0, fraction_bits);
  Term exponent = coarse.exponent + fine.exponent + static_cast<double>(bias);
  Term normal = exponent * one + cast((fine.number - 1) * one, int64);
  // Smaller ones are multiples of the smallest; the factor itself may be too large for one number.
  const int up = bias - 1 + fraction_bits;
  Term small = where(is_normal, 0, x) * std::ldexp(1.0, up / 2) * std::ldexp(1.0, up - up / 2);
  return where(is_normal, normal, cast(small, int64));
}

// The bits of a float as int64, without the sign; a NaN becomes the usual one.
Term bits_without_sign(Term x, const FloatFormat& format) {
  Term size = abs(x), is_finite = less(size, std::numeric_limits<double>::infinity());
  Term bits = bits_of_magnitude(where(is_finite, size, 1), format);
  const double infinity = std::ldexp(static_cast<double>(format.largest_exponent()), format.fraction_bits);
  const double quiet = infinity + std::ldexp(1.0, format.fraction_bits - 1);
  return where(is_finite, bits, where(equal(x, x), bits.number(infinity), bits.number(quiet)));
}

// What the sign bit adds to an integer of some bits.
double sign_bit(int bits, bool is_signed) { return std::ldexp(is_signed || bits == 64 ? -1.0 : 1.0, bits - 1); }

// The bits of a float as an integer type of its size.
Term bits_of_float(Term x, ElementType to) {
  const FloatFormat format = format_of(x.type);
  Term wide = cast(x, float64);
  Term bits = bits_without_sign(wide, format);
  Term is_negative = either(less(wide, 0), both(equal(wide, 0), less(1 / wide, 0)));
  const double sign = sign_bit(bits_of(to), types::signed_ints.contains(to));
  return cast(where(is_negative, bits + sign, bits), to);
}

// The float with these bits, of an integer type of its size; a NaN becomes the usual one.
Term float_of_bits(Term x, ElementType to) {
  Decomposition& d = *x.decomposition;
  const FloatFormat format = format_of(to);
  const double sign = sign_bit(bits_of(x.type), types::signed_ints.contains(x.type));
  Term wide = cast(x, int64);
  Term is_negative = sign < 0 ? less(wide, 0) : negation(less(wide, sign));
  Term bits = where(is_negative, wide - sign, wide);
  Term exponent = bits / std::ldexp(1.0, format.fraction_bits);
  Term fraction = cast(bits - exponent * std::ldexp(1.0, format.fraction_bits), float64) * format.fraction_unit();
  std::vector<double> powers = {std::ldexp(1.0, 1 - static_cast<int>(format.bias()))};  // of numbers below the normal
  for (int64_t i = 1; i < format.largest_exponent(); ++i)
    powers.push_back(std::ldexp(1.0, static_cast<int>(i - format.bias())));
  powers.push_back(std::numeric_limits<double>::infinity());
  Term is_small = equal(exponent, 0);
  Term number = where(is_small, fraction, fraction + 1) * gather(constant(d, powers), exponent, 0);
  Term is_nan = both(equal(exponent, static_cast<double>(format.largest_exponent())), greater(fraction, 0));
  number = where(is_nan, std::numeric_limits<double>::quiet_NaN(), number);
  return cast(where(is_negative, -number, number), to);
}

// Casts between integers of one size keep the bits; those of floats are computed, up to what a NaN carries.
void bits_by_arithmetic(Decomposition& d) {
  const TypeSet known = types::ints | types::bools | types::floats;
  const ElementType from = d.element(0), to = d.node().output(0)->type.element;
  if (from != to && (!known.contains(from) || !known.contains(to)))
    d.give_up("no older operator reads the bits of one type as another");
  Term x = d.input(0);
  if (from != to && types::floats.contains(from))
    x = bits_of_float(x, types::floats.contains(to) ? int16 : to);  // two float types of one size have 16 bits
  if (from != to && types::floats.contains(to)) x = float_of_bits(x, to);
  d.output(0, x);
}

}  // namespace

void older_cast(OlderForms& forms) { forms.add("BitCast", 26, bits_by_arithmetic); }

}  // namespace tenon::ops
