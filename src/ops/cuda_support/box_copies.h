// The text of functions by which one thread fetches boxes of tensors into shared memory while others work, on GPUs of
// compute capability 9.0. Needs tensor_core_functions before it.
#pragma once

#include <string_view>

namespace tenon::ops {

// A barrier, in shared memory, goes from phase to phase: the first is 0. Each ends when so many arrivals as it was made
// with have come, and all bytes that were expected in it. One thread makes barriers, calls barriers_made, and then the
// block waits for all.
//   barrier_wait(barrier, parity): until the phase of that parity has ended, the last one or one before it. Of a new
//     barrier, those of parity 1 have.
//   barrier_expect(barrier, bytes): an arrival, and bytes that copies are to bring.
//   copy_box(to, map, barrier, x, y[, z, n]): the box that begins there, of a tensor of two or four axes, the last one
//     first. `map` is a parameter of the kernel: const __grid_constant__ TensorMap. `to` is a multiple of 128 bytes, of
//     1024 where 16 bytes at a time change places (tensor_map.h).
//   prefetch_map(map): boxes of it will be copied soon.
//   copy_windows(to, map, barrier, channel, x, y, image, tap_x, tap_y): of windows over images, the first one with its
//     corner at x, y, the element that is so far from each one's corner.
// change_registers<N, MORE>: how many a thread may have from here on; all of four warps call it.
inline constexpr std::string_view box_copies = R"cuda(
#ifndef TENON_EMULATED
struct alignas(64) TensorMap { u64 words[16]; };
inline void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
inline void barrier_make(u64* barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
inline void barriers_made() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
inline void barrier_expect(u64* barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(shared_address(barrier)), "r"(bytes) : "memory");
}
inline void barrier_arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(barrier)) : "memory");
}
inline void barrier_wait(u64* barrier, u32 parity) {
  asm volatile("{.reg .pred p;\n again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @p bra done;\n bra again;\n"
               " done: }" :: "r"(shared_address(barrier)), "r"(parity) : "memory");
}
inline void copy_box(void* to, const TensorMap* map, u64* barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               :: "r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y) : "memory");
}
inline void copy_box(void* to, const TensorMap* map, u64* barrier, int x, int y, int z, int n) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%3, %4, %5, %6}], [%2];"
               :: "r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(n) : "memory");
}
inline void copy_windows(void* to, const TensorMap* map, u64* barrier, int channel, int x, int y, int image, int tap_x, int tap_y) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};"
               :: "r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(x), "r"(y), "r"(image),
                  "h"((u16)tap_x), "h"((u16)tap_y) : "memory");
}
template <int N, bool MORE> inline void change_registers() {
  if (MORE)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N));
  else
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N));
}
#endif
)cuda";

}  // namespace tenon::ops
