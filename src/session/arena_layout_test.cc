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

TEST(LayOutBySize, LargeBlocksFirst) {
  // In the order of the steps, the second block would lie behind the first and leave no room for the third.
  std::vector<ArenaBlock> blocks = {{0, 1, 128}, {1, 2, 64}, {2, 3, 256}};
  EXPECT_EQ(lay_out_by_size(blocks), 320);
  EXPECT_EQ(blocks[2].offset, 0);
}

TEST(LayOutBySize, BlocksInUseAtTheSameTimeNeverOverlap) {
  std::mt19937 random(2);
  std::vector<ArenaBlock> blocks;
  for (int i = 0; i < 200; ++i) {
    const int first = static_cast<int>(random() % 100);
    blocks.push_back({first, first + static_cast<int>(random() % 9), static_cast<int64_t>(random() % 5000)});
  }
  const int64_t total = lay_out_by_size(blocks);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const ArenaBlock& a = blocks[i];
    ASSERT_EQ(a.offset % ArenaLayout::alignment, 0);
    ASSERT_LE(a.offset + a.bytes, total);
    for (size_t j = 0; j < i; ++j) {
      const ArenaBlock& b = blocks[j];
      const bool together = a.first_step <= b.last_step && b.first_step <= a.last_step;
      ASSERT_TRUE(!together || a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes);
    }
  }
}

}  // namespace
}  // namespace tenon
