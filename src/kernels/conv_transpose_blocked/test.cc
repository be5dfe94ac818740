#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/conv_blocked/reference.h"
#include "kernels/conv_transpose_blocked/conv_transpose_blocked.h"
#include "random_floats.h"

namespace tenon::kernels {
namespace {

// Channels are given in blocks.
struct Case {
  int64_t batch, in, out, height, width, kernel[2], stride[2], pad_begin[2], pad_end[2], output_padding[2];

  ConvShape shape() const {
    ConvShape s;
    s.batch = batch, s.in_channels = in * conv_block(), s.out_channels = out * conv_block();
    s.input[1] = height, s.input[2] = width;
    for (int d = 0; d < 2; ++d) {
      s.kernel[d + 1] = kernel[d], s.stride[d + 1] = stride[d], s.pad[d + 1] = pad_begin[d];
      s.output[d + 1] = (s.input[d + 1] - 1) * stride[d] + kernel[d] + output_padding[d] - pad_begin[d] - pad_end[d];
    }
    return s;
  }
};

const Case cases[] = {
    {1, 2, 1, 5, 7, {2, 2}, {2, 2}, {0, 0}, {0, 0}, {0, 0}},  {2, 1, 3, 4, 3, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {0, 0}},
    {1, 1, 1, 6, 5, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},  {1, 1, 2, 5, 4, {3, 5}, {1, 1}, {1, 2}, {1, 2}, {0, 0}},
    {1, 2, 1, 3, 3, {1, 2}, {3, 4}, {0, 0}, {0, 0}, {0, 0}},  {2, 1, 1, 4, 4, {2, 3}, {2, 3}, {2, 1}, {0, 2}, {0, 0}},
    {1, 1, 1, 1, 1, {5, 5}, {3, 2}, {2, 5}, {1, -1}, {0, 0}}, {1, 1, 1, 1, 9, {1, 1}, {8, 1}, {0, 0}, {0, 0}, {2, 0}},
};

class ConvTransposeBlocked : public testing::TestWithParam<Isa> {};

// Every input pixel adds to the outputs that it reaches.
std::vector<double> expected(const ConvShape& s, const std::vector<float>& x, const std::vector<float>& w,
                             const float* bias) {
  const int64_t block = conv_block();
  std::vector<double> y(static_cast<size_t>(s.batch * s.out_channels * s.output_size()));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      double* out = y.data() + n * s.out_channels * s.output_size();
      for (int64_t i = 0; i < s.output_size(); ++i)
        out[index(oc, i / s.output[2], i % s.output[2], s.output, block)] = bias ? bias[oc] : 0;
      for (int64_t ic = 0; ic < s.in_channels; ++ic)
        for (int64_t i = 0; i < s.input_size() * s.kernel_size(); ++i) {
          const int64_t pixel = i / s.kernel_size(), tap = i % s.kernel_size();
          const int64_t h = pixel / s.input[2], v = pixel % s.input[2];
          const int64_t oh = h * s.stride[1] - s.pad[1] + tap / s.kernel[2];
          const int64_t ow = v * s.stride[2] - s.pad[2] + tap % s.kernel[2];
          if (oh < 0 || oh >= s.output[1] || ow < 0 || ow >= s.output[2]) continue;
          const int64_t at = n * s.in_channels * s.input_size() + index(ic, h, v, s.input, block);
          out[index(oc, oh, ow, s.output, block)] +=
              double{x[static_cast<size_t>(at)]} *
              w[static_cast<size_t>((ic * s.out_channels + oc) * s.kernel_size() + tap)];
        }
    }
  return y;
}

TEST_P(ConvTransposeBlocked, MatchesReference) {
  const ScopedIsa scope(GetParam());
  ASSERT_EQ(conv_blocked_isa(), GetParam());
  for (const Case& c : cases) {
    const ConvShape s = c.shape();
    SCOPED_TRACE(testing::Message() << "case " << &c - cases);
    ASSERT_GT(s.output_size(), 0);
    const auto x = random_floats(s.batch * s.in_channels * s.input_size(), 1);
    const auto w = random_floats(s.in_channels * s.out_channels * s.kernel_size(), 2);
    const auto bias = random_floats(s.out_channels, 3);
    for (const float* b : {bias.data(), static_cast<const float*>(nullptr)}) {
      const std::vector<double> wanted = expected(s, x, w, b);
      std::vector<float> first;
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        std::vector<float> y(wanted.size());
        conv_transpose_blocked(pool, s, x.data(), BlockedConvTransposeWeights(pool, s, w.data()), y.data(), b);
        for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], wanted[i], 1e-3) << i;
        if (threads == 1) first = y;
        EXPECT_EQ(y, first) << "threads change the result";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ConvTransposeBlocked, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
