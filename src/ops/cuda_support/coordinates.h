// Where an element is in a tensor.
#pragma once

#include <fmt/format.h>

#include "ops/cuda_support/loop.h"

namespace tenon::ops {

// The type that numbers below `count` are divided in: the GPU divides 32 bits several times faster than 64.
inline std::string_view division_type(int64_t count) { return count < int64_t{1} << 32 ? "u32" : "u64"; }

// As coordinates_text, of one of `count` elements.
inline std::string coordinates_text(int rank, size_t first, int64_t count) {
  const std::string_view type = division_type(count);
  std::string text = fmt::format("{} rest = ({})i;\n    ", type, type);
  for (int axis = rank - 1; axis > 0; --axis) {
    const std::string size = fmt::format("({})v[{}]", type, first + static_cast<size_t>(axis));
    text += fmt::format("const i64 c{} = rest % {}; rest /= {};\n    ", axis, size, size);
  }
  return text + "const i64 c0 = rest;\n    ";
}

}  // namespace tenon::ops
