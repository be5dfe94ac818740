#include <algorithm>
#include <array>
#include <limits>

#include "base/channel_block.h"
#include "op_test.h"

namespace tenon {
namespace {

const int64_t block = channel_block(best_isa());

Tensor floats(const Shape& shape, int64_t multiplier) {
  Tensor result(ElementType::float32, shape);
  int64_t i = 0;
  for (float& value : result.mutable_data<float>()) value = static_cast<float>(i++ * multiplier % 23 - 11) / 8;
  return result;
}

// [N, C, H, W] to [N, C / block, H, W, block], with zeros for channels that are none.
Tensor blocked(const Tensor& x, int64_t block = tenon::block) {
  const int64_t pixels = x.dim(2) * x.dim(3), channels = x.dim(1), blocks = (channels + block - 1) / block;
  Tensor result(ElementType::float32, Shape{x.dim(0), blocks, x.dim(2), x.dim(3), block});
  std::ranges::fill(result.mutable_data<float>(), 0.0f);
  auto from = x.data<float>();
  auto to = result.mutable_data<float>();
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t n = i / pixels / channels, c = i / pixels % channels;
    to[static_cast<size_t>(((n * blocks + c / block) * pixels + i % pixels) * block + c % block)] =
        from[static_cast<size_t>(i)];
  }
  return result;
}

// A convolution with stride 1 and one pixel of padding, plus the residual.
Tensor convolved(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor* residual, bool relu) {
  Tensor y(ElementType::float32, Shape{x.dim(0), w.dim(0), x.dim(2), x.dim(3)});
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3), in = w.dim(1), groups = channels / in;
  auto from = x.data<float>(), weights = w.data<float>(), bias = b.data<float>();
  auto to = y.mutable_data<float>();
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t c = i % width, r = i / width % height, m = i / width / height % w.dim(0);
    const int64_t n = i / width / height / w.dim(0);
    double sum = bias[static_cast<size_t>(m)];
    for (int64_t k = 0; k < in * 9; ++k) {
      const int64_t ir = r + k % 9 / 3 - 1, ic = c + k % 3 - 1, channel = m / (w.dim(0) / groups) * in + k / 9;
      if (ir < 0 || ir >= height || ic < 0 || ic >= width) continue;
      sum += double{from[static_cast<size_t>(((n * channels + channel) * height + ir) * width + ic)]} *
             weights[static_cast<size_t>(m * in * 9 + k)];
    }
    if (residual) sum += residual->data<float>()[static_cast<size_t>(i)];
    to[static_cast<size_t>(i)] = static_cast<float>(relu ? std::max(0.0, sum) : sum);
  }
  return y;
}

TEST(Blocked, Conversions) {
  for (const Shape& shape : {Shape{2, 2 * block, 3, 5}, Shape{1, block, 1, 1}, Shape{0, block, 2, 2}}) {
    const Tensor x = floats(shape, 7);
    OpTest("ToBlocked", 1, "tenon").attribute("block", block).input(x).expect(blocked(x)).run();
    OpTest("FromBlocked", 1, "tenon").attribute("block", block).input(blocked(x)).expect(x).run();
  }
  for (int64_t channels : {block - 1, block + 1, 2 * block + 3}) {
    const Tensor x = floats({2, channels, 3, 5}, 7);
    OpTest("ToBlocked", 1, "tenon").attribute("block", block).input(x).expect(blocked(x)).run();
    OpTest("FromBlocked", 1, "tenon")
        .attribute("block", block)
        .attribute("channels", channels)
        .input(blocked(x))
        .expect(x)
        .run();
  }
  OpTest("ToBlocked", 1, "tenon")
      .attribute("block", 3)
      .input<float>({1, 3, 1, 2}, {1, 2, 3, 4, 5, 6})
      .expect<float>({1, 1, 1, 2, 3}, {1, 3, 5, 2, 4, 6})
      .run();
}

Tensor halves(const Tensor& x) {
  Tensor result(ElementType::float16, x.shape());
  std::ranges::transform(x.data<float>(), result.mutable_data<float16>().begin(), [](float f) { return float16(f); });
  return result;
}

TEST(Blocked, ConversionsOfHalfPrecision) {
  for (int64_t channels : {32, 19}) {
    const Tensor x = floats({2, channels, 3, 5}, 7);
    OpTest("ToBlocked", 1, "tenon").attribute("block", 16).input(halves(x)).expect(halves(blocked(x, 16))).run();
    OpTest("FromBlocked", 1, "tenon")
        .attribute("block", 16)
        .attribute("channels", channels)
        .input(halves(blocked(x, 16)))
        .expect(halves(x))
        .run();
  }
}

