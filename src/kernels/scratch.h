// Working memory of kernels, reused between calls.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// Memory aligned to cache lines, freed on destruction.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws std::bad_alloc.
  explicit AlignedBuffer(size_t bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t size() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// An uninitialised buffer taken from the stock of this thread for as long as the object lives. All stocks are bounded:
// what exceeds them is freed. The thread that makes one also destroys it; others may use it meanwhile.
class Scratch {
 public:
  explicit Scratch(size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T>
  T* as() const {
    return buffer_.as<T>();
  }

 private:
  AlignedBuffer buffer_;
};

// Bytes that stocks hold and no one uses.
size_t idle_scratch_bytes();

// Frees them.
void trim_scratch();

}  // namespace tenon::kernels
