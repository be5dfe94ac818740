#include "base/float_mode.h"

namespace tenon {

#if defined(__aarch64__)

uint64_t float_mode() {
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}

void set_float_mode(uint64_t mode) { asm volatile("msr fpcr, %0" ::"r"(mode) : "memory"); }

uint64_t with_denormals_flushed(uint64_t mode) { return mode | 1 << 24 | 1 << 19; }

#elif defined(__x86_64__)

uint64_t float_mode() {
  uint32_t mode;
  asm volatile("stmxcsr %0" : "=m"(mode));
  return mode & ~uint64_t{0x3f};  // without the flags of what has happened
}

void set_float_mode(uint64_t mode) {
  const auto low = static_cast<uint32_t>(mode);
  asm volatile("ldmxcsr %0" ::"m"(low) : "memory");
}

uint64_t with_denormals_flushed(uint64_t mode) { return mode | 0x8040; }

#else

uint64_t float_mode() { return 0; }
void set_float_mode(uint64_t) {}
uint64_t with_denormals_flushed(uint64_t mode) { return mode; }

#endif

}  // namespace tenon
