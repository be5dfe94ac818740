#include "base/content_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace tenon {
namespace {

TEST(ContentHash, ChangesWithEveryBitAndWithTheSize) {
  for (size_t size : {1, 7, 8, 9, 31, 32, 33, 40, 100}) {
    std::vector<std::byte> bytes(size);
    std::set<uint64_t> seen{content_hash(bytes)};
    for (size_t bit = 0; bit < size * 8; ++bit) {
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
      EXPECT_TRUE(seen.insert(content_hash(bytes)).second) << size << " bytes, bit " << bit;
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
    }
    bytes.push_back(std::byte{0});
    EXPECT_TRUE(seen.insert(content_hash(bytes)).second) << size;
  }
}

TEST(ContentHash, ChangesWhenPartsSwapPlaces) {
  std::vector<std::byte> bytes(128);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i);
  const uint64_t before = content_hash(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 32, bytes.begin() + 32);
  EXPECT_NE(content_hash(bytes), before);
}

TEST(ContentHash, IsTheSameEverywhere) {
  const char text[] = "a model";
  EXPECT_EQ(content_hash(std::as_bytes(std::span(text))), 5757564274256846476u);
}

}  // namespace
}  // namespace tenon
