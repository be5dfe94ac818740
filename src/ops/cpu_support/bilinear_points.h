// Points between the pixels of an image, each a mix of the four around it, for any number of channels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/cpu_features.h"

namespace tenon::ops {

// A number as T computes with it, and back; integers are saturated.
template <typename T, typename E>
T wide_value(E element) {
  if constexpr (std::is_arithmetic_v<E>)
    return static_cast<T>(element);
  else
    return static_cast<T>(static_cast<float>(element));
}

template <typename E, typename T>
E narrow_value(T sum) {
  if constexpr (std::is_integral_v<E>) {
    constexpr T low = static_cast<T>(std::numeric_limits<E>::min()),
                high = static_cast<T>(std::numeric_limits<E>::max());
    return sum >= high ? std::numeric_limits<E>::max()
           : sum > low ? static_cast<E>(sum)
                       : std::numeric_limits<E>::min();
  } else if constexpr (std::is_arithmetic_v<E>) {
    return static_cast<E>(sum);
  } else {
    return E(static_cast<float>(sum));
  }
}

// The planes of some channels, `step` elements apart.
template <typename E>
struct Planes {
  E* first;
  int64_t step;

  E* operator[](int64_t channel) const { return first + channel * step; }
};

template <typename T>
class BilinearPoints {
 public:
  explicit BilinearPoints(int64_t width) : width_(width) {}

  int64_t width() const { return width_; }
  void reserve(int64_t points) {
    firsts_.reserve(static_cast<size_t>(points));
    weights_.reserve(static_cast<size_t>(points));
  }
  void clear() {
    firsts_.clear();
    weights_.clear();
    apart_.clear();
  }

  // `below` and `right` of the pixel at `first`, each in 0 … 1, with all of the four pixels there.
  void add(int64_t first, T below, T right, T factor = 1) {
    const T above = factor * (1 - below), left = 1 - right;
    below *= factor;
    firsts_.push_back(first);
    weights_.push_back({{above * left, above * right}, {below * left, below * right}});
  }

  // Any pixels, of which -1 is none. They need not lie side by side.
  void add_apart(const int64_t* pixels, const T* weights) {
    Apart point{std::ssize(firsts_), {}, {}};
    std::copy_n(pixels, 4, point.pixels);
    std::copy_n(weights, 4, point.weights);
    apart_.push_back(point);
    firsts_.push_back(0);
    weights_.push_back({});
  }

  // to[c][i] = point i of from[c]
  template <typename E>
  void mix(Planes<const E> from, Planes<E> to, int64_t channels) const {
    int64_t c = 0;
    // Points may lie anywhere in planes that the second cache does not hold.
    const bool fetches = from.step * int64_t{sizeof(E)} > cpu_features().l2_bytes / 2;
    const auto mix_two = fetches ? &BilinearPoints::mix_within<2, true, E> : &BilinearPoints::mix_within<2, false, E>,
               mix_one = fetches ? &BilinearPoints::mix_within<1, true, E> : &BilinearPoints::mix_within<1, false, E>;
    const bool any_within = apart_.size() < firsts_.size();
    for (; any_within && c + 2 <= channels; c += 2) (this->*mix_two)({from[c], from.step}, {to[c], to.step});
    if (any_within && c < channels) (this->*mix_one)({from[c], from.step}, {to[c], to.step});
    for (c = 0; c < channels && !apart_.empty(); ++c) mix_apart(from[c], to[c]);
  }

 private:
  using Pair [[gnu::vector_size(2 * sizeof(T))]] = T;
  struct Weights {
    T above[2], below[2];
  };
  struct Apart {
    int64_t at, pixels[4];
    T weights[4];
  };

  template <typename E>
  static Pair pair_at(const E* x) {
    if constexpr (std::is_same_v<E, T>) {
      Pair result;
      std::memcpy(&result, x, sizeof result);
      return result;
    } else {
      return Pair{wide_value<T>(x[0]), wide_value<T>(x[1])};
    }
  }

  // Two neighbours are one load. What is mixed of points that are apart is of no use, and overwritten by mix_apart.
  template <int channels, bool fetches, typename E>
  void mix_within(Planes<const E> from, Planes<E> to) const {
    constexpr int64_t ahead = 32;
    const int64_t count = std::ssize(firsts_), width = width_;
    const int64_t* firsts = firsts_.data();
    const Weights* weights = weights_.data();
    for (int64_t i = 0; i < count; ++i) {
      const Pair above = pair_at(weights[i].above), below = pair_at(weights[i].below);
#pragma GCC unroll 2
      for (int c = 0; c < channels; ++c) {
        if (fetches && i + ahead < count) {
          __builtin_prefetch(from[c] + firsts[i + ahead]);
          __builtin_prefetch(from[c] + firsts[i + ahead] + width);
        }
        const E* pixel = from[c] + firsts[i];
        const Pair sums = pair_at(pixel) * above + pair_at(pixel + width) * below;
        to[c][i] = narrow_value<E>(sums[0] + sums[1]);
      }
    }
  }

  template <typename E>
  void mix_apart(const E* from, E* to) const {
    for (const Apart& point : apart_) {
      T sum{};
      for (int k = 0; k < 4; ++k) {
        if (point.pixels[k] >= 0) sum += point.weights[k] * wide_value<T>(from[point.pixels[k]]);
      }
      to[point.at] = narrow_value<E>(sum);
    }
  }

  int64_t width_;
  std::vector<int64_t> firsts_;
  std::vector<Weights> weights_;
  std::vector<Apart> apart_;
};

}  // namespace tenon::ops
