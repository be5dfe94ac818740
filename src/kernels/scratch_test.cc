#include "kernels/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

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

TEST(Scratch, ThreadsKeepTheirOwn) {
  trim_scratch();
  const void* mine;
  {
    const Scratch scratch(10000);
    mine = scratch.as<void>();
  }
  std::thread([&] {
    const Scratch theirs(10000);
    EXPECT_NE(theirs.as<void>(), mine);
  }).join();
  // Those of a thread that has ended are gone, and this thread's are still there.
  const size_t before = idle_scratch_bytes();
  EXPECT_GE(before, 10000u);
  {
    const Scratch scratch(10000);
    EXPECT_EQ(scratch.as<void>(), mine);
    EXPECT_EQ(idle_scratch_bytes(), 0u);
  }
  std::thread([&] {
    trim_scratch();
    EXPECT_EQ(idle_scratch_bytes(), 0u);
  }).join();
}

TEST(Scratch, HugeBuffersAreNotKept) {
  trim_scratch();
  { const Scratch scratch(size_t{200} << 20); }
  EXPECT_EQ(idle_scratch_bytes(), 0u);
}

}  // namespace
}  // namespace tenon::kernels
