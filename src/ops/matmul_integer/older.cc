#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// The integers without their zero point; those of a list are the rows' or the columns'.
Term centered(Decomposition& d, size_t input, size_t zero_point) {
  Term x = cast(d.input(input), ElementType::int32);
  if (!d.has_input(zero_point)) return x;
  Term zero = cast(d.input(zero_point), ElementType::int32);
  return x - (input == 0 && d.rank(zero_point) == 1 ? unsqueeze(zero, {1}) : zero);
}

void multiply_integers(Decomposition& d) { d.output(0, d.add("MatMul", {centered(d, 0, 2), centered(d, 1, 3)})); }

}  // namespace

void older_matmul_integer(OlderForms& forms) { forms.add("MatMulInteger", 10, multiply_integers); }

}  // namespace tenon::ops
