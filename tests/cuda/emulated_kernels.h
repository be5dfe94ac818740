// What makes the text of a CUDA kernel C++ for the CPU. One block runs at a time; its threads are fibers that give way
// to each other where they wait for each other.
#include <ucontext.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define TENON_EMULATED 1
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__
#define __grid_constant__
#define __launch_bounds__(...)

using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::ceil, std::cos, std::cosh, std::erf;
using std::exp, std::expm1, std::exp2, std::fabs, std::floor, std::fma, std::fmax, std::fmin, std::fmod, std::log;
using std::log1p, std::log2, std::pow, std::rint, std::round, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
using std::trunc;

namespace emulated {

#ifdef __aarch64__
using Half = __fp16;  // older compilers have no other there
#else
using Half = _Float16;
#endif

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

constexpr unsigned warp = 32, most_threads = 1024;

enum class State : unsigned char { ready, waits_for_warp, waits_for_block, waits_for_barrier, done };

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

// What lanes show each other when they work on matrices together: one of two places in turn, so that nobody has to wait
// until all have read.
struct Shown {
  float a[8], b[4];
  unsigned a_bytes[4], b_bytes[2];
  const void* row;
};
inline Shown shown[2][most_threads];
inline unsigned char turns[most_threads];

// Copies that a thread has begun. Nothing is there before the thread waits for it.
struct AsyncCopy {
  void* to;
  const void* from;
  size_t bytes;
  bool valid;
  unsigned group;
};
inline std::vector<AsyncCopy> copies[most_threads];
inline unsigned groups[most_threads];

inline void require_aligned(const void* address, size_t bytes = 16) {
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  std::fprintf(stderr, "emulated kernel: an address of %zu bytes is not aligned\n", bytes);
  std::abort();
}

inline void wait(State why) {
  Fiber& own = fibers[thread.x];
  own.state = why;
  swapcontext(&own.context, &scheduler);
}

inline void run_fiber() {
  call(arguments);
  fibers[thread.x].state = State::done;
}

// A barrier in shared memory, as the eight bytes that it has there.
struct Barrier {
  unsigned short arrivals, missing;
  int bytes : 31;  // that are expected and not there yet
  unsigned phase : 1;
};
static_assert(sizeof(Barrier) == 8);
inline Barrier& barrier_of(unsigned long long* at) { return *reinterpret_cast<Barrier*>(at); }

inline void end_phase_if_complete(Barrier& barrier) {
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  barrier.phase ^= 1;
  barrier.missing = barrier.arrivals;
}

// What tests/cuda/emulated_driver.cc writes for cuTensorMapEncodeTiled, and for cuTensorMapEncodeIm2col.
struct Map {
  unsigned long long address, axes, is_mixed, sizes[4], box[4];
  union {
    long long steps[3];  // from the second axis on
    struct {
      int first[2], last[2], strides[2];  // of windows
    };
  };
};
// Where the taps of windows are.
struct Taps {
  bool are_wanted = false;
  long long x = 0, y = 0;
};
struct BoxCopy {
  unsigned char* to;
  Map map;
  Barrier* barrier;
  long long at[4];
  Taps taps = {};

  // Element i of the box, from the first axis on.
  void find(long long i, long long (&own)[4]) const {
    const long long* box = reinterpret_cast<const long long*>(map.box);
    for (int axis = 0; axis < 4; ++axis) {
      own[axis] = at[axis] + i % box[axis];
      i /= box[axis];
    }
  }
  // The same of windows, one after the other from that whose corner is there, line by line and image by image.
  void find_in_windows(long long i, long long (&own)[4]) const {
    const long long* sizes = reinterpret_cast<const long long*>(map.sizes);
    long long counts[2], places[2];
    for (int axis = 0; axis < 2; ++axis) {
      counts[axis] = (sizes[axis + 1] - 1 + map.last[axis] - map.first[axis]) / map.strides[axis] + 1;
      places[axis] = (at[axis + 1] - map.first[axis]) / map.strides[axis];
    }
    const long long window = (at[3] * counts[1] + places[1]) * counts[0] + places[0] + i / map.box[0];
    own[0] = at[0] + i % map.box[0];
    own[1] = window % counts[0] * map.strides[0] + map.first[0] + taps.x;
    own[2] = window / counts[0] % counts[1] * map.strides[1] + map.first[1] + taps.y;
    own[3] = window / counts[0] / counts[1];
  }

