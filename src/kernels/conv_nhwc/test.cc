#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "kernels/conv_nhwc/conv_nhwc.h"

namespace tenon::kernels {
namespace {

struct Case {
  int64_t batch, in, out, groups, height, width, kernel, stride = 1, dilation = 1, pad = 0;

  ConvShape shape() const {
    ConvShape s;
    s.batch = batch, s.in_channels = in, s.out_channels = out, s.groups = groups;
    const int64_t sizes[] = {1, height, width};
    for (int d : {1, 2}) {
      s.input[d] = sizes[d], s.kernel[d] = kernel, s.stride[d] = stride, s.dilation[d] = dilation, s.pad[d] = pad;
      s.output[d] = (sizes[d] + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
    }
    return s;
  }
};

// Pixels that are copied (few channels), that fill registers and that do not, panels that are not full, rows of outputs
// that are longer and shorter than a tile, windows that lie outside the image, and every way in which depthwise outputs
// are computed.
constexpr Case cases[] = {
    {1, 3, 8, 1, 9, 11, 3, 2, 1, 1},
    {2, 3, 36, 1, 12, 10, 7, 2, 1, 3},
    {1, 3, 64, 1, 8, 9, 7, 2, 1, 3},
    {1, 1, 4, 1, 5, 5, 3},
    {1, 12, 20, 1, 7, 6, 3, 1, 2, 2},
    {2, 8, 12, 1, 5, 6, 1},
    {1, 16, 3, 1, 6, 5, 3, 1, 1, 1},
    {1, 20, 44, 1, 5, 9, 1},
    {2, 64, 72, 1, 7, 7, 1},
    {1, 36, 40, 1, 9, 9, 1, 2},
    {1, 32, 32, 1, 8, 9, 3, 1, 1, 1},
    {2, 52, 96, 1, 6, 7, 3, 2, 1, 1},
    {1, 24, 8, 1, 9, 5, 5, 1, 2, 4},
    {1, 144, 16, 1, 4, 4, 3, 1, 1, 1},
    {1, 64, 40, 1, 9, 9, 3, 1, 1, 1},
    {2, 64, 96, 1, 9, 8, 3, 2, 1, 1},
    {1, 128, 36, 1, 10, 7, 3, 1, 2, 2},
    {2, 64, 132, 1, 12, 11, 1, 2},
    {1, 128, 32, 1, 6, 6, 1, 1, 1, 1},
    {1, 64, 68, 1, 13, 17, 5, 3, 1, 2},
    {1, 64, 8, 1, 9, 9, 2, 4, 3, 1},
    {1, 192, 100, 1, 5, 13, 1},
    {1, 20, 100, 1, 4, 29, 3, 1, 1, 1},
    {1, 16, 68, 1, 3, 2, 3, 3, 2, 5},
    {1, 4, 4, 4, 5, 5, 3, 1, 1, 1},
    {2, 16, 16, 16, 7, 9, 3, 1, 1, 1},
    {1, 24, 24, 24, 8, 8, 3, 2, 1, 1},
    {1, 44, 44, 44, 9, 8, 5, 1, 1, 2},
    {1, 32, 32, 32, 9, 7, 5, 2, 1, 2},
    {1, 28, 28, 28, 9, 9, 7, 1, 1, 3},
    {1, 20, 20, 20, 9, 11, 3, 1, 2, 2},
    {1, 36, 36, 36, 1, 1, 5, 1, 1, 2},
    {1, 16, 16, 16, 4, 3, 2},
    {1, 144, 144, 144, 5, 7, 3, 1, 1, 1},
    {1, 98, 98, 98, 6, 5, 3, 2, 1, 1},
    {2, 64, 64, 64, 4, 6, 5, 1, 1, 2},
};

struct Codes {
  std::vector<uint8_t> x;
  std::vector<int8_t> w;
  std::vector<int32_t> bias;
  std::vector<float> scales;
};

// What sums are scaled to is as large as `range` says, unless there are many products.
Codes random_codes(const ConvShape& s, CodeRange range) {
  const bool large = range == CodeRange::any;
  const float factor = large ? 0.00003f : range == CodeRange::small ? 200.0f : 1.0f;
  std::mt19937 random(7);
  Codes c;
  c.x.resize(static_cast<size_t>(s.batch * s.input_size() * nhwc_pixel(s.in_channels)));
  for (uint8_t& x : c.x) x = static_cast<uint8_t>(random());
  c.w.resize(static_cast<size_t>(s.out_channels * (s.in_channels / s.groups) * s.kernel_size()));
  for (int8_t& w : c.w) w = static_cast<int8_t>(random());
  for (int64_t i = 0; i < s.out_channels; ++i) {
    c.bias.push_back(static_cast<int32_t>(random() % 20000) - 10000 + (large ? 1 << 30 : 0));
    c.scales.push_back(0.0003f * static_cast<float>(1 + random() % 7) * factor);
  }
  return c;
}

// Compares all outputs with sums that are computed one by one; adds the range that they had to `seen`.
void check(const Case& wanted, const NhwcConvKernels& kernels, bool is_signed, CodeRange range,
           std::set<CodeRange>& seen) {
  const ConvShape s = wanted.shape();
  Codes c = random_codes(s, range);
  const int32_t zero = is_signed ? -9 : 77, x_zero = kernels.unsigned_pixels ? 101 : -27;
  if (range == CodeRange::any) c.scales[0] = std::numeric_limits<float>::quiet_NaN();
  ThreadPool pool(2);
  const NhwcConvWeights packed(pool, s, c.w.data(), kernels);
  const NhwcRequantization requantization(kernels, packed.sums(), x_zero, c.bias, c.scales, zero, is_signed);
  NhwcTile tile{};
  requantization.put(tile, 0);
  seen.insert(tile.range);
  const int64_t pixel = nhwc_pixel(s.in_channels), y_pixel = nhwc_pixel(s.out_channels);
  std::vector<uint8_t> y(static_cast<size_t>(s.batch * s.output_size() * y_pixel));
  conv_nhwc(pool, s, c.x.data(), static_cast<uint8_t>(x_zero), packed, requantization, y.data());
  const int64_t channels = s.in_channels / s.groups, per_group = s.out_channels / s.groups;
  for (int64_t o = 0; o < s.batch * s.output_size(); ++o) {
    const int64_t row = o / s.output[2] % s.output[1], column = o % s.output[2], image = o / s.output_size();
    for (int64_t out = 0; out < s.out_channels; ++out) {
      auto sum = static_cast<uint32_t>(c.bias[static_cast<size_t>(out)]);
      for (int64_t t = 0; t < channels * s.kernel_size(); ++t) {
        const int64_t h = row * s.stride[1] - s.pad[1] + t % s.kernel_size() / s.kernel[2] * s.dilation[1];
        const int64_t w = column * s.stride[2] - s.pad[2] + t % s.kernel[2] * s.dilation[2];
        if (h < 0 || h >= s.input[1] || w < 0 || w >= s.input[2]) continue;
        const int64_t in = out / per_group * channels + t / s.kernel_size();
        const uint8_t code = c.x[static_cast<size_t>(((image * s.input[1] + h) * s.input[2] + w) * pixel + in)];
        const int32_t x = kernels.unsigned_pixels ? code : static_cast<int8_t>(code);
        sum += static_cast<uint32_t>((x - x_zero) * c.w[static_cast<size_t>(out * channels * s.kernel_size() + t)]);
      }
      const float scaled = static_cast<float>(static_cast<int32_t>(sum)) * c.scales[static_cast<size_t>(out)];
      const float low = static_cast<float>((is_signed ? -128 : 0) - zero), high = low + 255;
      const int32_t expected = static_cast<int32_t>(std::nearbyint(std::fmin(std::fmax(scaled, low), high))) + zero;
      const uint8_t actual = y[static_cast<size_t>(o * y_pixel + out)];
      ASSERT_EQ(is_signed ? static_cast<int8_t>(actual) : actual, expected)
          << kernels.name << ", channels " << s.in_channels << " to " << s.out_channels << ", output " << o << ", "
          << out;
    }
  }
}

// What many outputs at once are, in plain loops: with them, all that is around such kernels is tested everywhere.
void plain_codes(const CodeProduct& product) {
  for (int64_t i = 0; i < product.tile_count * code_tile_rows; ++i) {
    const CodeRows& rows = product.tiles[i / code_tile_rows];
    const uint8_t* row = rows.first + i % code_tile_rows * rows.stride;
    for (int64_t column = 0; column < product.stored; ++column) {
      const int64_t panel = column / code_tile_columns, own = column % code_tile_columns;
      const uint8_t* weights = product.weights + panel * product.steps * code_step_bytes * code_tile_columns + own * 4;
      auto sum = static_cast<uint32_t>(product.bias[column]);
      for (int64_t k = 0; k < product.steps * code_step_bytes; ++k)
        sum += static_cast<uint32_t>(row[rows.offsets[k / code_step_bytes] + k % code_step_bytes] *
                                     static_cast<int8_t>(weights[k / 4 * 4 * code_tile_columns + k % 4]));
      const int lowest = product.is_signed ? -128 : 0;
      const float scaled = static_cast<float>(static_cast<int32_t>(sum)) * product.scales[column];
      const float low = static_cast<float>(lowest - product.zero);
      const float limited = std::fmin(std::fmax(scaled, low), low + 255);
      rows.to[i % code_tile_rows][column] =
          static_cast<uint8_t>(static_cast<int>(std::nearbyint(limited)) + product.zero);
    }
  }
}

void plain_gather(const NhwcTile& tile, int count, int64_t row_bytes, uint8_t* to) {
  for (int i = 0; i < count; ++i) {
    for (int64_t tap = 0; tap < tile.taps; ++tap)
      std::copy_n(tile.pixels[tap * count + i], tile.bytes, to + i * row_bytes + tap * tile.bytes);
  }
}

TEST(ConvNhwcManyOutputs, MatchReference) {
  NhwcConvKernels kernels = nhwc_conv_kernels_portable;
  kernels.name = "many outputs";
  kernels.unsigned_pixels = true;
  kernels.rows = 0;  // none are too few
  kernels.columns = code_tile_columns;
  kernels.group = 4;
  kernels.step = code_step_bytes;
  kernels.to_codes = plain_codes;
  kernels.gather = plain_gather;
  std::set<CodeRange> seen;
  for (const Case& wanted : cases) {
    if (wanted.groups > 1) continue;  // which are computed otherwise
    for (bool is_signed : {false, true})
      ASSERT_NO_FATAL_FAILURE(check(wanted, kernels, is_signed, CodeRange::tiny, seen));
  }
}

class ConvNhwc : public testing::TestWithParam<const NhwcConvKernels*> {};

void check_all(const NhwcConvKernels& kernels, CodeRange range) {
  std::set<CodeRange> seen;
  for (const Case& wanted : cases) {
    for (bool is_signed : {false, true}) ASSERT_NO_FATAL_FAILURE(check(wanted, kernels, is_signed, range, seen));
  }
  EXPECT_TRUE(seen.contains(range));
}

TEST_P(ConvNhwc, MatchesReference) { check_all(*GetParam(), CodeRange::tiny); }
TEST_P(ConvNhwc, LargeScales) { check_all(*GetParam(), CodeRange::small); }
// Sums that floats do not hold exactly, and a scale that is no number.
TEST_P(ConvNhwc, LargeSums) { check_all(*GetParam(), CodeRange::any); }

TEST(ConvNhwcDispatch, FollowsThePixels) {
  const NhwcConvKernels &of_unsigned = nhwc_conv_kernels(true), &of_signed = nhwc_conv_kernels(false);
  EXPECT_EQ(of_unsigned.other_pixels != nullptr, of_unsigned.unsigned_pixels != of_signed.unsigned_pixels);
  EXPECT_GE(of_unsigned.unsigned_pixels, of_signed.unsigned_pixels);
  EXPECT_EQ(&of_signed, of_unsigned.other_pixels ? of_unsigned.other_pixels : &of_unsigned);
}

INSTANTIATE_TEST_SUITE_P(Kernels, ConvNhwc, testing::ValuesIn(available_nhwc_conv_kernels()),
                         [](const auto& kernels) { return std::string(kernels.param->name); });

}  // namespace
}  // namespace tenon::kernels
