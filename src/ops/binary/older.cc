#include <cmath>
#include <string>

#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

std::vector<int64_t> powers_of_two(int64_t count) {
  std::vector<int64_t> powers;
  for (int64_t i = 0; i < count; ++i) powers.push_back(static_cast<int64_t>(uint64_t{1} << i));
  return powers;
}

// A division that rounds down, of any number by a positive one.
Term floor_divide(Term a, Term b) { return (a - a.decomposition->add("Mod", {a, b})) / b; }

// The bits of integers along a new last axis, as truth values; of signed ones the sign is left out.
Term bits_of(Term x, Term powers) {
  Term shifted = floor_divide(unsqueeze(x, {-1}), powers);
  return equal(x.decomposition->add("Mod", {shifted, shifted.number(2)}), 1);
}

void bit_by_bit(Decomposition& d) {
  const std::string op = d.node().op_type.substr(std::string("Bitwise").size());
  const ElementType type = d.element(0);
  const bool is_signed = types::signed_ints.contains(type);
  const ElementType computed = type == ElementType::uint64 ? type : ElementType::int64;
  const int64_t count = tenon::bits_of(type) - (is_signed ? 1 : 0);
  auto combine = [&](Term x, Term y) { return d.add(op, {x, y}, {}, ElementType::boolean); };
  Term a = cast(d.input(0), computed), b = cast(d.input(1), computed);
  Term powers = cast(d.ints(powers_of_two(count)), computed);
  Term parts = where(combine(bits_of(a, powers), bits_of(b, powers)), powers, 0);
  Term result = reduce("ReduceSum", parts, d.ints({-1}), false);
  if (is_signed) {
    Term is_negative = combine(less(a, 0), less(b, 0));
    const int64_t lowest = static_cast<int64_t>(~uint64_t{0} << count);
    result = result + where(is_negative, d.ints({lowest}), d.ints({0}));
  }
  d.output(0, result);
}

// Shifts as products and quotients; 2^63 is none of int64, so the largest shift takes two steps. A shift by a negative
// distance, or by all bits and more, leaves only copies of what is shifted in.
void shift_by_powers(Decomposition& d) {
  const bool is_signed = types::signed_ints.contains(d.element(0));
  const ElementType type = is_signed ? ElementType::int64 : ElementType::uint64;
  Term x = cast(d.input(0), type), distance = cast(d.input(1), ElementType::int64);
  Term all_out = either(less(distance, 0), greater(distance, tenon::bits_of(d.element(0)) - 1));
  Term by = where(all_out, 0, distance), is_longest = greater(by, 62);
  Term power = cast(gather(d.ints(powers_of_two(63)), where(is_longest, 62, by), 0), type);
  Term rest = where(is_longest, x.number(2), x.number(1));
  if (d.node().string_attribute("direction", "") == "LEFT") return d.output(0, where(all_out, 0, x * power * rest));
  if (!is_signed) return d.output(0, where(all_out, 0, x / power / rest));
  Term copies = where(less(x, 0), x.number(-1), x.number(0));
  d.output(0, where(all_out, copies, floor_divide(floor_divide(x, power), rest)));
}

// Whether each element is a number: what is neither below infinity nor above its negative is none.
Term is_number(Term x) { return either(less(x, INFINITY), greater(x, -INFINITY)); }

// Two numbers of which neither is the smaller one are equal.
void neither_is_less(Decomposition& d) {
  Term a = d.input(0), b = d.input(1);
  if (!types::numbers.contains(a.type)) d.give_up("elements of this type have no order");
  Term same = negation(either(less(a, b), greater(a, b)));
  d.output(0, types::floats.contains(a.type) ? both(same, both(is_number(a), is_number(b))) : same);
}

// The upper and the lower half of integers of 64 bits, as float64.
struct Halves {
  Term upper, lower;
};

Halves halves_of(Term x) {
  Term half = x.number(0x1p32), upper = x / half;
  return {cast(upper, ElementType::float64), cast(x - upper * half, ElementType::float64)};
}

void compare_halves(Decomposition& d) {
  if (d.element(0) != ElementType::int64) d.give_up("elements of this type are not compared by their halves");
  auto order = [is_less = d.node().op_type == "Less"](Term x, Term y) { return is_less ? less(x, y) : greater(x, y); };
  const Halves a = halves_of(d.input(0)), b = halves_of(d.input(1));
  Term equal_upper = negation(either(less(a.upper, b.upper), greater(a.upper, b.upper)));
  d.output(0, either(order(a.upper, b.upper), both(equal_upper, order(a.lower, b.lower))));
}

// What a division leaves, of integers.
void subtract_multiples(Decomposition& d) {
  Term a = d.input(0), b = d.input(1);
  if (!types::ints.contains(a.type)) d.give_up("the rest of a division of floats would be rounded");
  Term rest = a - a / b * b;
  const bool sign_of_divisor = d.node().int_attribute("fmod", 0) == 0 && types::signed_ints.contains(a.type);
  if (!sign_of_divisor) return d.output(0, rest);
  Term differs = d.add("Xor", {less(rest, 0), less(b, 0)}, {}, ElementType::boolean);
  d.output(0, where(both(negation(equal(rest, 0)), differs), rest + b, rest));
}

// In float64, of which the base's type is made again.
void power_of_floats(Decomposition& d) {
  const ElementType type = d.element(0);
  if (types::ints.contains(type) && tenon::bits_of(type) > 32)
    d.give_up("its integers may be larger than float64 holds");
  auto exact = [&](size_t i) { return cast(d.input(i), ElementType::float64); };
  d.output(0, d.add("Pow", {exact(0), exact(1)}));
}

}  // namespace

void older_binary(OlderForms& forms) {
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) forms.add(op, 18, bit_by_bit);
  forms.add("BitShift", 28, shift_by_powers);
  forms.add("Equal", 11, neither_is_less);
  forms.add("Less", 9, compare_halves);
  forms.add("Greater", 9, compare_halves);
  forms.add("Mod", 10, subtract_multiples);
  forms.add("Pow", 12, power_of_floats);
}

}  // namespace tenon::ops
