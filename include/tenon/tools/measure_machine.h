#pragma once

#include <cstdint>

namespace tenon::tools {

// What this machine can do at most, and what Tenon's kernels reach of it: rates a second, the best of some short runs.
// FLOPs are float32 multiplications and additions; bytes are counted where they are read and where they are written.
struct MachineSpeed {
  struct Rates {
    int threads = 0;
    double peak_flops = 0;      // multiply-adds that stay in registers
    double matmul_flops = 0;    // products of 512 rows for each thread with a constant matrix of 512 x 512
    double read_bandwidth = 0;  // bytes read from memory that no cache holds
    double copy_bandwidth = 0;  // bytes of a copy in such memory, read and written
    double peak_bandwidth = 0;  // the larger of the two
  };
  Rates one, all;            // one thread, and as many as sessions use: both are the same where that is one
  int64_t memory_bytes = 0;  // that reading and copying went through
  double seconds = 0;        // that measuring took
};

// Takes some two seconds, more on slow machines, and up to 1 GB of memory, but no more than an eighth of what is
// available. `threads` are those of `all`; 0: as many as sessions use. Other work on the machine lowers the rates.
MachineSpeed measure_machine(int threads = 0);

}  // namespace tenon::tools
