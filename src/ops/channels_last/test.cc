#include "op_test.h"

namespace tenon {
namespace {

OpTest conv() {
  OpTest test("ChannelsLastConv", 1, "tenon");
  // Two pixels of three channels become two of two.
  test.input<float>({1, 1, 2, 3}, {1, 2, 3, -1, 0, 4}).constant<float>({2, 1, 1, 3}, {1, 0, 1, 0, 2, -1});
  return test;
}

TEST(ChannelsLastConv, OneByOne) { conv().expect<float>({1, 1, 2, 2}, {4, 1, 3, -4}).run(); }

TEST(ChannelsLastConv, BiasResidualAndActivation) {
  conv()
      .attribute("activation", "Relu")
      .input<float>({2}, {10, 1})
      .input<float>({1, 1, 2, 2}, {-20, 1, 2, 3})
      .expect<float>({1, 1, 2, 2}, {0, 3, 15, 0})
      .run();
}

TEST(ChannelsLastConv, WindowsAndGroups) {
  // Each of two channels has a window of its own along the rows.
  OpTest("ChannelsLastConv", 1, "tenon")
      .attribute("group", 2)
      .attribute("pads", {1, 0, 1, 0})
      .input<float>({1, 3, 1, 2}, {1, 10, 2, 20, 3, 30})
      .constant<float>({2, 3, 1, 1}, {1, 1, 1, 1, 0, -1})
      .expect<float>({1, 3, 1, 2}, {3, -20, 6, -20, 5, 20})
      .run();
}

TEST(ChannelsLastConv, Errors) {
  const std::string text = conv().attribute("group", 2).error();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "shape-mismatch in tenon.ChannelsLastConv 'tested' (node 0): the channels of X and the channels of W times "
            "group must be equal: 3 against 6");
}

TEST(ChannelsLastMaxPool, Windows) {
  OpTest("ChannelsLastMaxPool", 1, "tenon")
      .attribute("kernel_shape", {2, 1})
      .input<float>({1, 3, 1, 2}, {1, 30, 2, 20, 3, 10})
      .expect<float>({1, 2, 1, 2}, {2, 30, 3, 20})
      .run();
}

TEST(ChannelsLastAveragePool, PaddingCountsWhenAsked) {
  for (bool counts : {false, true}) {
    OpTest("ChannelsLastAveragePool", 1, "tenon")
        .attribute("kernel_shape", {2, 1})
        .attribute("pads", {1, 0, 0, 0})
        .attribute("count_include_pad", counts ? 1 : 0)
        .input<float>({1, 2, 1, 2}, {1, 10, 3, 30})
        .expect<float>({1, 2, 1, 2}, {counts ? 0.5f : 1, counts ? 5.0f : 10, 2, 20})
        .run();
  }
}

}  // namespace
}  // namespace tenon
