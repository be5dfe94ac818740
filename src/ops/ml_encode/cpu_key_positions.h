#pragma once

#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "tenon/tensor.h"

namespace tenon::ops {

// Where each of a list of keys is. A NaN is the key NaN; of equal keys the last counts.
template <typename Key>
class KeyPositions {
 public:
  KeyPositions() = default;
  explicit KeyPositions(std::span<const Key> keys) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (is_nan(keys[i])) {
        nan_ = static_cast<int64_t>(i);
      } else {
        positions_[keys[i]] = static_cast<int64_t>(i);
      }
    }
  }

  // -1 when it is not among the keys.
  int64_t find(const Key& key) const {
    if (is_nan(key)) return nan_;
    auto found = positions_.find(key);
    return found == positions_.end() ? -1 : found->second;
  }

 private:
  static bool is_nan(const Key& key) {
    if constexpr (std::is_floating_point_v<Key>) return std::isnan(key);
    return false;
  }

  std::unordered_map<Key, int64_t> positions_;
  int64_t nan_ = -1;
};

}  // namespace tenon::ops
