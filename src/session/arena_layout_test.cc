#include "session/arena_layout.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tenon {
namespace {

TEST(ArenaLayout, ReusesWhatIsFree) {
  ArenaLayout arena;
  const int64_t a = arena.allocate(100), b = arena.allocate(64), c = arena.allocate(1);
  EXPECT_EQ(a, 0);
  EXPECT_EQ(b, 128);
  EXPECT_EQ(c, 192);
  arena.release(a, 100);
  EXPECT_EQ(arena.allocate(128), 0);
  EXPECT_EQ(arena.bytes(), 256);
}

TEST(ArenaLayout, TakesTheSmallestGapAndJoinsNeighbours) {
  ArenaLayout arena;
  std::vector<int64_t> blocks;
  for (int64_t size : {256, 64, 128, 64}) blocks.push_back(arena.allocate(size));
  arena.release(blocks[0], 256);
  arena.release(blocks[2], 128);
  EXPECT_EQ(arena.allocate(100), blocks[2]);
  arena.release(blocks[1], 64);
  EXPECT_EQ(arena.allocate(320), 0);
  EXPECT_EQ(arena.bytes(), 512);
}

TEST(ArenaLayout, GrowsTheGapAtTheEnd) {
  ArenaLayout arena;
  arena.release(arena.allocate(64), 64);
  EXPECT_EQ(arena.allocate(640), 0);
  EXPECT_EQ(arena.bytes(), 640);
}

TEST(ArenaLayout, BlocksInUseNeverOverlap) {
  std::mt19937 random(1);
  ArenaLayout arena;
  std::vector<std::pair<int64_t, int64_t>> used;
  for (int i = 0; i < 2000; ++i) {
    if (!used.empty() && random() % 2 == 0) {
      const size_t k = random() % used.size();
      arena.release(used[k].first, used[k].second);
      used.erase(used.begin() + static_cast<std::ptrdiff_t>(k));
      continue;
    }
    const int64_t bytes = random() % 1000, offset = arena.allocate(bytes);
    ASSERT_EQ(offset % ArenaLayout::alignment, 0);
    ASSERT_LE(offset + bytes, arena.bytes());
    for (const auto& [other, size] : used) ASSERT_TRUE(offset >= other + size || other >= offset + bytes);
    used.emplace_back(offset, bytes);
  }
}

}  // namespace
}  // namespace tenon
