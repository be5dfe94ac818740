#pragma once

#include "bindings.h"

namespace tenon::python {

// An array of another library, as it lies in memory.
struct ForeignArray {
  ElementType type = ElementType::undefined;
  Shape shape;
  std::vector<int64_t> byte_strides;  // empty: contiguous
  char* data = nullptr;
  bool read_only = false;
  int gpu = -1;  // whose memory it is in; -1: the host's
  std::shared_ptr<void> owner;
};

// Throws what the object's methods throw, and ErrorCode::unsupported for devices and types that Tenon has not. What
// writes an array on a GPU is done when this returns.
ForeignArray import_dlpack(nb::handle object);

}  // namespace tenon::python
