#pragma once

#include <span>

namespace tenon::ops {

// The probabilities of k classes from those of each pair: pairs[…] is that of class i against class j, for i < j in
// order. The second method of Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise
// coupling", with the limits that libsvm has.
void couple_pairwise_probabilities(std::span<const float> pairs, std::span<float> probabilities);

}  // namespace tenon::ops
