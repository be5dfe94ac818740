// Waiting without sleeping.
#pragma once

namespace tenon {

// Tells the CPU that this thread waits for another one.
inline void pause_cpu() {
#if defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#elif defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace tenon
