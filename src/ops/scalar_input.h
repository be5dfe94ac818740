#pragma once

#include "ops/inference.h"

namespace tenon::ops {

// The one number in an integer input of rank 0 or 1, unknown if it is computed; nullopt when the input is left out.
inline std::optional<Dim> scalar_input(const Inference& i, size_t input, std::string_view name) {
  if (!i.has_input(input)) return std::nullopt;
  if (i.has_shape(input)) {
    const SymbolicShape& shape = i.shape(input);
    if (shape.size() > 1 || (shape.size() == 1 && shape[0].is_known() && !shape[0].is(1)))
      i.fail("{} must be one number, it has shape {}", name, to_string(shape));
  }
  auto values = i.values(input);
  return values && values->size() == 1 ? (*values)[0] : Dim::unknown();
}

// The same, of an input that must be there, as a number that is at least `least`.
inline Dim scalar_input_from(const Inference& i, size_t input, std::string_view name, int64_t least) {
  Dim value = scalar_input(i, input, name).value_or(Dim::unknown());
  if (value.is_known() && value.value() < least)
    i.fail_with(ErrorCode::invalid_value, fmt::format("{} is {}; it must be at least {}", name, value.value(), least));
  return value;
}

}  // namespace tenon::ops
