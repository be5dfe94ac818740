#include "base/block_storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tenon {
namespace {

TEST(BlockStorage, GivesEachItsOwnMemory) {
  std::vector<PackedBuffer> buffers;
  const size_t sizes[] = {1, 64, 65, 0, 1000, 40000, 7, 500000, 3 << 20, 100, 2 << 20, 1 << 20, 1 << 20};
  {
    BlockStorage storage;
    EXPECT_TRUE(storage.fills());
    for (size_t bytes : sizes) {
      const int number = static_cast<int>(buffers.size()) + 1;
      buffers.push_back(storage.get(bytes, [&](void* memory) { std::memset(memory, number, bytes); }));
    }
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_EQ(buffers[i].size(), sizes[i]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers[i].as<char>()) % 64, 0u) << i;
    for (size_t at = 0; at < sizes[i]; ++at) ASSERT_EQ(buffers[i].as<char>()[at], static_cast<char>(i + 1)) << i;
  }
}

TEST(BlockStorage, GoesOnWhenFillingThrows) {
  BlockStorage storage;
  EXPECT_THROW(storage.get(100, [](void*) { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_EQ(storage.get(4, [](void* memory) { std::memset(memory, 5, 4); }).as<char>()[3], 5);
}

}  // namespace
}  // namespace tenon