// Where the processor has no arithmetic for it, it is decomposed.
TEST(Blocked, ConvOfHalfPrecision) {
  const int64_t lanes = 16, in = 2 * lanes + 3, out = lanes + 5;
  const Tensor x = floats({2, in, 4, 5}, 5), w = floats({out, in, 3, 3}, 7), b = floats({out}, 3);
  const Tensor residual = floats({2, out, 4, 5}, 11);
  const auto conv = [&] {
    OpTest test("BlockedConv", 1, "tenon");
    test.attribute("block", lanes).attribute("pads", {1, 1, 1, 1}).tolerance(0.03, 0.003);
    return test;
  };
  const auto sum = halves(blocked(convolved(x, w, b, &residual, true), lanes));
  conv()
      .attribute("activation", "Relu")
      .input(halves(blocked(x, lanes)))
      .constant(halves(w))
      .input(halves(b))
      .input(halves(blocked(residual, lanes)))
      .expect(sum)
      .run();
  const Tensor image = floats({1, 3, 6, 7}, 5), first = floats({lanes, 3, 3, 3}, 7), bias = floats({lanes}, 3);
  conv()
      .attribute("plain_input", 1)
      .input(halves(image))
      .input(halves(first))
      .input(halves(bias))
      .expect(halves(blocked(convolved(image, first, bias, nullptr, false), lanes)))
      .run();
  const Tensor deep = floats({2, 2 * lanes, 4, 5}, 5), taps = floats({2 * lanes, 1, 3, 3}, 7);
  const Tensor biases = floats({2 * lanes}, 3);
  conv()
      .attribute("group", 2 * lanes)
      .input(halves(blocked(deep, lanes)))
      .constant(halves(taps))
      .input(halves(biases))
      .expect(halves(blocked(convolved(deep, taps, biases, nullptr, false), lanes)))
      .run();
}

TEST(Blocked, Conv) {
  const Tensor x = floats({2, 2 * block, 4, 5}, 5), w = floats({block, 2 * block, 3, 3}, 7), b = floats({block}, 3);
  const Tensor residual = floats({2, block, 4, 5}, 11);
  const auto conv = [] {
    OpTest test("BlockedConv", 1, "tenon");
    test.attribute("block", block).attribute("pads", {1, 1, 1, 1}).tolerance(1e-5, 1e-4);
    return test;
  };
  conv().input(blocked(x)).constant(w).input(b).expect(blocked(convolved(x, w, b, nullptr, false))).run();
  conv()
      .attribute("activation", "Relu")
      .input(blocked(x))
      .input(w)
      .constant(b)
      .input(blocked(residual))
      .expect(blocked(convolved(x, w, b, &residual, true)))
      .run();
  const Tensor image = floats({1, 3, 6, 7}, 5), first = floats({2 * block, 3, 3, 3}, 7), bias = floats({2 * block}, 3);
  conv()
      .attribute("plain_input", 1)
      .input(image)
      .constant(first)
      .input(bias)
      .expect(blocked(convolved(image, first, bias, nullptr, false)))
      .run();
  const Tensor taps = floats({2 * block, 1, 3, 3}, 7);
  conv()
      .attribute("group", 2 * block)
      .attribute("activation", "Relu")
      .input(blocked(x))
      .constant(taps)
      .input(bias)
      .expect(blocked(convolved(x, taps, bias, nullptr, true)))
      .run();
}

// The maxima of square windows, of images with channels first.
Tensor pooled(const Tensor& x, int64_t kernel, int64_t stride, int64_t pad, bool rounds_up = false) {
  const int64_t height = x.dim(2), width = x.dim(3);
  const auto outputs = [&](int64_t size) {
    return (size + 2 * pad - kernel + (rounds_up ? stride - 1 : 0)) / stride + 1;
  };
  Tensor y(ElementType::float32, Shape{x.dim(0), x.dim(1), outputs(height), outputs(width)});
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t c = i % y.dim(3), r = i / y.dim(3) % y.dim(2), plane = i / y.dim(3) / y.dim(2);
    float best = -std::numeric_limits<float>::infinity();
    for (int64_t k = 0; k < kernel * kernel; ++k) {
      const int64_t row = r * stride - pad + k / kernel, column = c * stride - pad + k % kernel;
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      best = std::max(best, x.data<float>()[static_cast<size_t>((plane * height + row) * width + column)]);
    }
    y.mutable_data<float>()[static_cast<size_t>(i)] = best;
  }
  return y;
}

