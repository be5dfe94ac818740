// What makes the text of a CUDA kernel C++ for the CPU. One block runs at a time; its threads are fibers that give way
// to each other where they wait for each other.
#include <ucontext.h>

#include <cmath>
#include <cstring>

#define TENON_EMULATED 1
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__
#define __launch_bounds__(...)

using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::ceil, std::cos, std::cosh, std::erf;
using std::exp, std::expm1, std::exp2, std::fabs, std::floor, std::fma, std::fmax, std::fmin, std::fmod, std::log;
using std::log1p, std::log2, std::pow, std::rint, std::round, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
using std::trunc;

namespace emulated {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

constexpr unsigned warp = 32, most_threads = 1024;

enum class State : unsigned char { ready, waits_for_warp, waits_for_block, done };

struct Fiber {
  ucontext_t context;
  char* stack = nullptr;
  State state = State::done;
};

inline Index thread, block, threads, blocks;
inline Fiber fibers[most_threads];
inline ucontext_t scheduler;
inline void (*call)(void**) = nullptr;
inline void** arguments = nullptr;
inline unsigned char slots[most_threads][16];

inline void wait(State why) {
  Fiber& own = fibers[thread.x];
  own.state = why;
  swapcontext(&own.context, &scheduler);
}

inline void run_fiber() {
  call(arguments);
  fibers[thread.x].state = State::done;
}

inline void run_block_with_waiting() {
  constexpr size_t stack_bytes = 64 << 10;
  const unsigned count = threads.x;
  for (unsigned i = 0; i < count; ++i) {
    Fiber& fiber = fibers[i];
    if (!fiber.stack) fiber.stack = new char[stack_bytes];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, run_fiber, 0);
    fiber.state = State::ready;
  }
  for (bool any = true; any;) {
    any = false;
    for (unsigned i = 0; i < count; ++i) {
      if (fibers[i].state != State::ready) continue;
      any = true;
      thread.x = i;
      swapcontext(&scheduler, &fibers[i].context);
    }
    if (any) continue;
    // Those who wait for all that are left of their warp, or else of the block.
    auto release = [&](unsigned first, unsigned last, State state) {
      bool all = true, some = false;
      for (unsigned i = first; i < last; ++i) {
        all &= fibers[i].state == state || fibers[i].state == State::done;
        some |= fibers[i].state == state;
      }
      if (!all || !some) return;
      any = true;
      for (unsigned i = first; i < last; ++i)
        if (fibers[i].state == state) fibers[i].state = State::ready;
    };
    for (unsigned first = 0; first < count; first += warp)
      release(first, first + warp < count ? first + warp : count, State::waits_for_warp);
    if (!any) release(0, count, State::waits_for_block);
  }
}

template <typename T>
T exchange(T value, unsigned from) {
  std::memcpy(slots[thread.x], &value, sizeof value);
  wait(State::waits_for_warp);
  T result = value;
  const unsigned lane = thread.x / warp * warp + from;
  if (from < warp && lane < threads.x) std::memcpy(&result, slots[lane], sizeof result);
  wait(State::waits_for_warp);
  return result;
}

}  // namespace emulated

#define threadIdx emulated::thread
#define blockIdx emulated::block
#define blockDim emulated::threads
#define gridDim emulated::blocks

inline void __syncthreads() { emulated::wait(emulated::State::waits_for_block); }
inline void __syncwarp(unsigned = 0) { emulated::wait(emulated::State::waits_for_warp); }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulated::exchange(value, (threadIdx.x % emulated::warp) ^ static_cast<unsigned>(mask));
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned delta) {
  return emulated::exchange(value, threadIdx.x % emulated::warp + delta);
}
template <typename T>
T __shfl_up_sync(unsigned, T value, unsigned delta) {
  return emulated::exchange(value, threadIdx.x % emulated::warp - delta);
}
template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulated::exchange(value, static_cast<unsigned>(lane) % emulated::warp);
}
template <typename T>
T atomicAdd(T* to, T value) {
  const T before = *to;
  *to = before + value;
  return before;
}
template <typename T>
T atomicCAS(T* to, T expected, T value) {
  const T before = *to;
  if (before == expected) *to = value;
  return before;
}
template <typename T>
T atomicMax(T* to, T value) {
  const T before = *to;
  if (value > before) *to = value;
  return before;
}
template <typename T>
T __ldg(const T* from) {
  return *from;
}
inline float __expf(float x) { return std::exp(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline long long __float_as_int(float x) {
  int b;
  std::memcpy(&b, &x, 4);
  return b;
}

extern "C" void tenon_run_kernel(void (*kernel)(void**), void** arguments, const unsigned* grid, int waits) {
  using namespace emulated;
  call = kernel;
  emulated::arguments = arguments;
  blocks = {grid[0], grid[1], grid[2]};
  threads = {grid[3], 1, 1};
  for (block.z = 0; block.z < blocks.z; ++block.z) {
    for (block.y = 0; block.y < blocks.y; ++block.y) {
      for (block.x = 0; block.x < blocks.x; ++block.x) {
        if (waits) {
          run_block_with_waiting();
          continue;
        }
        for (thread.x = 0; thread.x < threads.x; ++thread.x) kernel(arguments);
      }
    }
  }
}
