#include "kernels/pool/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenon::kernels {
namespace {

PoolShape shape(int64_t planes, const std::vector<int64_t>& input, const std::vector<int64_t>& kernel,
                const std::vector<int64_t>& stride, const std::vector<int64_t>& dilation,
                const std::vector<int64_t>& pad_begin, const std::vector<int64_t>& pad_end, bool ceil_mode = false) {
  PoolShape s;
  s.planes = planes;
  for (size_t i = 0; i < input.size(); ++i) {
    const size_t d = 3 - input.size() + i;
    s.input[d] = input[i], s.kernel[d] = kernel[i], s.stride[d] = stride[i], s.dilation[d] = dilation[i];
    s.pad_begin[d] = pad_begin[i], s.pad_end[d] = pad_end[i];
    const int64_t room = input[i] + pad_begin[i] + pad_end[i] - (kernel[i] - 1) * dilation[i] - 1;
    s.output[d] = (room + (ceil_mode ? stride[i] - 1 : 0)) / stride[i] + 1;
  }
  return s;
}

const std::vector<PoolShape>& shapes() {
  static const std::vector<PoolShape> table = {
      shape(3, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
      shape(2, {12, 37}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}),
      shape(2, {13, 40}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, true),
      shape(1, {13, 20}, {3, 5}, {3, 4}, {2, 1}, {1, 2}, {0, 1}),
      shape(5, {23}, {4}, {2}, {1}, {1}, {2}),
      shape(2, {5, 6, 7}, {2, 3, 3}, {1, 2, 1}, {1, 1, 2}, {0, 1, 1}, {1, 1, 0}),
      shape(4, {7, 7}, {7, 7}, {1, 1}, {1, 1}, {0, 0}, {0, 0}),
      shape(3, {11, 21}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}),
      shape(2, {7, 36}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}),
      shape(2, {7, 41}, {5, 5}, {1, 1}, {1, 2}, {2, 4}, {2, 4}),
      shape(2, {9, 70}, {2, 2}, {2, 2}, {1, 1}, {1, 0}, {0, 0}),
      shape(2, {9, 67}, {4, 2}, {3, 2}, {2, 1}, {3, 0}, {3, 0}),
      shape(2, {6, 7, 66}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 1, 0}, {0, 1, 0}),
      shape(9, {13, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
      shape(2, {3, 5000}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
      shape(1, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
      shape(3, {9, 11, 8}, {3, 3, 1}, {2, 2, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 0}),
      shape(2, {6, 5, 16}, {2, 3, 1}, {1, 2, 1}, {2, 1, 1}, {0, 1, 0}, {1, 0, 0}, true),
      shape(2, {5, 9, 16}, {4, 4, 1}, {3, 2, 1}, {1, 1, 1}, {3, 2, 0}, {3, 3, 0}),
      shape(3, {6, 7, 8}, {2, 2, 1}, {2, 2, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}),
      shape(1, {2, 1, 8}, {3, 5, 1}, {1, 1, 1}, {1, 1, 1}, {2, 4, 0}, {2, 4, 0}),
      shape(1, {3, 8, 16}, {1, 3, 1}, {2, 1, 1}, {1, 3, 1}, {0, 3, 0}, {0, 3, 0}),
  };
  return table;
}

// Calls visit(output index, input index or -1, inside the padded input) for every tap of every window.
template <class Visit>
void each_tap(const PoolShape& s, Visit visit) {
  int64_t out = 0;
  for (int64_t p = 0; p < s.planes; ++p)
    for (int64_t d = 0; d < s.output[0]; ++d)
      for (int64_t h = 0; h < s.output[1]; ++h)
        for (int64_t w = 0; w < s.output[2]; ++w, ++out)
          for (int64_t tap = 0; tap < s.kernel[0] * s.kernel[1] * s.kernel[2]; ++tap) {
            const int64_t at[3] = {d * s.stride[0] - s.pad_begin[0] + tap / s.kernel[2] / s.kernel[1] * s.dilation[0],
                                   h * s.stride[1] - s.pad_begin[1] + tap / s.kernel[2] % s.kernel[1] * s.dilation[1],
                                   w * s.stride[2] - s.pad_begin[2] + tap % s.kernel[2] * s.dilation[2]};
            bool inside = true, padded = true;
            for (int i = 0; i < 3; ++i) {
              inside &= at[i] >= 0 && at[i] < s.input[i];
              padded &= at[i] < s.input[i] + s.pad_end[i];
            }
            visit(static_cast<size_t>(out),
                  inside ? ((p * s.input[0] + at[0]) * s.input[1] + at[1]) * s.input[2] + at[2] : -1, padded);
          }
}

template <class T>
std::vector<T> values(int64_t count) {
  std::vector<T> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<T>(static_cast<int>(i * 7919 % 251) - (std::is_unsigned_v<T> ? 0 : 125));
  return x;
}

template <class T>
class MaxPool : public testing::Test {};
using Types = testing::Types<float, double, int8_t, uint8_t>;
TYPED_TEST_SUITE(MaxPool, Types);

TYPED_TEST(MaxPool, MatchesReference) {
  using T = TypeParam;
  ThreadPool pool(2);
  for (const PoolShape& s : shapes()) {
    const auto x = values<T>(s.planes * s.input_size());
    std::vector<T> y(static_cast<size_t>(s.planes * s.output_size())), with_indices(y.size());
    std::vector<int64_t> expected(y.size(), -1), indices(y.size()), columns(y.size());
    each_tap(s, [&](size_t o, int64_t i, bool) {
      if (i >= 0 && (expected[o] < 0 || x[static_cast<size_t>(i)] > x[static_cast<size_t>(expected[o])]))
        expected[o] = i;
    });
    max_pool(pool, s, x.data(), y.data());
    max_pool_with_indices(pool, s, x.data(), with_indices.data(), indices.data(), IndexOrder::row_major);
    EXPECT_EQ(indices, expected);
    EXPECT_EQ(y, with_indices);
    for (size_t o = 0; o < y.size(); ++o) ASSERT_EQ(y[o], x[static_cast<size_t>(expected[o])]);
    max_pool_with_indices(pool, s, x.data(), with_indices.data(), columns.data(), IndexOrder::column_major);
    for (size_t o = 0; o < y.size(); ++o) {
      const int64_t in = expected[o] % s.input_size(), w = in % s.input[2], h = in / s.input[2] % s.input[1],
                    d = in / s.input[2] / s.input[1];
      ASSERT_EQ(columns[o], expected[o] - in + (w * s.input[1] + h) * s.input[0] + d);
    }
  }
}

TEST(MaxPoolFloat, NaNWins) {
  ThreadPool pool(1);
  const float x[4] = {1, NAN, 3, 2};
  float y[3];
  max_pool(pool, shape(1, {4}, {2}, {1}, {1}, {0}, {0}), x, y);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 3);
}

TEST(MaxPoolFloat, NaNWinsWhereverItLies) {
  ThreadPool pool(2);
  for (const PoolShape& s : shapes()) {
    const auto numbers = values<float>(s.planes * s.input_size());
    for (size_t nan = 0; nan < numbers.size(); nan += 1 + numbers.size() / 7) {
      auto x = numbers;
      x[nan] = NAN;
      std::vector<float> y(static_cast<size_t>(s.planes * s.output_size()));
      std::vector<bool> covers(y.size());
      each_tap(s, [&](size_t o, int64_t i, bool) { covers[o] = covers[o] || i == static_cast<int64_t>(nan); });
      max_pool(pool, s, x.data(), y.data());
      for (size_t o = 0; o < y.size(); ++o)
        ASSERT_EQ(std::isnan(y[o]), covers[o])
            << "shape " << &s - shapes().data() << ", NaN at " << nan << ", output " << o;
    }
  }
}

TEST(AveragePool, MatchesReference) {
  ThreadPool pool(2);
  for (const PoolShape& s : shapes()) {
    for (bool count_padding : {false, true}) {
      const auto x = values<float>(s.planes * s.input_size());
      std::vector<float> y(static_cast<size_t>(s.planes * s.output_size()));
      std::vector<double> sum(y.size()), count(y.size());
      each_tap(s, [&](size_t o, int64_t i, bool padded) {
        if (i >= 0) sum[o] += x[static_cast<size_t>(i)];
        count[o] += i >= 0 || (count_padding && padded);
      });
      average_pool(pool, s, x.data(), y.data(), count_padding);
      for (size_t o = 0; o < y.size(); ++o) ASSERT_NEAR(y[o], sum[o] / count[o], 1e-4);
    }
  }
}

}  // namespace
}  // namespace tenon::kernels
