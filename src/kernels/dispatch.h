// Picks a kernel's implementation: one table of function pointers per instruction set.
#pragma once

#include "base/cpu_features.h"

// TENON_ISA_TABLES(Table, name) declares the tables `name_portable`, `name_neon`, …, each defined in the file of its
// instruction set, and `const Table& name()`, which returns the one for best_isa(). TENON_WIDE_ISA_TABLES(Table, name)
// does the same for kernels that have sve256, and best_wide_isa().
#if defined(__aarch64__)
#define TENON_ISA_TABLES(Table, name)              \
  extern const Table name##_portable, name##_neon; \
  inline const Table& name() { return ::tenon::best_isa() == ::tenon::Isa::neon ? name##_neon : name##_portable; }
#define TENON_WIDE_ISA_TABLES(Table, name)                            \
  extern const Table name##_portable, name##_neon, name##_sve256;     \
  inline const Table& name() {                                        \
    const ::tenon::Isa isa = ::tenon::best_wide_isa();                \
    if (isa == ::tenon::Isa::sve256) return name##_sve256;            \
    return isa == ::tenon::Isa::neon ? name##_neon : name##_portable; \
  }
#elif defined(__x86_64__)
#define TENON_ISA_TABLES(Table, name)                                 \
  extern const Table name##_portable, name##_avx2, name##_avx512;     \
  inline const Table& name() {                                        \
    const ::tenon::Isa isa = ::tenon::best_isa();                     \
    if (isa == ::tenon::Isa::avx512) return name##_avx512;            \
    return isa == ::tenon::Isa::avx2 ? name##_avx2 : name##_portable; \
  }
#else
#define TENON_ISA_TABLES(Table, name) \
  extern const Table name##_portable; \
  inline const Table& name() { return name##_portable; }
#endif

// On other processors every kernel has every instruction set.
#if !defined(__aarch64__)
#define TENON_WIDE_ISA_TABLES(Table, name) TENON_ISA_TABLES(Table, name)
#endif
