#pragma once

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
    // Adds the states that are reached from `state` without reading on.
    void enter(int state, uint8_t places, std::vector<int>& states);

    const Regex& regex_;
    std::vector<uint64_t> seen_;  // the last step in which a state was entered
    uint64_t step_ = 0;
    std::vector<int> now_, next_, pending_;
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
  int64_t compiled_nodes_ = 0;
};

}  // namespace tenon::ops
