// The element types of operators that only the optimiser makes.
#pragma once

#include <string>

#include "ops/operator.h"

namespace tenon::ops {

inline constexpr TypeSet fused_types{ElementType::float16, ElementType::bfloat16, ElementType::float32};

// Why the host's kernel does not run the node; empty if it does.
inline std::string why_not_fused_on_host(const ir::Node& node) {
  const bool runs = node.input(0) && node.input(0)->type.element == ElementType::float32;
  return runs ? "" : "the CPU's kernel takes float32 only";
}

}  // namespace tenon::ops
