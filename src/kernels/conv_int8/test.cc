#include "kernels/conv_int8/conv_int8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::kernels {
namespace {

ConvShape shape(int64_t batch, int64_t in_channels, int64_t out_channels, int64_t groups,
                const std::vector<int64_t>& input, const std::vector<int64_t>& kernel, int64_t stride, int64_t dilation,
                int64_t pad) {
  ConvShape s;
  s.batch = batch, s.in_channels = in_channels, s.out_channels = out_channels, s.groups = groups;
  for (size_t i = 0; i < input.size(); ++i) {
    const size_t d = 3 - input.size() + i;
    s.input[d] = input[i], s.kernel[d] = kernel[i], s.stride[d] = stride, s.dilation[d] = dilation, s.pad[d] = pad;
    s.output[d] = (input[i] + 2 * pad - (kernel[i] - 1) * dilation - 1) / stride + 1;
  }
  return s;
}

const ConvShape shapes[] = {
    shape(1, 3, 5, 1, {9, 11}, {3, 3}, 1, 1, 1),      shape(2, 16, 9, 1, {8, 7}, {1, 1}, 1, 1, 0),
    shape(1, 8, 12, 2, {13, 10}, {3, 5}, 2, 1, 2),    shape(2, 10, 4, 2, {23}, {4}, 1, 3, 1),
    shape(1, 2, 3, 1, {4, 5, 6}, {2, 3, 2}, 2, 1, 1), shape(1, 33, 20, 1, {17, 20}, {3, 3}, 1, 1, 1),
};

template <class T>
std::vector<T> values(int64_t count, int seed) {
  std::vector<T> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<T>(i * 151 + i * i * 5 + static_cast<size_t>(seed));
  return result;
}

template <class X, class W>
void check(const ConvShape& s, const Int8Kernels& kernels) {
  ThreadPool pool(2);
  const int64_t channels = s.in_channels / s.groups, rows = s.out_channels / s.groups;
  const auto x = values<X>(s.batch * s.in_channels * s.input_size(), 1);
  const auto w = values<W>(s.out_channels * channels * s.kernel_size(), 2);
  const auto zeros_as_bytes = values<W>(s.out_channels, 3);
  const std::vector<int32_t> zeros(zeros_as_bytes.begin(), zeros_as_bytes.end());
  const int32_t zero = std::is_signed_v<X> ? -5 : 131;
  const PackedByteConvWeights packed(pool, s, w.data(), std::is_signed_v<W>, {zeros.data(), true}, kernels);
  std::vector<int32_t> y(static_cast<size_t>(s.batch * s.out_channels * s.output_size()));
  conv_int8(pool, s, x.data(), std::is_signed_v<X>, zero, packed, zeros.data(), y.data());
  size_t out = 0;
  for (int64_t plane = 0; plane < s.batch * s.out_channels; ++plane) {
    const int64_t oc = plane % s.out_channels;
    const int64_t first = (plane / s.out_channels * s.in_channels + oc / rows * channels) * s.input_size();
    for (int64_t o = 0; o < s.output_size(); ++o, ++out) {
      int32_t sum = zeros[static_cast<size_t>(oc)];
      for (int64_t tap = 0; tap < channels * s.kernel_size(); ++tap) {
        const int64_t c = tap / s.kernel_size(), t = tap % s.kernel_size();
        const int64_t at[3] = {
            o / s.output[2] / s.output[1] * s.stride[0] - s.pad[0] + t / s.kernel[2] / s.kernel[1] * s.dilation[0],
            o / s.output[2] % s.output[1] * s.stride[1] - s.pad[1] + t / s.kernel[2] % s.kernel[1] * s.dilation[1],
            o % s.output[2] * s.stride[2] - s.pad[2] + t % s.kernel[2] * s.dilation[2]};
        bool inside = true;
        for (int d = 0; d < 3; ++d) inside &= at[d] >= 0 && at[d] < s.input[d];
        if (!inside) continue;
        const int64_t in = first + c * s.input_size() + (at[0] * s.input[1] + at[1]) * s.input[2] + at[2];
        sum += (x[static_cast<size_t>(in)] - zero) *
               (w[static_cast<size_t>(oc * channels * s.kernel_size() + tap)] - zeros[static_cast<size_t>(oc)]);
      }
      ASSERT_EQ(y[out], sum) << out;
    }
  }
}

class ConvInt8 : public testing::TestWithParam<const Int8Kernels*> {};

TEST_P(ConvInt8, MatchesReference) {
  for (const ConvShape& s : shapes) {
    check<uint8_t, uint8_t>(s, *GetParam());
    check<uint8_t, int8_t>(s, *GetParam());
    check<int8_t, uint8_t>(s, *GetParam());
    check<int8_t, int8_t>(s, *GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ConvInt8, testing::ValuesIn(available_int8_kernels()),
                         [](const auto& kernels) { return std::string(kernels.param->name); });

}  // namespace
}  // namespace tenon::kernels
