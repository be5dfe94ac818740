// What a node may leave out, for kernels: null, and any type.
#pragma once

#include <fmt/format.h>

#include "ops/cuda_support/kernels.h"

namespace tenon::ops {

inline const void* input_address(const KernelRun& run, size_t i) {
  return run.has_input(i) ? run.input(i).raw() : nullptr;
}
inline const void* output_address(KernelRun& run, size_t i) {
  return run.wants_output(i) ? run.output(i).raw() : nullptr;
}

inline std::string_view input_type_text(const KernelRun& run, size_t i) {
  return run.has_input(i) ? cuda::type_text(run.input(i).type()) : "u8";
}
inline std::string_view output_type_text(KernelRun& run, size_t i) {
  return run.wants_output(i) ? cuda::type_text(run.output(i).type()) : "u8";
}

// "typedef float T; typedef Wide<T> A;" for a type.
inline std::string types_text(ElementType type) {
  return fmt::format("typedef {} T;\ntypedef Wide<T> A;\n", cuda::type_text(type));
}

}  // namespace tenon::ops
