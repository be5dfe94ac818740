#include "ops/cpu_support/post_transform.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/math/math.h"

namespace tenon::ops {
namespace {

template <typename T>
T logistic_of(T x) {
  const T positive = 1 / (1 + std::exp(-std::abs(x)));
  return x < 0 ? 1 - positive : positive;
}

// The quantile of the normal distribution, by Winitzki's approximation of the inverse error function.
template <typename T>
T probit_of(T p) {
  constexpr T a = T(0.147);
  const T x = 2 * p - 1, log = std::log((1 - x) * (1 + x)), half = 2 / (std::numbers::pi_v<T> * a) + log / 2;
  return std::copysign(std::numbers::sqrt2_v<T> * std::sqrt(std::sqrt(half * half - log / a) - half), x);
}

// SOFTMAX_ZERO leaves scores of zero at zero.
template <typename T>
void softmax(std::span<T> scores, bool keeps_zeros) {
  const T most = *std::ranges::max_element(scores);
  T sum = 0;
  for (T& score : scores) {
    const bool is_zero = std::abs(score) <= T(1e-7);
    score = keeps_zeros && is_zero ? score * std::exp(-most) : std::exp(score - most);
    sum += score;
  }
  for (T& score : scores) score = sum == 0 ? T(0.5) : score / sum;
}

template <typename T>
void transform_all(PostTransform transform, std::span<T> scores) {
  switch (transform) {
    case PostTransform::none:
      return;
    case PostTransform::softmax:
    case PostTransform::softmax_zero:
      if (!scores.empty()) softmax(scores, transform == PostTransform::softmax_zero);
      return;
    case PostTransform::logistic:
      for (T& score : scores) score = logistic_of(score);
      return;
    case PostTransform::probit:
      for (T& score : scores) score = probit_of(score);
      return;
  }
}

}  // namespace

PostTransform post_transform_of(const ir::Node& node) {
  const std::string name = node.string_attribute("post_transform", "NONE");
  if (name == "SOFTMAX") return PostTransform::softmax;
  if (name == "LOGISTIC") return PostTransform::logistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::softmax_zero;
  return name == "PROBIT" ? PostTransform::probit : PostTransform::none;
}

void post_transform(PostTransform transform, std::span<float> scores) { transform_all(transform, scores); }
void post_transform(PostTransform transform, std::span<double> scores) { transform_all(transform, scores); }

void post_transform_rows(PostTransform transform, float* scores, int64_t rows, int64_t columns) {
  if (transform == PostTransform::none || rows * columns == 0) return;
  if (transform != PostTransform::softmax) {
    for (int64_t row = 0; row < rows; ++row)
      post_transform(transform, std::span(scores + row * columns, static_cast<size_t>(columns)));
    return;
  }
  // The exponentials of all rows at once.
  for (int64_t row = 0; row < rows; ++row) {
    float *own = scores + row * columns, most = own[0];
    for (int64_t i = 1; i < columns; ++i) most = most < own[i] ? own[i] : most;
    for (int64_t i = 0; i < columns; ++i) own[i] -= most;
  }
  kernels::f32_exp(scores, scores, rows * columns);
  for (int64_t row = 0; row < rows; ++row) {
    float *own = scores + row * columns, sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += own[i];
    for (int64_t i = 0; i < columns; ++i) own[i] /= sum;
  }
}

float post_transform_one(PostTransform transform, float score) {
  return transform == PostTransform::probit ? probit_of(score) : score;
}
double post_transform_one(PostTransform transform, double score) {
  return transform == PostTransform::probit ? probit_of(score) : score;
}

float logistic(float x) { return logistic_of(x); }
double logistic(double x) { return logistic_of(x); }

}  // namespace tenon::ops