  void run() const {
    const long long* box = reinterpret_cast<const long long*>(map.box);
    const long long* sizes = reinterpret_cast<const long long*>(map.sizes);
    const long long bytes = box[0] * box[1] * box[2] * box[3] * 2;
    for (long long i = 0; i < bytes / 2; ++i) {
      long long own[4], place = 0, step = 1;
      bool is_inside = true;
      taps.are_wanted ? find_in_windows(i, own) : find(i, own);
      for (int axis = 0; axis < 4; ++axis) {
        is_inside &= own[axis] >= 0 && own[axis] < sizes[axis];
        place += own[axis] * step;
        step = taps.are_wanted ? step * sizes[axis] : map.steps[axis < 3 ? axis : 0];
      }
      const auto target = reinterpret_cast<uintptr_t>(to) + static_cast<uintptr_t>(i) * 2;
      auto* element = reinterpret_cast<unsigned short*>(map.is_mixed ? target ^ (target >> 3 & 0x70) : target);
      *element = is_inside ? reinterpret_cast<const unsigned short*>(map.address)[place] : 0;
    }
    barrier->bytes = barrier->bytes - static_cast<int>(bytes);
    end_phase_if_complete(*barrier);
  }
};
inline std::vector<BoxCopy> box_copies;  // nothing is there before somebody waits for it

inline void run_block_with_waiting() {
  constexpr size_t stack_bytes = 64 << 10;
  constexpr int most_rounds = 1 << 20;
  int rounds_without_work = 0;
  const unsigned count = threads.x;
  box_copies.clear();
  for (unsigned i = 0; i < count; ++i) {
    Fiber& fiber = fibers[i];
    if (!fiber.stack) fiber.stack = new char[stack_bytes];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, run_fiber, 0);
    fiber.state = State::ready;
    turns[i] = 0;
    copies[i].clear();
    groups[i] = 0;
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
    rounds_without_work = any ? 0 : rounds_without_work + 1;
    if (any) continue;
    for (unsigned i = 0; i < count; ++i) {
      if (fibers[i].state != State::waits_for_barrier) continue;
      any = true;
      fibers[i].state = State::ready;
    }
    if (rounds_without_work > most_rounds) {
      std::fprintf(stderr, "emulated kernel: a barrier is waited for in vain\n");
      std::abort();
    }
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

// Shows what `fill` writes to the lanes of the warp; returns what they all show, lane 0 first.
template <typename Fill>
const Shown* show(Fill fill) {
  Shown* own = shown[turns[thread.x] ^= 1];
  fill(own[thread.x]);
  wait(State::waits_for_warp);
  return own + thread.x / warp * warp;
}

template <typename T>
float element_of(unsigned pair, int half) {
  const auto bits = static_cast<unsigned short>(pair >> (16 * half));
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return widen(x);
}

inline unsigned short half_of(const void* row, unsigned column) {
  unsigned short bits;
  std::memcpy(&bits, static_cast<const char*>(row) + column * 2, 2);
  return bits;
}

}  // namespace emulated

#define threadIdx emulated::thread
#define blockIdx emulated::block
#define blockDim emulated::threads
#define gridDim emulated::blocks

inline void __syncthreads() { emulated::wait(emulated::State::waits_for_block); }
inline void __threadfence() {}
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

// Those of tensor_cores.h.
template <typename T>
void mma_16x8x16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const auto* lanes = emulated::show([&](emulated::Shown& own) {
    for (int i = 0; i < 8; ++i) own.a[i] = emulated::element_of<T>(a[i / 2], i % 2);
    for (int i = 0; i < 4; ++i) own.b[i] = emulated::element_of<T>(i < 2 ? b0 : b1, i % 2);
  });
  const unsigned lane = threadIdx.x % emulated::warp;
  for (unsigned x = 0; x < 4; ++x) {
    const unsigned row = lane / 4 + x / 2 * 8, column = lane % 4 * 2 + x % 2;
    float sum = 0;
    for (unsigned k = 0; k < 16; ++k)
      sum += lanes[row % 8 * 4 + k % 8 / 2].a[(row / 8 + k / 8 * 2) * 2 + k % 2] *
             lanes[column * 4 + k % 8 / 2].b[k / 8 * 2 + k % 2];
    d[x] += sum;
  }
}
inline void mma_16x8x8_tf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  auto number_of = [](unsigned bits) {
    bits &= 0xffffe000;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  };
  const auto* lanes = emulated::show([&](emulated::Shown& own) {
    for (int i = 0; i < 4; ++i) own.a[i] = number_of(a[i]);
    own.b[0] = number_of(b0);
    own.b[1] = number_of(b1);
  });
  const unsigned lane = threadIdx.x % emulated::warp;
  for (unsigned x = 0; x < 4; ++x) {
    const unsigned row = lane / 4 + x / 2 * 8, column = lane % 4 * 2 + x % 2;
    float sum = 0;
    for (unsigned k = 0; k < 8; ++k)
      sum += lanes[row % 8 * 4 + k % 4].a[row / 8 + k / 4 * 2] * lanes[column * 4 + k % 4].b[k / 4];
    d[x] += sum;
  }
}
template <typename A, typename B>
void mma_16x8x32(int (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const auto* lanes = emulated::show([&](emulated::Shown& own) {
    for (int i = 0; i < 4; ++i) own.a_bytes[i] = a[i];
    own.b_bytes[0] = b0;
    own.b_bytes[1] = b1;
  });
  const unsigned lane = threadIdx.x % emulated::warp;
  for (unsigned x = 0; x < 4; ++x) {
    const unsigned row = lane / 4 + x / 2 * 8, column = lane % 4 * 2 + x % 2;
    unsigned sum = 0;
    for (unsigned k = 0; k < 32; ++k) {
      const unsigned left = lanes[row % 8 * 4 + k % 16 / 4].a_bytes[row / 8 + k / 16 * 2];
      const unsigned right = lanes[column * 4 + k % 16 / 4].b_bytes[k / 16];
      sum += static_cast<unsigned>(static_cast<A>(left >> k % 4 * 8) * static_cast<B>(right >> k % 4 * 8));
    }
    d[x] = static_cast<int>(static_cast<unsigned>(d[x]) + sum);
  }
}
// Four warps multiply at once: what has not been copied by then is missing in the sums.
template <typename A, typename B, int N, int Row>
void group_64xNx32(int (*d)[4], const unsigned char* a, const unsigned char* b) {
  static_assert(Row == 64 || Row == 128);
  const unsigned lane = threadIdx.x % emulated::warp, first = threadIdx.x / emulated::warp % 4 * 16 + lane / 4;
  // Addresses count from the start of eight rows; bits of the row's number are added to those of the 16 bytes.
  auto byte_at = [](const unsigned char* from, unsigned row, unsigned k) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(from) + row * Row + k;
    return *reinterpret_cast<const unsigned char*>(at ^ (at >> 3 & (Row == 128 ? 0x70 : 0x30)));
  };
  for (unsigned j = 0; j < N / 8; ++j) {
    for (unsigned x = 0; x < 4; ++x) {
      const unsigned row = first + x / 2 * 8, column = j * 8 + lane % 4 * 2 + x % 2;
      unsigned sum = 0;
      for (unsigned k = 0; k < 32; ++k)
        sum += static_cast<unsigned>(static_cast<A>(byte_at(a, row, k)) * static_cast<B>(byte_at(b, column, k)));
      d[j][x] = static_cast<int>(static_cast<unsigned>(d[j][x]) + sum);
    }
  }
}
namespace emulated {
inline float tf32_of_bits(unsigned bits) { return std::bit_cast<float>(bits & 0xffffe000); }
}  // namespace emulated
// Element k of a row of Row bytes, as group_64xNx32 has them. Of a float the bits that TF32 has.
template <typename T, int Row>
float group_element(const unsigned char* from, unsigned row, unsigned k) {
  static_assert(Row == 64 || Row == 128);
  const uintptr_t at = reinterpret_cast<uintptr_t>(from) + row * Row + k * sizeof(T);
  T x;
  std::memcpy(&x, reinterpret_cast<const void*>(at ^ (at >> 3 & (Row == 128 ? 0x70 : 0x30))), sizeof x);
  if constexpr (sizeof x == 4)
    return emulated::tf32_of_bits(std::bit_cast<unsigned>(x));
  else
    return widen(x);
}
template <typename T, int N, int Row>
void group_64xNx16(float (&d)[N / 8][4], const unsigned char* a, const unsigned char* b, bool adds) {
  const unsigned lane = threadIdx.x % emulated::warp, first = threadIdx.x / emulated::warp % 4 * 16 + lane / 4;
  for (unsigned j = 0; j < N / 8; ++j) {
    for (unsigned x = 0; x < 4; ++x) {
      float sum = 0;
      for (unsigned k = 0; k < 32 / sizeof(T); ++k)
        sum +=
            group_element<T, Row>(a, first + x / 2 * 8, k) * group_element<T, Row>(b, j * 8 + lane % 4 * 2 + x % 2, k);
      d[j][x] = adds ? d[j][x] + sum : sum;
    }
  }
}
template <int N, int Row>
void group_by_rows_64xNx8(float (&d)[N / 8][4], const unsigned (&a)[4], const unsigned char* b, bool adds) {
  const auto* lanes = emulated::show([&](emulated::Shown& own) {
    for (int i = 0; i < 4; ++i) own.a[i] = emulated::tf32_of_bits(a[i]);
  });
  const unsigned lane = threadIdx.x % emulated::warp;
  for (unsigned j = 0; j < N / 8; ++j) {
    for (unsigned x = 0; x < 4; ++x) {
      float sum = 0;
      for (unsigned k = 0; k < 8; ++k)
        sum += lanes[lane / 4 * 4 + k % 4].a[x / 2 + k / 4 * 2] *
               group_element<float, Row>(b, j * 8 + lane % 4 * 2 + x % 2, k);
      d[j][x] = adds ? d[j][x] + sum : sum;
    }
  }
}
template <typename T, int N, int AStep, int BStep>
void group_plain_64xNx16(float (&d)[N / 8][4], const unsigned char* a, const unsigned char* b, bool adds) {
  emulated::require_aligned(a);
  emulated::require_aligned(b);
  const unsigned lane = threadIdx.x % emulated::warp, first = threadIdx.x / emulated::warp % 4 * 16 + lane / 4;
  constexpr unsigned lanes = 16 / sizeof(T);
  auto element = [](const unsigned char* from, unsigned row, unsigned step, unsigned k) {
    const T x = *reinterpret_cast<const T*>(from + row * 16 + k / lanes * step + k % lanes * sizeof(T));
    if constexpr (sizeof x == 4)
      return emulated::tf32_of_bits(std::bit_cast<unsigned>(x));
    else
      return widen(x);
  };
  for (unsigned j = 0; j < N / 8; ++j)
    for (unsigned x = 0; x < 4; ++x) {
      float sum = adds ? d[j][x] : 0;
      for (unsigned k = 0; k < 2 * lanes; ++k)
        sum += element(a, first + x / 2 * 8, AStep, k) * element(b, j * 8 + lane % 4 * 2 + x % 2, BStep, k);
      d[j][x] = sum;
    }
}
template <typename T, int N, int Row>
void group_by_rows_64xNx16(float (&d)[N / 8][4], const unsigned (&a)[4], const unsigned char* b, bool adds) {
  static_assert(N * 2 == Row);
  const auto* lanes = emulated::show([&](emulated::Shown& own) {
    for (int i = 0; i < 8; ++i) own.a[i] = emulated::element_of<T>(a[i / 2], i % 2);
  });
  const unsigned lane = threadIdx.x % emulated::warp;
  for (unsigned j = 0; j < N / 8; ++j) {
    for (unsigned x = 0; x < 4; ++x) {
      float sum = 0;
      for (unsigned k = 0; k < 16; ++k)
        sum += lanes[lane / 4 * 4 + k % 8 / 2].a[(x / 2 + k / 8 * 2) * 2 + k % 2] *
               group_element<T, Row>(b, k, j * 8 + lane % 4 * 2 + x % 2);
      d[j][x] = adds ? d[j][x] + sum : sum;
    }
  }
}
template <typename T, int N, int Slab>
void group_by_slabs_64xNx16(float (&d)[N / 8][4], const unsigned char* a, const unsigned char* b, bool adds) {
  const unsigned lane = threadIdx.x % emulated::warp, first = threadIdx.x / emulated::warp % 4 * 16 + lane / 4;
  for (unsigned j = 0; j < N / 8; ++j) {
    for (unsigned x = 0; x < 4; ++x) {
      const unsigned column = j * 8 + lane % 4 * 2 + x % 2;
      float sum = 0;
      for (unsigned k = 0; k < 16; ++k)
        sum += group_element<T, 128>(a, first + x / 2 * 8, k) *
               group_element<T, 128>(b + column / 64 * Slab, k, column % 64);
      d[j][x] = adds ? d[j][x] + sum : sum;
    }
  }
}
inline void group_sees_copies() {}
inline void group_begin() {}
inline void group_commit() {}
template <int N>
void group_wait() {}
template <typename T>
void group_done(T (&)[4]) {}
inline void load_matrix_x4(unsigned (&r)[4], const void* row) {
  emulated::require_aligned(row);
  const auto* lanes = emulated::show([&](emulated::Shown& own) { own.row = row; });
  const unsigned lane = threadIdx.x % emulated::warp;
  for (unsigned i = 0; i < 4; ++i)
    std::memcpy(&r[i], static_cast<const char*>(lanes[i * 8 + lane / 4].row) + lane % 4 * 4, 4);
}
inline void load_matrix_x4_transposed(unsigned (&r)[4], const void* row) {
  emulated::require_aligned(row);
  const auto* lanes = emulated::show([&](emulated::Shown& own) { own.row = row; });
  const unsigned lane = threadIdx.x % emulated::warp;
  for (unsigned i = 0; i < 4; ++i) {
    const auto* rows = lanes + i * 8 + lane % 4 * 2;
    r[i] = emulated::half_of(rows[0].row, lane / 4) | static_cast<unsigned>(emulated::half_of(rows[1].row, lane / 4))
                                                          << 16;
  }
}
inline void store_matrix_x2_transposed(const unsigned (&r)[2], void* row) {
  emulated::require_aligned(row);
  const auto* lanes = emulated::show([&](emulated::Shown& own) { own.row = row; });
  const unsigned lane = threadIdx.x % emulated::warp;
  for (unsigned i = 0; i < 2; ++i)
    for (unsigned half = 0; half < 2; ++half) {
      const auto bits = static_cast<unsigned short>(r[i] >> 16 * half);
      char* to = static_cast<char*>(const_cast<void*>(lanes[i * 8 + lane % 4 * 2 + half].row));
      std::memcpy(to + lane / 4 * 2, &bits, 2);
    }
}
inline void copy_async_16(void* to, const void* from, bool valid) {
  emulated::require_aligned(to);
  emulated::require_aligned(from);
  emulated::copies[threadIdx.x].push_back({to, from, 16, valid, emulated::groups[threadIdx.x]});
}
template <int Bytes>
void copy_async(void* to, const void* from) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  emulated::require_aligned(to, Bytes);
  emulated::require_aligned(from, Bytes);
  emulated::copies[threadIdx.x].push_back({to, from, Bytes, true, emulated::groups[threadIdx.x]});
}
template <int Bytes>
void copy_async_if(void* to, const void* from, bool is_copied) {
  if (is_copied) copy_async<Bytes>(to, from);
}
inline void copy_async_commit() { ++emulated::groups[threadIdx.x]; }
template <int N>
void copy_async_wait() {
  auto& copies = emulated::copies[threadIdx.x];
  std::erase_if(copies, [](const emulated::AsyncCopy& copy) {
    if (copy.group + N >= emulated::groups[threadIdx.x]) return false;
    if (copy.valid)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else
      std::memset(copy.to, 0, copy.bytes);
    return true;
  });
}

