#pragma once

#include <string_view>
#include <vector>

#include "ops/regex_full_match/code_point_set.h"

namespace tenon::ops {

// Places in a text, one bit each.
namespace place {
inline constexpr uint8_t text_begin = 1, text_end = 2, line_begin = 4, line_end = 8, word_boundary = 16,
                         no_word_boundary = 32;
}

// A regular expression as a tree. Nodes refer to each other by their positions.
struct RegexTree {
  enum class Kind : uint8_t { empty, set, place, concatenation, alternation, repetition };
  static constexpr int without_end = -1;

  struct Node {
    Kind kind = Kind::empty;
    uint8_t where = 0;                  // of a place
    int set = -1;                       // position in `sets`
    int least = 0, most = without_end;  // of a repetition
    int copies = 1;                     // how many times the compiled program may hold an inner node
    std::vector<int> children = {};
  };

  std::vector<Node> nodes;
  std::vector<CodePointSet> sets;
  int root = -1;
};

// Reads a pattern in the syntax of RE2. Throws ErrorCode::invalid_attribute, with reason and position, when it is not
// one, and ErrorCode::unsupported for \p{…} and \C.
RegexTree parse_regex(std::string_view pattern);

}  // namespace tenon::ops
