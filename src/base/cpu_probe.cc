#include "base/cpu_probe.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tenon {

#if defined(__aarch64__)

namespace {

// Of a register, as Linux lets this process use it.
int sve_bytes() {
  const int length = prctl(PR_SVE_GET_VL);
  return length < 0 ? 0 : length & PR_SVE_VL_LEN_MASK;
}

}  // namespace

void probe_instruction_sets(CpuFeatures& features) {
  const unsigned long capabilities = getauxval(AT_HWCAP);
  const unsigned long more = getauxval(AT_HWCAP2);
  features.neon = capabilities & HWCAP_ASIMD;
  features.fp16 = (capabilities & HWCAP_ASIMDHP) && (capabilities & HWCAP_FPHP);
  features.dotprod = capabilities & HWCAP_ASIMDDP;
  features.sve = capabilities & HWCAP_SVE;
  features.sve256 = features.sve && sve_bytes() == 32;
  features.i8mm = more & HWCAP2_I8MM;
  features.bf16 = more & HWCAP2_BF16;
}

#elif defined(__x86_64__)

namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros where the processor does not have that leaf.
Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

// The register states that the operating system saves.
uint64_t saved_states() {
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

constexpr bool bit(uint64_t value, int index) { return (value >> index) & 1; }

// Linux grants the tile registers only to a process that asks.
bool request_amx_tiles() {
  constexpr int request_permission = 0x1023;
  constexpr int tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace

void probe_instruction_sets(CpuFeatures& features) {
  const Registers basic = cpuid(1, 0);
  if (!bit(basic.ecx, 27)) return;  // no xgetbv
  const uint64_t states = saved_states();
  const bool saves_avx = (states & 0x6) == 0x6;
  const bool saves_avx512 = saves_avx && (states & 0xe0) == 0xe0;
  const bool saves_tiles = (states & 0x60000) == 0x60000;
  const Registers extended = cpuid(7, 0);
  const Registers extended1 = cpuid(7, 1);
  const bool fma = bit(basic.ecx, 12), f16c = bit(basic.ecx, 29);
  features.avx2 = saves_avx && fma && f16c && bit(extended.ebx, 5);
  features.avx512 = saves_avx512 && features.avx2 && bit(extended.ebx, 16) && bit(extended.ebx, 17) &&
                    bit(extended.ebx, 30) && bit(extended.ebx, 31);
  features.avx512_vnni = features.avx512 && bit(extended.ecx, 11);
  features.avx512_bf16 = features.avx512 && bit(extended1.eax, 5);
  const bool has_amx = bit(extended.edx, 22) && bit(extended.edx, 24) && bit(extended.edx, 25);
  features.amx = features.avx512 && saves_tiles && has_amx && request_amx_tiles();
}

#else

void probe_instruction_sets(CpuFeatures&) {}

#endif

}  // namespace tenon
