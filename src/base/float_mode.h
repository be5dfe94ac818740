// How a thread computes with floats: rounding, and what becomes of numbers too small for full precision (denormals).
#pragma once

#include <cstdint>

namespace tenon {

// The processor's control register of this thread.
uint64_t float_mode();
void set_float_mode(uint64_t mode);

// The same with denormals taken and given as zero.
uint64_t with_denormals_flushed(uint64_t mode);

// A mode of this thread for as long as the object lives.
class ScopedFloatMode {
 public:
  explicit ScopedFloatMode(uint64_t mode) : previous_(float_mode()) {
    if (mode != previous_) set_float_mode(mode);
  }
  ~ScopedFloatMode() {
    if (float_mode() != previous_) set_float_mode(previous_);
  }
  ScopedFloatMode(const ScopedFloatMode&) = delete;
  ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;

 private:
  uint64_t previous_;
};

}  // namespace tenon
