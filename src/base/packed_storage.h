// Memory of what kernels make of constants once and read in every run, such as weights in another order.
#pragma once

#include <cstddef>
#include <memory>

#include "base/function_ref.h"

namespace tenon {

// Memory aligned to cache lines that nobody changes once it is filled. Copies share it.
class PackedBuffer {
 public:
  PackedBuffer() = default;
  PackedBuffer(std::shared_ptr<const void> data, size_t bytes) : data_(std::move(data)), bytes_(bytes) {}

  template <class T>
  const T* as() const {
    return static_cast<const T*>(data_.get());
  }
  size_t size() const { return bytes_; }

 private:
  std::shared_ptr<const void> data_;
  size_t bytes_ = 0;
};

// Where packed constants get their memory and, when they were packed before, its content.
class PackedStorage {
 public:
  virtual ~PackedStorage() = default;
  // Whether get() calls `fill`. If not, the constants have types and shapes but no content: do not read them.
  virtual bool fills() const = 0;
  // Memory of `bytes` that `fill` writes, or that has been written.
  virtual PackedBuffer get(size_t bytes, FunctionRef<void(void*)> fill) = 0;
};

// Fresh memory, filled at once. Throws std::bad_alloc.
PackedBuffer make_packed(size_t bytes, FunctionRef<void(void*)> fill);
// The storage that does so.
PackedStorage& fresh_storage();

}  // namespace tenon
