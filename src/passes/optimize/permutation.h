#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace tenon::passes {

// Axis i of the result is axis p[i] of the input, as in Transpose.
using Permutation = std::vector<int64_t>;

// The permutation of a Transpose of `rank` axes; empty when it is not valid.
inline Permutation permutation_of(const ir::Node& transpose, int rank) {
  Permutation reversed;
  for (int axis = rank; axis-- > 0;) reversed.push_back(axis);
  Permutation result = transpose.ints_attribute("perm", reversed);
  for (int64_t& axis : result) axis = axis < 0 ? axis + rank : axis;
  return static_cast<int>(result.size()) == rank ? result : Permutation();
}

inline bool is_identity(const Permutation& p) {
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// What `first` and then `second` do.
inline Permutation combined(const Permutation& first, const Permutation& second) {
  Permutation result;
  for (int64_t axis : second) result.push_back(first[static_cast<size_t>(axis)]);
  return result;
}

// Where axis `axis` of the input comes to lie.
inline int64_t place_of(const Permutation& p, int64_t axis) { return std::ranges::find(p, axis) - p.begin(); }

}  // namespace tenon::passes
