// Softmax down columns; a file per instruction set instantiates it.
#pragma once

#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/math/functions.h"

namespace tenon::kernels {

template <class Arch>
struct AttentionColumns {
  using M = MathFunctions<Arch>;
  using S = typename M::S;
  using F = typename M::F;
  static constexpr int width = S::width;
  static constexpr int vectors_at_once = Arch::at_once.of_columns;

  template <int Vectors>
  static void find_highest_of(const float* scores, int64_t keys, int64_t step, float* highest) {
    F most[Vectors];
    for (int v = 0; v < Vectors; ++v) most[v] = S::load(highest + v * width);
    for (int64_t j = 0; j < keys; ++j, scores += step) {
      for (int v = 0; v < Vectors; ++v) most[v] = S::at_least(most[v], S::load(scores + v * width));
    }
    for (int v = 0; v < Vectors; ++v) S::store(highest + v * width, most[v]);
  }

  static void find_highest(const float* scores, int64_t keys, int64_t step, int64_t queries, float* highest) {
    int64_t i = 0;
    for (; i + vectors_at_once * width <= queries; i += vectors_at_once * width)
      find_highest_of<vectors_at_once>(scores + i, keys, step, highest + i);
    for (; i + width <= queries; i += width) find_highest_of<1>(scores + i, keys, step, highest + i);
  }

  // Where every score is -infinity, the difference to it would be NaN.
  static F base_of(F highest) { return highest == -std::numeric_limits<float>::infinity() ? F{} : highest; }

  template <int Vectors>
  static void to_weights_of(float* scores, int64_t keys, int64_t step, const float* highest, float* sums) {
    F base[Vectors], sum[Vectors];
    for (int v = 0; v < Vectors; ++v) {
      base[v] = base_of(S::load(highest + v * width));
      sum[v] = S::load(sums + v * width);
    }
    for (int64_t j = 0; j < keys; ++j, scores += step) {
      F weight[Vectors];
      for (int v = 0; v < Vectors; ++v) weight[v] = S::load(scores + v * width) - base[v];
      M::exp_terms(weight);
      for (int v = 0; v < Vectors; ++v) {
        S::store(scores + v * width, weight[v]);
        sum[v] += weight[v];
      }
    }
    for (int v = 0; v < Vectors; ++v) S::store(sums + v * width, sum[v]);
  }

  static void to_weights(float* scores, int64_t keys, int64_t step, int64_t queries, const float* highest,
                         float* sums) {
    int64_t i = 0;
    for (; i + vectors_at_once * width <= queries; i += vectors_at_once * width)
      to_weights_of<vectors_at_once>(scores + i, keys, step, highest + i, sums + i);
    for (; i + width <= queries; i += width) to_weights_of<1>(scores + i, keys, step, highest + i, sums + i);
  }

  static constexpr AttentionKernels table() {
    return {Arch::isa, width, vectors_at_once * width, find_highest, to_weights};
  }
};

}  // namespace tenon::kernels
