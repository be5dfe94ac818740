#pragma once

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace tenon::ops {

// A set of code points, for character classes.
class CodePointSet {
 public:
  struct Range {
    int32_t first, last;
  };

  CodePointSet() = default;
  CodePointSet(std::initializer_list<Range> ranges) : ranges_(ranges) {}

  void add(int32_t first, int32_t last) { ranges_.push_back({first, last}); }
  void add(const CodePointSet& other) { ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end()); }
  // Adds what differs from a member only in case.
  void add_other_cases();
  void negate();
  // To be called after the last change and before contains().
  void finish();

  bool contains(int32_t code_point) const {
    return code_point < 128 ? ascii_[static_cast<size_t>(code_point)] : contains_beyond_ascii(code_point);
  }

 private:
  // Sorted, with nothing in two ranges.
  void merge();
  bool contains_beyond_ascii(int32_t code_point) const;

  std::vector<Range> ranges_;
  std::bitset<128> ascii_;
};

// The class [:name:], or \d, \s or \w by its letter; null when there is none.
const CodePointSet* find_posix_class(std::string_view name);
const CodePointSet* find_escaped_class(char lower_case_letter);

}  // namespace tenon::ops
