// What this processor can do, and which instruction set kernels use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// Every flag includes the operating system's support.
struct CpuFeatures {
  // aarch64
  bool neon = false;
  bool fp16 = false;
  bool dotprod = false;
  bool i8mm = false;
  bool bf16 = false;
  bool sve = false;
  bool sve256 = false;  // with registers of 256 bits in this process
  // x86_64
  bool avx2 = false;    // with FMA and F16C
  bool avx512 = false;  // F, BW, DQ and VL
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool amx = false;  // tiles, int8 and bf16; permission to use the tiles was granted
  // Bytes one core can count on: a cache shared by several is divided among them.
  int64_t l1d_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;
  int64_t l3_bytes = 1 << 20;
  std::string model;
};

// Detected once, on first use.
const CpuFeatures& cpu_features();

// A kernel's implementation, each better than the one before it on a processor that has both.
enum class Isa { portable, neon, sve256, avx2, avx512 };

std::string_view isa_name(Isa isa);

// Those of this processor that every kernel has, worst to best; never empty.
std::vector<Isa> available_isas(const CpuFeatures& features);

// The same with sve256, which only some kernels have: those that are bound by arithmetic on vectors.
std::vector<Isa> available_wide_isas(const CpuFeatures& features);

struct IsaChoice {
  Isa isa = Isa::portable;
  std::string error;  // why the wish was not granted, for a user; empty when it was
};

// The best one that every kernel has, or the one that `wish` names unless it is empty: sve256 has not been timed yet,
// so only a wish chooses it.
IsaChoice choose_isa(std::string_view wish, const CpuFeatures& features);

// What kernels use: the best available one, or what the environment variable TENON_ISA names.
Isa best_isa();

// The same for kernels that have sve256: where that is chosen, best_isa() is neon.
Isa best_wide_isa();

// Why TENON_ISA was not followed; empty when it was or is not set.
const std::string& isa_error();

// What this build takes for granted and this processor lacks; empty when it can run it.
std::string missing_baseline();

// Makes best_wide_isa() return `isa`, which must be available, until destroyed, and best_isa() follow it. For tests and
// benchmarks.
class ScopedIsa {
 public:
  explicit ScopedIsa(Isa isa);
  ~ScopedIsa();
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;

 private:
  int previous_;
};

}  // namespace tenon
