#include "kernels/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tenon::kernels {
namespace {

TEST(Scratch, IsAlignedAndReused) {
  trim_scratch();
  const void* first;
  {
    const Scratch scratch(10000);
    first = scratch.as<void>();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_EQ(idle_scratch_bytes(), 0u);
  }
  EXPECT_GE(idle_scratch_bytes(), 10000u);
  {
    const Scratch again(9000), other(9000);
    EXPECT_EQ(again.as<void>(), first);
    EXPECT_NE(other.as<void>(), first);
  }
  trim_scratch();
  EXPECT_EQ(idle_scratch_bytes(), 0u);
}

TEST(Scratch, HugeBuffersAreNotKept) {
  trim_scratch();
  { const Scratch scratch(size_t{200} << 20); }
  EXPECT_EQ(idle_scratch_bytes(), 0u);
}

}  // namespace
}  // namespace tenon::kernels
