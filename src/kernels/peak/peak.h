// What one core can do at most, measured: what kernels are held against.
#pragma once

#include <cstdint>

#include "kernels/dispatch.h"

namespace tenon::kernels {

// Floating-point operations a second of multiply-adds that stay in registers, with the instruction set in use now: the
// best of some short bursts in the calling thread, a few milliseconds in all.
double peak_flops();

// Bytes a second that one thread reads from memory that no cache holds.
double peak_read_bytes();

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
