#include <gtest/gtest.h>

#include "pass_test.h"
#include "random_floats.h"

namespace tenon {
namespace {

struct Window {
  std::vector<int64_t> kernel, dilations, pads, strides = {1, 1};
};

ModelBuilder convolution(const Window& w, const SymbolicShape& image) {
  ModelBuilder b;
  b.input("x", ElementType::float32, image);
  const Shape shape{2, 3, w.kernel[0], w.kernel[1]};
  b.initializer("w", Tensor(shape, std::span<const float>(random_floats(shape.elements(), 1))));
  ir::Node& conv = b.node("Conv", {"x", "w"}, {"y"});
  conv.set_attribute({"dilations", w.dilations});
  conv.set_attribute({"pads", w.pads});
  conv.set_attribute({"strides", w.strides});
  b.output("y");
  return b;
}

// What is left of the convolution, as text; also checks that the results are the same.
std::string window_after(const Window& w, const SymbolicShape& image) {
  ModelBuilder b = convolution(w, image);
  const std::string text = optimized(b, {"unread-taps", "fold-constants", "dead-code"});
  if (!last_rewrites().empty()) {
    EXPECT_LT(change_by_extended(convolution(w, image)), 1e-5);
  }
  const size_t from = text.find("Conv(");
  return text.substr(from, text.find('\n', from) - from);
}

TEST(UnreadTaps, AreDropped) {
  const std::string one = window_after({{3, 3}, {24, 24}, {24, 24, 24, 24}}, {1, 3, 16, 16});
  EXPECT_NE(one.find("kernel_shape=[1, 1]"), std::string::npos) << one;
  EXPECT_NE(one.find("dilations=[1, 1]"), std::string::npos) << one;
  EXPECT_NE(one.find("pads=[0, 0, 0, 0]"), std::string::npos) << one;
  // Of one axis, and on one side.
  const std::string row = window_after({{3, 3}, {7, 2}, {7, 2, 7, 2}}, {1, 3, 7, 9});
  EXPECT_NE(row.find("kernel_shape=[1, 3]"), std::string::npos) << row;
  EXPECT_NE(row.find("pads=[0, 2, 0, 2]"), std::string::npos) << row;
  const std::string side = window_after({{2, 3}, {1, 8}, {0, 8, 0, 4}}, {1, 3, 5, 12});
  EXPECT_NE(side.find("kernel_shape=[2, 2]"), std::string::npos) << side;
  EXPECT_NE(side.find("pads=[0, 0, 0, 4]"), std::string::npos) << side;
}

TEST(UnreadTaps, StayWhereSomeOutputReadsThem) {
  const Window just_read{{3, 3}, {15, 15}, {15, 15, 15, 15}};
  EXPECT_EQ(window_after(just_read, {1, 3, 16, 16}).find("kernel_shape"), std::string::npos);
  // With a stride the first tap stands before the image or after it, but over it for the second output.
  const Window strided{{3, 3}, {3, 3}, {3, 3, 3, 3}, {4, 4}};
  EXPECT_EQ(window_after(strided, {1, 3, 5, 5}).find("kernel_shape"), std::string::npos);
  const Window unknown{{3, 3}, {24, 24}, {24, 24, 24, 24}};
  EXPECT_EQ(window_after(unknown, {1, 3, Dim::symbol("h"), Dim::symbol("w")}).find("kernel_shape"), std::string::npos);
}

}  // namespace
}  // namespace tenon
