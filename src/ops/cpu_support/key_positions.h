// Looking up where keys are in a list, for operators that map them to something else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

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

// Integers are positions in a table where they lie so close together that it is not much larger than they are many.
template <typename Key>
requires std::is_integral_v<Key>
class KeyPositions<Key> {
 public:
  KeyPositions() = default;
  explicit KeyPositions(std::span<const Key> keys) {
    if (keys.empty()) return;
    const auto [least, most] = std::ranges::minmax(keys);
    const uint64_t range = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
    first_ = static_cast<uint64_t>(least);
    if (range / 8 <= keys.size()) {
      table_.assign(static_cast<size_t>(range) + 1, -1);
      for (size_t i = 0; i < keys.size(); ++i) table_[place_of(keys[i])] = static_cast<int64_t>(i);
    } else {
      for (size_t i = 0; i < keys.size(); ++i) others_[keys[i]] = static_cast<int64_t>(i);
    }
  }

  // -1 when it is not among the keys.
  int64_t find(Key key) const {
    if (!table_.empty()) return place_of(key) < table_.size() ? table_[place_of(key)] : -1;
    auto found = others_.find(key);
    return found == others_.end() ? -1 : found->second;
  }

 private:
  size_t place_of(Key key) const { return static_cast<size_t>(static_cast<uint64_t>(key) - first_); }

  uint64_t first_ = 0;
  std::vector<int64_t> table_;  // of positions, -1 where there is no key
  std::unordered_map<Key, int64_t> others_;
};

// Words are looked up in a table of places: the first that is free or has the word ends a search.
template <>
class KeyPositions<std::string> {
 public:
  KeyPositions() = default;
  explicit KeyPositions(std::span<const std::string> keys) : keys_(keys.begin(), keys.end()) {
    size_t size = 4;
    while (size < 2 * keys.size()) size *= 2;
    places_.assign(size, -1);
    for (size_t i = 0; i < keys_.size(); ++i) places_[place_of(keys_[i])] = static_cast<int64_t>(i);
  }

  // -1 when it is not among the keys.
  int64_t find(const std::string& key) const { return keys_.empty() ? -1 : places_[place_of(key)]; }

 private:
  size_t place_of(const std::string& key) const {
    const size_t mask = places_.size() - 1;
    for (size_t at = hash_of(key) & mask;; at = (at + 1) & mask) {
      if (places_[at] < 0 || keys_[static_cast<size_t>(places_[at])] == key) return at;
    }
  }

  static size_t hash_of(std::string_view text) {
    constexpr uint64_t factor = 0x9e3779b97f4a7c15;
    uint64_t hash = text.size() * factor;
    for (; text.size() > 8; text.remove_prefix(8)) hash = mixed(hash ^ word(text.substr(0, 8)), factor);
    return static_cast<size_t>(mixed(mixed(hash ^ word(text), factor), factor));
  }
  static uint64_t word(std::string_view text) {
    const char *begin = text.data(), *end = begin + text.size();
    uint64_t whole = 0;
    uint32_t first = 0, last = 0;
    if (text.size() == 8) {
      std::memcpy(&whole, begin, 8);
    } else if (text.size() >= 4) {
      std::memcpy(&first, begin, 4);
      std::memcpy(&last, end - 4, 4);
      whole = uint64_t{last} << 32 | first;
    } else {
      for (const char* at = begin; at != end; ++at) whole = whole << 8 | static_cast<unsigned char>(*at);
    }
    return whole;
  }
  static uint64_t mixed(uint64_t value, uint64_t factor) {
    value = (value ^ (value >> 32)) * factor;
    return value ^ (value >> 32);
  }

  std::vector<std::string> keys_;
  std::vector<int64_t> places_;  // positions, -1 where the place is free
};

}  // namespace tenon::ops
