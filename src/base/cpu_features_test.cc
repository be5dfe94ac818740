#include "base/cpu_features.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(CpuFeatures, IsaChoice) {
  CpuFeatures server;
  server.avx2 = server.avx512 = true;
  CpuFeatures arm;
  arm.neon = true;
  CpuFeatures wide_arm = arm;
  wide_arm.sve = wide_arm.sve256 = true;
  const struct {
    const char* wish;
    const CpuFeatures& features;
    Isa isa;
    const char* error;
  } table[] = {
      {"", server, Isa::avx512, ""},
      {"avx2", server, Isa::avx2, ""},
      {"portable", server, Isa::portable, ""},
      {"", arm, Isa::neon, ""},
      {"portable", arm, Isa::portable, ""},
      {"avx2", arm, Isa::neon,
       "TENON_ISA is 'avx2', which this processor does not have; this processor has: portable, neon"},
      {"mmx", arm, Isa::neon,
       "TENON_ISA is 'mmx', which is not an instruction set Tenon knows; this processor has: portable, neon"},
      {"", wide_arm, Isa::neon, ""},
      {"neon", wide_arm, Isa::neon, ""},
      {"sve256", wide_arm, Isa::sve256, ""},
      {"mmx", wide_arm, Isa::neon,
       "TENON_ISA is 'mmx', which is not an instruction set Tenon knows; this processor has: portable, neon, sve256"},
      {"sve256", arm, Isa::neon,
       "TENON_ISA is 'sve256', which this processor does not have; this processor has: portable, neon"},
      {"", CpuFeatures{}, Isa::portable, ""},
  };
  for (const auto& row : table) {
    const IsaChoice choice = choose_isa(row.wish, row.features);
    EXPECT_EQ(choice.isa, row.isa) << row.wish;
    EXPECT_EQ(choice.error, row.error);
  }
}

TEST(CpuFeatures, ScopedIsaOverrides) {
  const Isa before = best_isa(), wide_before = best_wide_isa();
  {
    ScopedIsa forced(Isa::portable);
    EXPECT_EQ(best_isa(), Isa::portable);
    EXPECT_EQ(best_wide_isa(), Isa::portable);
  }
  {
    ScopedIsa forced(Isa::sve256);
    EXPECT_EQ(best_isa(), Isa::neon);
    EXPECT_EQ(best_wide_isa(), Isa::sve256);
  }
  EXPECT_EQ(best_isa(), before);
  EXPECT_EQ(best_wide_isa(), wide_before);
}

TEST(CpuFeatures, OnlySomeKernelsHaveWideVectors) {
  CpuFeatures features;
  features.neon = features.sve = features.sve256 = true;
  EXPECT_EQ(available_isas(features), (std::vector<Isa>{Isa::portable, Isa::neon}));
  EXPECT_EQ(available_wide_isas(features), (std::vector<Isa>{Isa::portable, Isa::neon, Isa::sve256}));
  features.sve256 = false;  // registers of another size
  EXPECT_EQ(available_wide_isas(features), available_isas(features));
}

TEST(CpuFeatures, DetectsThisMachine) {
  const CpuFeatures& features = cpu_features();
  EXPECT_GE(features.l1d_bytes, 4 << 10);
  EXPECT_GE(features.l2_bytes, features.l1d_bytes);
  EXPECT_FALSE(features.model.empty());
#if defined(__aarch64__)
  EXPECT_TRUE(features.neon);
  EXPECT_TRUE(features.sve || !features.sve256);
#endif
}

}  // namespace
}  // namespace tenon