TEST(Blocked, ConvMaxPool) {
  const auto conv = [](int64_t kernel, int64_t stride, int64_t pad, bool rounds_up = false) {
    OpTest test("BlockedConvMaxPool", 1, "tenon");
    test.attribute("block", block)
        .attribute("pads", {1, 1, 1, 1})
        .attribute("activation", "Relu")
        .tolerance(1e-5, 1e-4);
    using Sizes = std::vector<int64_t>;
    test.attribute("pool_kernel_shape", Sizes{kernel, kernel, 1}).attribute("pool_strides", Sizes{stride, stride, 1});
    test.attribute("pool_pads", Sizes{pad, pad, 0, pad, pad, 0}).attribute("pool_ceil_mode", rounds_up ? 1 : 0);
    return test;
  };
  const int64_t out = block + block / 2;
  const Tensor image = floats({2, 3, 9, 11}, 5), first = floats({out, 3, 3, 3}, 7), bias = floats({out}, 3);
  const Tensor convolved_image = convolved(image, first, bias, nullptr, true);
  for (auto [kernel, stride, pad] : {std::array{3, 2, 1}, {2, 2, 0}, {3, 3, 0}}) {
    conv(kernel, stride, pad)
        .attribute("plain_input", 1)
        .input(image)
        .constant(first)
        .constant(bias)
        .expect(blocked(pooled(convolved_image, kernel, stride, pad)))
        .run();
  }
  // By Winograd's algorithm, also where the last windows reach over the edge, or into other tiles.
  const Tensor x = floats({1, 2 * block, 9, 7}, 5), w = floats({out, 2 * block, 3, 3}, 7);
  const Tensor sum = convolved(x, w, bias, nullptr, true);
  for (int winograd : {0, 2, 4}) {
    for (bool rounds_up : {false, true}) {
      for (int64_t kernel : {2, 3}) {
        OpTest test = conv(kernel, 2, 0, rounds_up);
        test.attribute("winograd", winograd).input(blocked(x)).constant(w).input(bias);
        test.expect(blocked(pooled(sum, kernel, 2, 0, rounds_up))).run();
      }
    }
  }
  conv(2, 2, 0).input(blocked(x)).input(w).input(bias).expect(blocked(pooled(sum, 2, 2, 0))).run();
}

// Channels that do not fill blocks.
TEST(Blocked, ConvOfPartsOfBlocks) {
  const int64_t in = 2 * block + 3, out = block + block / 2;
  const Tensor x = floats({2, in, 4, 5}, 5), w = floats({out, in, 3, 3}, 7), b = floats({out}, 3);
  const Tensor residual = floats({2, out, 4, 5}, 11);
  const auto conv = [] {
    OpTest test("BlockedConv", 1, "tenon");
    test.attribute("block", block).attribute("pads", {1, 1, 1, 1}).tolerance(1e-5, 1e-4);
    return test;
  };
  const Tensor sum = blocked(convolved(x, w, b, &residual, true));
  for (int winograd : {0, 2, 4}) {
    conv()
        .attribute("winograd", winograd)
        .attribute("activation", "Relu")
        .input(blocked(x))
        .constant(w)
        .constant(b)
        .input(blocked(residual))
        .expect(sum)
        .run();
  }
  conv().input(blocked(x)).input(w).input(b).expect(blocked(convolved(x, w, b, nullptr, false))).run();
  const Tensor image = floats({1, 3, 6, 7}, 5), first = floats({out, 3, 3, 3}, 7);
  conv()
      .attribute("plain_input", 1)
      .input(image)
      .constant(first)
      .input(b)
      .expect(blocked(convolved(image, first, b, nullptr, false)))
      .run();
  const Tensor taps = floats({in, 1, 3, 3}, 7), bias = floats({in}, 3);
  conv()
      .attribute("group", in)
      .input(blocked(x))
      .constant(taps)
      .constant(bias)
      .expect(blocked(convolved(x, taps, bias, nullptr, false)))
      .run();
}

// Groups that fill blocks, some that do so together, some whose last blocks are not full, and some that make one.
TEST(Blocked, ConvOfGroups) {
  struct Case {
    int64_t groups, in, out;
  };
  for (auto [groups, in, out] :
       {Case{2, block, block}, Case{3, block, 2 * block}, Case{2, 2 * block, block}, Case{8, block / 2, block / 2},
        Case{4, block / 4, block / 2}, Case{3, block / 2, block / 2}, Case{2, block / 2, 2}, Case{6, 2, 4}}) {
    const Tensor x = floats({2, groups * in, 4, 5}, 5), w = floats({groups * out, in, 3, 3}, 7);
    const Tensor b = floats({groups * out}, 3), residual = floats({2, groups * out, 4, 5}, 11);
    for (bool is_constant : {true, false}) {
      OpTest conv("BlockedConv", 1, "tenon");
      conv.attribute("block", block).attribute("pads", {1, 1, 1, 1}).attribute("group", groups);
      conv.attribute("activation", "Relu").tolerance(1e-5, 1e-4).input(blocked(x));
      is_constant ? conv.constant(w) : conv.input(w);
      conv.input(b).input(blocked(residual)).expect(blocked(convolved(x, w, b, &residual, true))).run();
    }
  }
}

