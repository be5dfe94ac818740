// What a core, or all of them, can do at most, measured: what kernels are held against.
#pragma once

#include <cstdint>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "kernels/dispatch.h"

namespace tenon::kernels {

// Floating-point operations a second of multiply-adds that stay in registers, with the instruction set in use now: the
// best of some short bursts in the calling thread, a few milliseconds in all.
double peak_flops();

// Bytes a second that one thread reads from memory that no cache holds.
double peak_read_bytes();

// Amounts of work a second, the most of some calls, each of which returns how much it did. There are two at least, and
// none begins after `seconds`.
double best_rate(double seconds, FunctionRef<double()> call);

// Work for it, shared among the threads of a pool. Memory is in blocks of peak_block_bytes.
constexpr int64_t peak_block_bytes = 1 << 18;
// Multiply-adds in registers, a millisecond or less; returns their floating-point operations.
double multiply_add_all(ThreadPool& pool);
// Both return the bytes that they read and write.
double read_all(ThreadPool& pool, const float* data, int64_t blocks);
double copy_all(ThreadPool& pool, const float* from, float* to, int64_t blocks);

struct PeakKernels {
  Isa isa;
  int64_t flops_per_step;
  // Both return what keeps the compiler from leaving the work out. Factors are 32 floats; they come from memory, as
  // those of kernels do: some cores multiply constants more slowly.
  float (*multiply_add)(int64_t steps, const float* factors);
  float (*read)(const float* data, int64_t n);  // n is a multiple of 1024
};

TENON_ISA_TABLES(PeakKernels, peak_kernels)

}  // namespace tenon::kernels
