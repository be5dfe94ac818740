#include "ops/regex_full_match/code_point_set.h"

#include <algorithm>

#include "ops/text/unicode.h"

namespace tenon::ops {
namespace {

struct NamedSet {
  std::string_view name;
  CodePointSet set;
};

}  // namespace

void CodePointSet::merge() {
  std::ranges::sort(ranges_, {}, &Range::first);
  std::vector<Range> merged;
  for (const Range& range : ranges_) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  ranges_ = std::move(merged);
}

void CodePointSet::add_other_cases() {
  // From one case to another takes up to two steps: from the Kelvin sign to k to K.
  for (int step = 0; step < 2; ++step) {
    merge();
    std::vector<Range> others;
    for (const Range& range : ranges_) {
      for_each_other_case(range.first, range.last, [&](int32_t first, int32_t last) {
        others.push_back({first, last});
      });
    }
    ranges_.insert(ranges_.end(), others.begin(), others.end());
  }
}

void CodePointSet::negate() {
  merge();
  std::vector<Range> gaps;
  int32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) gaps.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= last_code_point) gaps.push_back({next, last_code_point});
  ranges_ = std::move(gaps);
}

void CodePointSet::finish() {
  merge();
  for (const Range& range : ranges_) {
    for (int32_t c = range.first; c <= std::min(range.last, 127); ++c) ascii_.set(static_cast<size_t>(c));
  }
}

bool CodePointSet::contains_beyond_ascii(int32_t code_point) const {
  auto at = std::ranges::lower_bound(ranges_, code_point, {}, &Range::last);
  return at != ranges_.end() && at->first <= code_point;
}

const CodePointSet* find_posix_class(std::string_view name) {
  static const NamedSet classes[] = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7F}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  auto found = std::ranges::find(classes, name, &NamedSet::name);
  return found == std::end(classes) ? nullptr : &found->set;
}

const CodePointSet* find_escaped_class(char lower_case_letter) {
  static const CodePointSet space{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
  switch (lower_case_letter) {
    case 'd':
      return find_posix_class("digit");
    case 's':
      return &space;
    case 'w':
      return find_posix_class("word");
    default:
      return nullptr;
  }
}

}  // namespace tenon::ops