// A transposed convolution by a kernel as large as the stride: every pixel becomes a square.
TEST(Blocked, ConvTranspose) {
  for (int64_t in : {2 * block, block + 1}) {
    for (int64_t out : {block, block - 1}) {
      const Tensor x = floats({2, in, 3, 4}, 5), w = floats({in, out, 2, 2}, 7), b = floats({out}, 3);
      Tensor y(ElementType::float32, Shape{2, out, 6, 8});
      for (int64_t i = 0; i < y.elements(); ++i) {
        const int64_t c = i % 8, r = i / 8 % 6, m = i / 48 % out, n = i / 48 / out;
        double sum = b.data<float>()[static_cast<size_t>(m)];
        for (int64_t k = 0; k < in; ++k)
          sum += double{x.data<float>()[static_cast<size_t>(((n * in + k) * 3 + r / 2) * 4 + c / 2)]} *
                 w.data<float>()[static_cast<size_t>((k * out + m) * 4 + r % 2 * 2 + c % 2)];
        y.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>(sum);
      }
      for (bool is_constant : {true, false}) {
        OpTest test("BlockedConvTranspose", 1, "tenon");
        test.attribute("block", block).attribute("strides", {2, 2}).tolerance(1e-5, 1e-4).input(blocked(x));
        is_constant ? test.constant(w) : test.input(w);
        test.constant(b).expect(blocked(y)).run();
      }
    }
  }
}

// Other processors' blocks and groups run as smaller operators.
TEST(Blocked, ConvWithoutKernel) {
  // Two of three groups fill blocks together, and the third one does not.
  const int64_t channels = 3 * block / 2;
  const Tensor x = floats({1, 3 * channels, 2, 3}, 5);
  Tensor w(ElementType::float32, Shape{3 * channels, channels, 1, 1});
  std::ranges::fill(w.mutable_data<float>(), 0.0f);
  for (int64_t m = 0; m < 3 * channels; ++m)
    w.mutable_data<float>()[static_cast<size_t>(m * channels + m % channels)] = 1;
  OpTest("BlockedConv", 1, "tenon")
      .attribute("block", block)
      .attribute("group", 3)
      .input(blocked(x))
      .constant(w)
      .expect(blocked(x))
      .run();
  OpTest("BlockedConv", 1, "tenon")
      .attribute("block", 2)
      .input<float>({1, 1, 1, 2, 2}, {1, 2, 3, 4})
      .constant<float>({2, 2, 1, 1}, {1, 1, 0, 10})
      .expect<float>({1, 1, 1, 2, 2}, {3, 20, 7, 40})
      .run();
}

TEST(Blocked, Errors) {
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  EXPECT_EQ(first_line(OpTest("FromBlocked", 1, "tenon")
                           .attribute("block", 8)
                           .attribute("channels", 17)
                           .input(floats({1, 2, 2, 2, 8}, 1))
                           .error()),
            "shape-mismatch in tenon.FromBlocked 'tested' (node 0): the blocks of X and of the attribute channels "
            "must be equal: 2 against 3");
  EXPECT_EQ(first_line(OpTest("ToBlocked", 1, "tenon").attribute("block", 0).input(floats({1, 4, 2, 2}, 1)).error()),
            "invalid-attribute in tenon.ToBlocked 'tested' (node 0): block is 0; it must be 1 to 1024");
  EXPECT_EQ(
      first_line(OpTest("FromBlocked", 1, "tenon").attribute("block", 8).input(floats({1, 1, 2, 2, 4}, 1)).error()),
      "shape-mismatch in tenon.FromBlocked 'tested' (node 0): the last axis and block must be equal: 4 against 8");
  EXPECT_EQ(first_line(OpTest("BlockedConv", 1, "tenon")
                           .attribute("block", 2)
                           .input(floats({1, 2, 2, 2, 2}, 1))
                           .constant(floats({4, 2, 1, 1}, 1))
                           .error()),
            "shape-mismatch in tenon.BlockedConv 'tested' (node 0): the blocks of X and of the channels of W times "
            "group must be equal: 2 against 1");
}

}  // namespace
}  // namespace tenon
