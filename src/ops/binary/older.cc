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

}  // namespace

void older_binary(OlderForms& forms) {
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) forms.add(op, 18, bit_by_bit);
  forms.add("BitShift", 28, shift_by_powers);
}

}  // namespace tenon::ops
