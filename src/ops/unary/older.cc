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

}  // namespace

void older_unary(OlderForms& forms) { forms.add("BitwiseNot", 18, distance_from_all_ones); }

}  // namespace tenon::ops
