#include "base/whole_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tenon {
namespace {

TEST(CopyInOrder, EverySizeAndNothingBeside) {
  std::vector<char> from(40000), to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 31 + i / 251);
  for (size_t bytes : {0, 1, 15, 16, 63, 64, 65, 127, 128, 200, 3072, 16383, 16384, 16385, 30000}) {
    for (size_t offset : {0, 1, 16, 61}) {
      std::ranges::fill(to, '\x55');
      copy_in_order(to.data() + offset, from.data() + 2 * offset, bytes);
      const auto first = to.begin() + static_cast<std::ptrdiff_t>(offset),
                 last = first + static_cast<std::ptrdiff_t>(bytes);
      EXPECT_TRUE(std::equal(first, last, from.begin() + static_cast<std::ptrdiff_t>(2 * offset)))
          << bytes << " " << offset;
      EXPECT_EQ(std::count(to.begin(), first, '\x55'), first - to.begin());
      EXPECT_EQ(std::count(last, to.end(), '\x55'), to.end() - last);
    }
  }
}

}  // namespace
}  // namespace tenon
