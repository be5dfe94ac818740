#include <gtest/gtest.h>

#include "base/channel_block.h"
#include "pass_test.h"
#include "random_floats.h"

namespace tenon {
namespace {

const int64_t block = channel_block(best_isa());

struct Conv {
  int64_t in, out, kernel = 3, stride = 1, groups = 1, dilation = 1;
};

void add_conv(ModelBuilder& b, const std::string& from, const std::string& to, const Conv& c) {
  const Shape shape{c.out, c.in / c.groups, c.kernel, c.kernel};
  b.initializer("w_" + to, Tensor(shape, std::span<const float>(random_floats(shape.elements(), 1))));
  ir::Node& node = b.node("Conv", {from, "w_" + to}, {to});
  node.set_attribute({"group", c.groups});
  node.set_attribute({"strides", std::vector<int64_t>{c.stride, c.stride}});
  node.set_attribute({"dilations", std::vector<int64_t>{c.dilation, c.dilation}});
  node.set_attribute({"pads", std::vector<int64_t>(4, c.kernel / 2 * c.dilation)});
}

// The sizes of tiles that the convolutions of a chain got, 0 for none; all weights count as `other_weights` more
// floats.
std::vector<int64_t> tiles_of(const std::vector<Conv>& chain, int64_t size, int64_t other_weights = 0) {
  ModelBuilder b;
  b.input("x0", ElementType::float32, SymbolicShape{1, chain[0].in, size, size});
  for (size_t i = 0; i < chain.size(); ++i) add_conv(b, "x" + std::to_string(i), "x" + std::to_string(i + 1), chain[i]);
  const std::string last = "x" + std::to_string(chain.size());
  b.output(last);
  if (other_weights > 0) {
    b.input("other", ElementType::float32, SymbolicShape{other_weights});
    b.initializer("weights", Tensor(Shape{other_weights}, std::span<const float>(random_floats(other_weights, 2))));
    b.node("Add", {"other", "weights"}, {"sum"});
    b.output("sum");
  }
  const std::string text = optimized(b, {"blocked-layout", "winograd"});
  std::vector<int64_t> tiles;
  for (size_t at = text.find("BlockedConv("); at != std::string::npos; at = text.find("BlockedConv(", at + 1)) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    const size_t found = line.find("winograd=");
    tiles.push_back(found == std::string::npos ? 0 : std::stoll(line.substr(found + 9)));
  }
  return tiles;
}

TEST(WinogradPass, TakesConvolutionsOfThreeByThree) {
  const int64_t c = 64 / block * block, many = 1 << 20;
  EXPECT_EQ(tiles_of({{c, c}}, 56, many), (std::vector<int64_t>{4}));
  EXPECT_EQ(tiles_of({{c, c}, {c, c, 3, 1, 1, 2}}, 56, many), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(tiles_of({{c, 3 * c}, {3 * c, 3 * c, 3, 1, 3}}, 56, many), (std::vector<int64_t>{4, 4}))
      << "of wide groups";
  for (const Conv& other : {Conv{c, c, 5}, Conv{c, c, 3, 2}, Conv{c, c, 3, 1, c}, Conv{c, c, 3, 1, 4}, Conv{c, c, 1}})
    EXPECT_EQ(tiles_of({{c, c}, other, {c, c}}, 56, many), (std::vector<int64_t>{4, 0, 4}))
        << "kernel " << other.kernel << ", stride " << other.stride << ", groups " << other.groups;
}

// Pixels that lie far apart leave tiles nearly empty.
TEST(WinogradPass, LeavesKernelsThatAreWiderThanTheImage) {
  const int64_t c = 64 / block * block;
  EXPECT_EQ(tiles_of({{c, c}, {c, c, 3, 1, 1, 14}, {c, c}}, 16, 1 << 20)[1], 0);
}

// 1.2 times the weights: none of 4 by 4 pixels, which take three times as much besides, but one of 2 by 2.
TEST(WinogradPass, SpendsNoMoreMemoryThanIsAllowed) {
  const int64_t c = 64 / block * block;
  EXPECT_EQ(tiles_of({{c, c}}, 56), (std::vector<int64_t>{2}));
  int64_t spent = 0;
  const std::vector<int64_t> tiles = tiles_of({{c, c}, {c, c}, {c, c}, {c, c}, {c, c}}, 56);
  ASSERT_EQ(tiles.size(), 5u);
  for (int64_t tile : tiles) spent += tile > 0 ? (tile + 2) * (tile + 2) - 9 : 0;
  EXPECT_LE(static_cast<double>(spent), 1.2 * 9 * 5);
  EXPECT_GT(spent, 0);
}

TEST(WinogradPass, RoundsLittle) {
  const int64_t c = 4 * block;
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{1, c, 19, 30});
  add_conv(b, "x", "a", {c, c});
  b.node("Relu", {"a"}, {"r"});
  add_conv(b, "r", "b", {c, c});
  b.node("Add", {"b", "x"}, {"y"});
  b.output("y");
  SessionOptions all, none;
  none.level = OptimizationLevel::none;
  const NamedValues inputs = {
      {"x", Tensor(Shape{1, c, 19, 30}, std::span<const float>(random_floats(c * 19 * 30, 3)))}};
  const Session session = b.session(all);
  EXPECT_TRUE(std::ranges::any_of(session.rewrites(), [](const Rewrite& r) { return r.pass == "winograd"; }));
  const Tensor y = session.run(inputs).at("y").tensor(), expected = b.session(none).run(inputs).at("y").tensor();
  float most = 0, off = 0;
  for (size_t i = 0; i < static_cast<size_t>(y.elements()); ++i) {
    most = std::max(most, std::fabs(expected.data<float>()[i]));
    off = std::max(off, std::fabs(y.data<float>()[i] - expected.data<float>()[i]));
  }
  EXPECT_LE(off, 1e-5f * most);
}

}  // namespace
}  // namespace tenon