// Those of box_copies.h.
struct TensorMap {
  emulated::Map map;
  unsigned long long rest[2];
};
static_assert(sizeof(TensorMap) == 128);
inline void barrier_make(unsigned long long* barrier, unsigned arrivals) {
  const auto all = static_cast<unsigned short>(arrivals);
  emulated::barrier_of(barrier) = {all, all, 0, 0};
}
inline void barriers_made() {}
inline void prefetch_map(const TensorMap*) {}
inline void barrier_arrive(unsigned long long* barrier) {
  --emulated::barrier_of(barrier).missing;
  emulated::end_phase_if_complete(emulated::barrier_of(barrier));
}
inline void barrier_expect(unsigned long long* barrier, unsigned bytes) {
  emulated::barrier_of(barrier).bytes += static_cast<int>(bytes);
  barrier_arrive(barrier);
}
inline void barrier_wait(unsigned long long* barrier, unsigned parity) {
  emulated::Barrier& own = emulated::barrier_of(barrier);
  for (;; emulated::wait(emulated::State::waits_for_barrier)) {
    std::erase_if(emulated::box_copies, [&](const emulated::BoxCopy& copy) {
      if (copy.barrier != &own) return false;
      copy.run();
      return true;
    });
    if (own.phase != parity) return;
  }
}
inline void copy_box(void* to, const TensorMap* map, unsigned long long* barrier, int x, int y, int z = 0, int n = 0) {
  emulated::require_aligned(to, map->map.is_mixed ? 1024 : 128);
  emulated::box_copies.push_back(
      {static_cast<unsigned char*>(to), map->map, &emulated::barrier_of(barrier), {x, y, z, n}});
}
inline void copy_windows(void* to, const TensorMap* map, unsigned long long* barrier, int channel, int x, int y,
                         int image, int tap_x, int tap_y) {
  emulated::require_aligned(to, 1024);
  emulated::box_copies.push_back({static_cast<unsigned char*>(to),
                                  map->map,
                                  &emulated::barrier_of(barrier),
                                  {channel, x, y, image},
                                  {true, tap_x, tap_y}});
}
template <int N, bool More>
void change_registers() {}

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
inline int __ffs(int x) { return __builtin_ffs(x); }
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
