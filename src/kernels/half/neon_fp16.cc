#include "kernels/simd/neon_fp16.h"

#include <utility>

#include "kernels/half/arithmetic.h"

namespace tenon::kernels {
namespace {

using H = NeonHalf;
using F = H::F;

template <HalfOperation Operation>
F apply(F a, F b) {
  if constexpr (Operation == HalfOperation::add) return a + b;
  if constexpr (Operation == HalfOperation::subtract) return a - b;
  if constexpr (Operation == HalfOperation::multiply) return a * b;
  if constexpr (Operation == HalfOperation::divide) return a / b;
}

F load_all(const uint16_t* p) { return (F)vdupq_n_u16(*p); }

F load_part(const uint16_t* p, int64_t count) {
  F v = {};
  std::memcpy(&v, p, static_cast<size_t>(count) * sizeof(uint16_t));
  return v;
}

// One row. Where an operand is one number, it was loaded before y was written.
template <HalfOperation Operation>
void run_row(const uint16_t* a, const uint16_t* b, uint16_t* y, int64_t columns, bool a_is_one, bool b_is_one) {
  const F one_a = load_all(a), one_b = load_all(b);
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + H::width <= columns; i += H::width)
    H::store(y + i, apply<Operation>(a_is_one ? one_a : H::load(a + i), b_is_one ? one_b : H::load(b + i)));
  if (const int64_t rest = columns - i; rest > 0) {
    const F result =
        apply<Operation>(a_is_one ? one_a : load_part(a + i, rest), b_is_one ? one_b : load_part(b + i, rest));
    std::memcpy(y + i, &result, static_cast<size_t>(rest) * sizeof(uint16_t));
  }
}

// Rows of two vectors with the same operand: pixels whose channels have a factor each.
template <HalfOperation Operation>
void run_pixels(const HalfRows& r) {
  const F low = H::load(r.b), high = H::load(r.b + H::width);
  const uint16_t* a = r.a;
  uint16_t* y = r.y;
#pragma GCC unroll 4
  for (int64_t row = 0; row < r.rows; ++row, a += r.a_row, y += 2 * H::width) {
    const F first = H::load(a), second = H::load(a + H::width);
    H::store(y, apply<Operation>(first, low));
    H::store(y + H::width, apply<Operation>(second, high));
  }
}

template <HalfOperation Operation>
void run(HalfRows r) {
  if (r.rows == 0 || r.columns == 0) return;
  constexpr bool commutes = Operation == HalfOperation::add || Operation == HalfOperation::multiply;
  if (commutes && r.a_row == 0) std::swap(r.a, r.b), std::swap(r.a_row, r.b_row), std::swap(r.a_step, r.b_step);
  if (r.columns == 2 * H::width && r.a_step == 1 && r.b_step == 1 && r.b_row == 0) return run_pixels<Operation>(r);
  for (int64_t row = 0; row < r.rows; ++row) {
    const uint16_t *a = r.a + row * r.a_row, *b = r.b + row * r.b_row;
    uint16_t* y = r.y + row * r.columns;
    if (r.a_step == 1 && r.b_step == 1)
      run_row<Operation>(a, b, y, r.columns, false, false);
    else if (r.a_step == 1)
      run_row<Operation>(a, b, y, r.columns, false, true);
    else
      run_row<Operation>(a, b, y, r.columns, true, r.b_step == 0);
  }
}

}  // namespace

void f16_arithmetic_neon_fp16(HalfOperation operation, const HalfRows& rows) {
  switch (operation) {
    case HalfOperation::add:
      return run<HalfOperation::add>(rows);
    case HalfOperation::subtract:
      return run<HalfOperation::subtract>(rows);
    case HalfOperation::multiply:
      return run<HalfOperation::multiply>(rows);
    case HalfOperation::divide:
      return run<HalfOperation::divide>(rows);
  }
}

}  // namespace tenon::kernels
