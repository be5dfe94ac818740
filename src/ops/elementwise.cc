#include "ops/elementwise.h"

#include "base/fail.h"

namespace tenon::ops {

void fail_no_loop(ElementType type) {
  fail(ErrorCode::unsupported, "there is no kernel for element type {}", name_of(type));
}

void infer_broadcast(Inference& i, ElementType element, size_t first) {
  SymbolicShape shape;
  for (size_t k = first; k < i.input_count(); ++k) {
    if (!i.has_shape(k)) return i.output(0, element, std::nullopt);
    shape = k == first ? i.shape(k) : i.broadcast(shape, i.shape(k));
  }
  i.output(0, element, std::move(shape));
}

void infer_values(Inference& i, ValueFunction function) {
  constexpr size_t most = 64;
  if (!i.wants_values()) return;
  SmallVector<SymbolicValues, 3> inputs;
  size_t count = 1;
  for (size_t k = 0; k < i.input_count(); ++k) {
    if (!i.has_shape(k) || i.rank(k) > 1) return;
    if (i.rank(k) == 1 && !(i.shape(k)[0].is_known() && i.shape(k)[0].value() <= static_cast<int64_t>(most))) return;
    auto values = i.followed_values(k);
    if (!values) return;
    // A declared shape may contradict the content.
    if (i.rank(k) == 1 && !i.shape(k)[0].is(static_cast<int64_t>(values->size()))) return;
    if (values->size() != 1) count = values->size();
    inputs.push_back(std::move(*values));
  }
  SymbolicValues result;
  for (size_t at = 0; at < count; ++at) {
    SmallVector<Dim, 3> arguments;
    for (const SymbolicValues& values : inputs) arguments.push_back(values[values.size() == 1 ? 0 : at]);
    try {
      result.push_back(function({arguments.data(), arguments.size()}));
    } catch (const Error& error) {
      // Integers wrap around when the model runs; sizes do not.
      if (error.code() != ErrorCode::overflow) throw;
      return;
    }
  }
  i.output_values(0, std::move(result));
}

}  // namespace tenon::ops
