#include "kernels/conv/conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "random_floats.h"

namespace tenon::kernels {
namespace {

struct Case {
  int64_t batch, in, out, groups;
  std::vector<int64_t> input, kernel, stride, dilation, pad_begin, pad_end;

  ConvShape shape(bool transposed) const {
    ConvShape s;
    s.batch = batch, s.in_channels = in, s.out_channels = out, s.groups = groups;
    for (size_t i = 0; i < input.size(); ++i) {
      const size_t d = 3 - input.size() + i;
      s.input[d] = input[i], s.kernel[d] = kernel[i], s.stride[d] = stride[i], s.dilation[d] = dilation[i];
      s.pad[d] = pad_begin[i];
      const int64_t reach = (kernel[i] - 1) * dilation[i] + 1, pads = pad_begin[i] + pad_end[i];
      s.output[d] = transposed ? (input[i] - 1) * stride[i] + reach - pads : (input[i] + pads - reach) / stride[i] + 1;
    }
    return s;
  }
};

// Calls visit(output index, input index, weight index) for every product of the convolution that `s` describes as
// large[o * stride - pad + k * dilation] <-> small[o].
template <class Visit>
void each_product(const ConvShape& s, const int64_t (&small)[3], const int64_t (&large)[3], Visit visit) {
  for (int64_t d = 0; d < small[0]; ++d)
    for (int64_t h = 0; h < small[1]; ++h)
      for (int64_t w = 0; w < small[2]; ++w)
        for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
          for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
            for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
              const int64_t ld = d * s.stride[0] - s.pad[0] + kd * s.dilation[0];
              const int64_t lh = h * s.stride[1] - s.pad[1] + kh * s.dilation[1];
              const int64_t lw = w * s.stride[2] - s.pad[2] + kw * s.dilation[2];
              if (ld < 0 || ld >= large[0] || lh < 0 || lh >= large[1] || lw < 0 || lw >= large[2]) continue;
              visit((d * small[1] + h) * small[2] + w, (ld * large[1] + lh) * large[2] + lw,
                    (kd * s.kernel[1] + kh) * s.kernel[2] + kw);
            }
}

void square(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

std::vector<double> reference(const ConvShape& s, bool transposed, const std::vector<float>& x,
                              const std::vector<float>& weights, const ConvEpilogue& e) {
  const int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups, taps = s.kernel_size();
  std::vector<double> y(static_cast<size_t>(s.batch * s.out_channels * s.output_size()));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t oc = 0; oc < s.out_channels; ++oc) {
      double* to = y.data() + (b * s.out_channels + oc) * s.output_size();
      for (int64_t i = 0; i < s.output_size(); ++i) to[i] = e.bias ? e.bias[oc] : 0;
      for (int64_t c = 0; c < in; ++c) {
        const int64_t ic = oc / out * in + c;
        const float* from = x.data() + (b * s.in_channels + ic) * s.input_size();
        const float* w = weights.data() + (transposed ? ic * out + oc % out : oc * in + c) * taps;
        if (transposed) {
          each_product(s, s.input, s.output, [&](int64_t i, int64_t o, int64_t k) { to[o] += double{from[i]} * w[k]; });
        } else {
          each_product(s, s.output, s.input, [&](int64_t o, int64_t i, int64_t k) { to[o] += double{from[i]} * w[k]; });
        }
      }
      const int64_t plane = (b * s.out_channels + oc) * s.output_size();
      for (int64_t i = 0; i < s.output_size(); ++i) {
        if (e.residual) to[i] += e.residual[plane + i];
        to[i] = std::min<double>(std::max<double>(to[i], e.lo), e.hi);
        if (e.activation) to[i] *= to[i];
      }
    }
  return y;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> table = {
      {1, 3, 8, 1, {17, 19}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {2, 5, 13, 1, {14, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {1, 3, 16, 1, {30, 31}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}},
      {1, 4, 6, 1, {20, 13}, {3, 5}, {1, 1}, {2, 3}, {0, 2}, {3, 1}},
      {2, 24, 32, 1, {9, 11}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {1, 24, 70, 1, {9, 11}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {2, 8, 12, 4, {13, 12}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {2, 7, 7, 7, {23, 41}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {1, 6, 6, 6, {23, 42}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {1, 6, 12, 6, {15, 16}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}},
      {1, 3, 3, 3, {15, 40}, {5, 5}, {2, 3}, {1, 1}, {2, 1}, {2, 3}},
      {1, 5, 5, 5, {9, 9}, {2, 4}, {1, 2}, {2, 2}, {0, 1}, {1, 0}},
      {3, 4, 5, 1, {37}, {5}, {2}, {1}, {2}, {1}},
      {1, 4, 4, 4, {37}, {3}, {1}, {2}, {0}, {4}},
      {1, 3, 5, 1, {6, 7, 8}, {3, 2, 3}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1}, {0, 1, 1}},
      {1, 3, 3, 3, {6, 7, 8}, {3, 3, 3}, {1, 1, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {1, 2, 3, 1, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {1, 64, 64, 1, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {2, 32, 64, 4, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {1, 12, 44, 2, {28, 29}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}},
      {1, 24, 18, 3, {5, 45}, {3, 4}, {2, 3}, {1, 2}, {1, 0}, {1, 5}},
      {1, 2, 40, 1, {333}, {10}, {5}, {1}, {0}, {0}},
      {1, 48, 20, 1, {12, 15}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}},
      {1, 8, 3, 1, {4, 9000}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {1, 40, 9, 1, {90, 90}, {2, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 1}},
      // Columns that no window reads.
      {1, 3, 4, 1, {17, 50}, {2, 2}, {2, 3}, {2, 1}, {1, 1}, {1, 1}},
      {2, 6, 4, 2, {11, 12}, {1, 1}, {3, 2}, {1, 1}, {1, 1}, {1, 0}},
      {1, 40, 9, 1, {61}, {3}, {5}, {1}, {2}, {2}},
      // Groups that fill vectors of output channels, or all but a few lanes of the last one.
      {2, 32, 64, 2, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {1, 48, 96, 2, {50}, {31}, {1}, {1}, {15}, {16}},
      {1, 20, 70, 2, {5, 29}, {3, 3}, {1, 2}, {1, 1}, {0, 1}, {2, 1}},
      {1, 5, 33, 1, {4, 6, 5}, {2, 3, 3}, {1, 1, 2}, {1, 2, 1}, {1, 1, 0}, {1, 2, 1}},
      {1, 9, 50, 1, {3000}, {3}, {1}, {1}, {1}, {1}},
      {1, 70, 17, 1, {2, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      // Windows side by side; with fewer and with more outputs than they have when transposed.
      {1, 20, 33, 1, {5, 40}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {2, 6, 10, 2, {3, 7}, {3, 2}, {3, 2}, {1, 1}, {0, 0}, {0, 0}},
      {1, 5, 9, 1, {2, 4, 19}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {1, 1100, 4, 1, {3, 3}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}},
      {1, 5, 9, 1, {6, 11}, {2, 2}, {2, 2}, {1, 1}, {1, 1}, {2, 1}},
      {1, 4, 6, 1, {5, 6}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {-1, -1}},
  };
  return table;
}

class Conv : public testing::TestWithParam<Isa> {};

TEST_P(Conv, MatchesReference) {
  const ScopedIsa forced(GetParam());
  ASSERT_EQ(conv_isa(), GetParam());
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const Case& c : cases()) {
      const ConvShape s = c.shape(false);
      const auto x = random_floats(s.batch * s.in_channels * s.input_size(), 1);
      const auto weights = random_floats(s.out_channels * (s.in_channels / s.groups) * s.kernel_size(), 2);
      const auto bias = random_floats(s.out_channels, 3);
      const auto residual = random_floats(s.batch * s.out_channels * s.output_size(), 4);
      for (const ConvEpilogue& e : {ConvEpilogue{}, ConvEpilogue{bias.data(), 0, 1.5f},
                                    ConvEpilogue{bias.data(), -1, 1.5f, residual.data(), square}}) {
        const auto expected = reference(s, false, x, weights, e);
        for (bool direct : {false, true}) {
          const PackedConvWeights packed(pool, s, weights.data(), fresh_storage(), direct);
          std::vector<float> y(expected.size(), 77.0f);
          conv(pool, s, x.data(), packed, y.data(), e);
          for (size_t i = 0; i < y.size(); ++i) {
            ASSERT_NEAR(y[i], expected[i], 1e-4)
                << "case " << &c - cases().data() << (direct ? " direct" : "") << " at " << i;
          }
        }
      }
    }
  }
}

TEST_P(Conv, HasTheSameBitsForAnyNumberOfThreads) {
  const ScopedIsa forced(GetParam());
  ThreadPool one(1), many(5);
  for (const Case& c : cases()) {
    const ConvShape s = c.shape(false);
    const auto x = random_floats(s.batch * s.in_channels * s.input_size(), 1);
    const auto weights = random_floats(s.out_channels * (s.in_channels / s.groups) * s.kernel_size(), 2);
    const auto bias = random_floats(s.out_channels, 3);
    for (bool direct : {false, true}) {
      const PackedConvWeights packed(one, s, weights.data(), fresh_storage(), direct);
      std::vector<float> y(static_cast<size_t>(s.batch * s.out_channels * s.output_size())), z(y.size());
      conv(one, s, x.data(), packed, y.data(), {bias.data(), -0.5f, 1.5f});
      conv(many, s, x.data(), packed, z.data(), {bias.data(), -0.5f, 1.5f});
      EXPECT_EQ(y, z) << "case " << &c - cases().data() << (direct ? " direct" : "");
    }
  }
}

TEST_P(Conv, TransposedMatchesReference) {
  const ScopedIsa forced(GetParam());
  ThreadPool pool(2);
  for (const Case& c : cases()) {
    const ConvShape s = c.shape(true);
    if (s.output_size() <= 0) continue;
    const auto x = random_floats(s.batch * s.in_channels * s.input_size(), 1);
    const auto weights = random_floats(s.in_channels * (s.out_channels / s.groups) * s.kernel_size(), 2);
    const auto bias = random_floats(s.out_channels, 3);
    for (const ConvEpilogue& e : {ConvEpilogue{}, ConvEpilogue{bias.data(), 0, 1.5f}}) {
      const auto expected = reference(s, true, x, weights, e);
      const PackedConvTransposeWeights packed(pool, s, weights.data());
      for (bool is_packed : {false, true}) {
        std::vector<float> y(expected.size(), 77.0f);
        if (is_packed)
          conv_transpose(pool, s, x.data(), packed, y.data(), e);
        else
          conv_transpose(pool, s, x.data(), weights.data(), y.data(), e);
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_NEAR(y[i], expected[i], 1e-4)
              << "case " << &c - cases().data() << (is_packed ? " packed" : "") << " at " << i;
        }
      }
    }
  }
}

TEST_P(Conv, TransposedHasTheSameBitsForAnyNumberOfThreads) {
  const ScopedIsa forced(GetParam());
  ThreadPool one(1), many(5);
  for (const Case& c : cases()) {
    const ConvShape s = c.shape(true);
    if (s.output_size() <= 0) continue;
    const auto x = random_floats(s.batch * s.in_channels * s.input_size(), 1);
    const auto weights = random_floats(s.in_channels * (s.out_channels / s.groups) * s.kernel_size(), 2);
    const PackedConvTransposeWeights packed(one, s, weights.data());
    std::vector<float> y(static_cast<size_t>(s.batch * s.out_channels * s.output_size())), z(y.size());
    conv_transpose(one, s, x.data(), packed, y.data());
    conv_transpose(many, s, x.data(), packed, z.data());
    EXPECT_EQ(y, z) << "case " << &c - cases().data();
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Conv, testing::ValuesIn(available_isas(cpu_features())),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace tenon::kernels
