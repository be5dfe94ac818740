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

// While it lives, arrays of a GPU that this thread imports are ready in a stream of the caller's, which is not waited
// for; null: they are ready when they are imported.
class ReadyInStream {
 public:
  explicit ReadyInStream(void* stream);
  ReadyInStream(const ReadyInStream&) = delete;
  ReadyInStream& operator=(const ReadyInStream&) = delete;
  ~ReadyInStream();

 private:
  void* before_;
};

}  // namespace tenon::python
