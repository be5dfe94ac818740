#include "ops/range/range.h"

#include <algorithm>
#include <cmath>

#include "ops/decomposition.h"
#include "ops/dispatch.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {

int64_t range_length(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  for (const Tensor* scalar : {&start, &limit, &delta}) {
    if (scalar->elements() != 1)
      fail(ErrorCode::shape_mismatch, "start, limit and delta must be scalars; one has shape {}",
           scalar->shape().to_string());
  }
  int64_t length = 0;
  dispatch<float, double, float16, bfloat16, int16_t, int32_t, int64_t>(start.type(), [&]<typename T>() {
    T first = start.data<T>()[0], last = limit.data<T>()[0], step = delta.data<T>()[0];
    if constexpr (std::is_integral_v<T>) {
      if (step == 0) fail(ErrorCode::invalid_value, "delta is 0");
      __int128 distance = static_cast<__int128>(last) - first;
      if ((distance > 0) != (step > 0) || distance == 0) return;
      __int128 whole = distance / step + (distance % step != 0);
      if (whole > INT64_MAX) fail(ErrorCode::overflow, "a range from {} to {} is too long", first, last);
      length = static_cast<int64_t>(whole);
    } else {
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      auto wide = [](T value) { return static_cast<double>(static_cast<Wide>(value)); };
      double count = std::ceil((wide(last) - wide(first)) / wide(step));
      if (wide(step) == 0) fail(ErrorCode::invalid_value, "delta is 0");
      if (!(count < 0x1p62))
        fail(ErrorCode::invalid_value, "a range from {} to {} by {} has no length", wide(first), wide(last),
             wide(step));
      length = static_cast<int64_t>(std::max(count, 0.0));
    }
  });
  return length;
}

namespace {

void infer_range(Inference& i) {
  if (i.constant(0) && i.constant(1) && i.constant(2)) {
    int64_t length = range_length(*i.constant(0), *i.constant(1), *i.constant(2));
    i.output(0, i.element(0), SymbolicShape{Dim(length)});
    auto first = i.ints(0), step = i.ints(2);
    if (!first || !step || length > static_cast<int64_t>(most_values)) return;
    SymbolicValues values;
    auto from = static_cast<uint64_t>((*first)[0]), by = static_cast<uint64_t>((*step)[0]);  // products may wrap around
    for (int64_t n = 0; n < length; ++n)
      values.push_back(Dim(static_cast<int64_t>(from + static_cast<uint64_t>(n) * by)));
    return i.output_values(0, std::move(values));
  }
  auto start = i.values(0), limit = i.values(1), delta = i.values(2);
  bool followed = start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1;
  if (!followed || !(*delta)[0].is_known() || (*delta)[0].value() == 0)
    return i.output(0, i.element(0), SymbolicShape{Dim::unknown()});
  // A size as the limit is not negative.
  bool counts_up = (*start)[0].is(0) && (*delta)[0].is(1) && !(*limit)[0].is_known();
  Dim length = counts_up ? (*limit)[0] : max(ceil_div((*limit)[0] - (*start)[0], (*delta)[0]), Dim(0));
  i.output(0, i.element(0), SymbolicShape{std::move(length)});
}

// (limit - start) / delta, rounded up; negative if that is no number or too long for a length. Integers are without
// sign on the way, as the distance may not fit with one.
Term length(Decomposition& d, Term start, Term limit, Term delta) {
  if (delta.type != ElementType::int64) {
    auto exact = [](Term x) { return cast(x, ElementType::float64); };
    Term count = d.add("Ceil", {(exact(limit) - exact(start)) / exact(delta)});
    return where(less(count, 0x1p62), cast(max(count, 0), ElementType::int64), -1);
  }
  auto as = [&](Term x, ElementType type) { return d.add("BitCast", {x}, {{"to", type}}, type); };
  Term forward = greater(delta, 0), lower = where(forward, start, limit), upper = where(forward, limit, start);
  Term distance = as(upper - lower, ElementType::uint64), step = as(abs(delta), ElementType::uint64);
  Term whole = distance / step, rest = distance - whole * step;
  Term count = as(whole + min(rest, 1), ElementType::int64);
  return where(less(lower, upper), count, 0);
}

void decompose_range(Decomposition& d) {
  bool floats = types::floats.contains(d.element(0));
  auto operand = [&](size_t i) { return floats ? d.wide_input(i) : cast(d.input(i), ElementType::int64); };
  Term start = operand(0), delta = operand(2);
  // A negative count is refused where it is used.
  Term count = where(equal(delta, 0), d.ints({-1}), length(d, start, operand(1), delta));
  Term index = d.indices(count);
  d.output(0, start + cast(index, start.type) * delta);
}

}  // namespace

void define_range(OperatorList& list) {
  constexpr TypeSet countable = types::floats | TypeSet{ElementType::int16, ElementType::int32, ElementType::int64};
  list.add("Range", {11, 27})
      .input("start", "T")
      .input("limit", "T")
      .input("delta", "T")
      .output("output", "T")
      .types("T", countable)
      .attribute("stash_type", ir::AttributeKind::int_)
      .infer(infer_range)
      .decompose(decompose_range)
      .attribute_since(27, "stash_type", 1);
}

}  // namespace tenon::ops
