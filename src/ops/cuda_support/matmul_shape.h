// A product of two matrices.
#pragma once

#include "tenon/element_type.h"

namespace tenon::ops {

// y = a @ b: a is [rows, depth], b [depth, columns], or [columns, depth] where it is transposed.
struct MatMulShape {
  ElementType type = ElementType::float16;
  int64_t rows = 0, columns = 0, depth = 0;
  bool transpose_b = false;
  bool has_fixed_b = false;  // b is constant: no kernel writes it
  bool allow_tf32 = false;
};

}  // namespace tenon::ops
