#include "tools/report/layout.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::tools {
namespace {

// Two ways from the first box to the last, and a way around both.
Picture diamond() { return {{{80, 40}, {120, 40}, {60, 50}, {200, 40}}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}}}; }

void expect_good(const Layout& layout, const Picture& picture) {
  ASSERT_EQ(layout.centres.size(), picture.boxes.size());
  ASSERT_EQ(layout.curves.size(), picture.arrows.size());
  for (size_t i = 0; i < picture.boxes.size(); ++i) {
    const Point& a = layout.centres[i];
    EXPECT_GE(a.x - picture.boxes[i].width / 2, -0.1);
    EXPECT_LE(a.x + picture.boxes[i].width / 2, layout.width + 0.1);
    EXPECT_GE(a.y - picture.boxes[i].height / 2, -0.1);
    EXPECT_LE(a.y + picture.boxes[i].height / 2, layout.height + 0.1);
    for (size_t j = 0; j < i; ++j) {
      const Point& b = layout.centres[j];
      const bool apart = std::abs(a.x - b.x) >= (picture.boxes[i].width + picture.boxes[j].width) / 2 ||
                         std::abs(a.y - b.y) >= (picture.boxes[i].height + picture.boxes[j].height) / 2;
      EXPECT_TRUE(apart) << i << " and " << j << " overlap";
    }
  }
  for (size_t i = 0; i < picture.arrows.size(); ++i) {
    const auto [from, to] = picture.arrows[i];
    EXPECT_EQ(layout.curves[i].size() % 3, 1u);
    EXPECT_LT(layout.centres[static_cast<size_t>(from)].y, layout.centres[static_cast<size_t>(to)].y);
  }
}

TEST(Layout, RowsGoDown) { expect_good(lay_out_in_rows(diamond()), diamond()); }

TEST(Layout, PortsAreAtTheEnds) {
  Picture picture = diamond();
  picture.first = 4;
  picture.last = 5;
  picture.boxes.insert(picture.boxes.end(), 2, {6, 6});
  picture.arrows.insert(picture.arrows.end(), {{4, 0}, {4, 2}, {3, 5}, {1, 5}});
  expect_good(lay_out_in_rows(picture), picture);
}

TEST(Layout, CirclesEnd) {
  const Picture picture{{{10, 10}, {10, 10}, {10, 10}}, {{0, 1}, {1, 2}, {2, 0}}};
  const Layout layout = lay_out_in_rows(picture);
  EXPECT_EQ(layout.curves.size(), 3u);
  EXPECT_LT(layout.centres[0].y, layout.centres[2].y);
}

TEST(Layout, NothingIsFine) { EXPECT_EQ(lay_out_in_rows({}).width, 0); }

// Where Graphviz is installed; else nothing is promised.
TEST(Layout, Graphviz) {
  const std::vector<Picture> pictures = {diamond(), {{{30, 30}}, {}}, diamond()};
  const std::optional<std::vector<Layout>> layouts = lay_out_with_graphviz(pictures);
  if (!layouts) GTEST_SKIP() << "there is no program 'dot'";
  ASSERT_EQ(layouts->size(), 3u);
  for (size_t i = 0; i < pictures.size(); ++i) expect_good((*layouts)[i], pictures[i]);
}

}  // namespace
}  // namespace tenon::tools
