#pragma once

#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/regex_full_match/regex_parser.h"

namespace tenon::ops {

// A regular expression compiled to a program for a machine that is in many states at once. The time of a match is
// linear in the length of the text, whatever the pattern is.
class Regex {
 public:
  // Throws as parse_regex does, and ErrorCode::invalid_attribute when the program becomes too long.
  explicit Regex(std::string_view pattern);

  // The working memory of matches, for one thread.
  class Matcher {
   public:
    explicit Matcher(const Regex& regex) : regex_(regex), seen_(regex.program_.size()) {}
    // Whether the pattern matches the whole text. No pattern matches bytes that are not UTF-8.
    bool full_match(std::string_view text);

   private:
    // The same by a table, for a text of ASCII characters; nullopt where that does not work.
    std::optional<bool> match_by_table(std::string_view text);
    // The number of the row for the states `next_`, which match or do not. Texts that reach the row `dead` do not
    // match.
    int32_t row_of_next(bool matches);
    int32_t find_transition(int32_t row, unsigned char byte);

    // Adds the states that are reached from `state` without reading on.
    void enter(int state, uint8_t places, std::vector<int>& states);

    const Regex& regex_;
    std::vector<uint64_t> seen_;  // the last step in which a state was entered
    uint64_t step_ = 0;
    std::vector<int> now_, next_, pending_;

    // Sets of states that texts have led to, and which of them a byte leads to, found out when it is first asked for.
    static constexpr int32_t unknown = -1, dead = -2, too_many = -3;
    struct Row {
      std::vector<int> states;
      bool matches;
      std::array<int32_t, 128> next;
    };
    std::vector<Row> rows_;
    std::map<std::vector<int>, int32_t> numbers_;  // of rows by their states, and a last number that is 1 for a match
  };

 private:
  struct Instruction {
    enum class Kind : uint8_t { set, place, split, jump, match } kind;
    uint8_t where = 0;
    int set = -1;
    int first = -1, second = -1;  // where split and jump go; all others go on to the next instruction
  };
  using Kind = Instruction::Kind;

  int emit(Instruction instruction);
  void compile(const RegexTree& tree, int node);
  void compile_alternation(const RegexTree& tree, const RegexTree::Node& node);
  void compile_repetition(const RegexTree& tree, const RegexTree::Node& node);
  void set_target(int instruction, int target);
  int here() const { return static_cast<int>(program_.size()); }

  std::vector<Instruction> program_;
  std::vector<CodePointSet> sets_;
  bool has_places_ = false;
  int64_t compiled_nodes_ = 0;
};

}  // namespace tenon::ops
