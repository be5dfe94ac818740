#include "ops/ml_svm/cpu_pairwise.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tenon::ops {
namespace {

constexpr int most_rounds = 100;
constexpr float precision = 0.005f;

// Minimises p^T Q p over probabilities p, one of them after the other.
class Coupling {
 public:
  Coupling(std::span<const float> pairs, std::span<float> p) : p_(p), q_(p.size() * p.size()), qp_(p.size()) {
    const size_t k = p.size();
    size_t at = 0;
    for (size_t i = 0; i < k; ++i) {
      for (size_t j = i + 1; j < k; ++j) {
        const float wins = pairs[at++], loses = 1 - wins;
        q(i, i) += loses * loses;
        q(j, j) += wins * wins;
        q(i, j) = q(j, i) = -wins * loses;
      }
    }
    std::ranges::fill(p_, 1 / static_cast<float>(k));
  }

  bool done() {
    value_ = 0;
    for (size_t i = 0; i < p_.size(); ++i) {
      qp_[i] = 0;
      for (size_t j = 0; j < p_.size(); ++j) qp_[i] += q(i, j) * p_[j];
      value_ += p_[i] * qp_[i];
    }
    return std::ranges::all_of(
        qp_, [&](float x) { return std::abs(x - value_) < precision / static_cast<float>(p_.size()); });
  }

  void improve(size_t i) {
    const float step = (value_ - qp_[i]) / q(i, i), scale = 1 + step;
    value_ = (value_ + step * (step * q(i, i) + 2 * qp_[i])) / scale / scale;
    p_[i] += step;
    for (size_t j = 0; j < p_.size(); ++j) {
      qp_[j] = (qp_[j] + step * q(i, j)) / scale;
      p_[j] /= scale;
    }
  }

 private:
  float& q(size_t i, size_t j) { return q_[i * p_.size() + j]; }

  std::span<float> p_;
  std::vector<float> q_, qp_;
  float value_ = 0;
};

}  // namespace

void couple_pairwise_probabilities(std::span<const float> pairs, std::span<float> probabilities) {
  Coupling coupling(pairs, probabilities);
  for (int round = 0; round < most_rounds && !coupling.done(); ++round) {
    for (size_t i = 0; i < probabilities.size(); ++i) coupling.improve(i);
  }
}

}  // namespace tenon::ops
