#include "ops/regex_full_match/regex_parser.h"

#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "ops/text/unicode.h"

namespace tenon::ops {
namespace {

// RE2 repeats as often and nests up to 1000 groups; here each group takes a part of the caller's stack.
constexpr int most_repetitions = 1000, most_nesting = 200;

using Kind = RegexTree::Kind;

bool is_octal(char c) { return c >= '0' && c <= '7'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
char lower(char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; }
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  return lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1;
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  RegexTree parse() {
    tree_.root = alternation();
    if (at_ < pattern_.size()) fail_here("there is a ) without a (");
    for (CodePointSet& set : tree_.sets) set.finish();
    return std::move(tree_);
  }

 private:
  struct Flags {
    bool ignores_case = false, has_lines = false, dot_takes_newline = false;
  };
  struct Count {
    int least, most;
  };

  [[noreturn]] void fail_here(std::string_view reason) const {
    fail(ErrorCode::invalid_attribute, "the pattern is not a regular expression: {} at byte {}", reason, at_);
  }
  bool at_end() const { return at_ == pattern_.size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
  bool starts_with(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  int32_t take_code_point() {
    if (at_end()) fail_here("it ends too early");
    auto code_point = next_code_point(pattern_, at_);
    if (!code_point) fail_here("the bytes are not UTF-8");
    return *code_point;
  }

  int add(RegexTree::Node node) {
    for (int child : node.children) {
      node.copies = std::max(node.copies, tree_.nodes[static_cast<size_t>(child)].copies);
    }
    tree_.nodes.push_back(std::move(node));
    return static_cast<int>(tree_.nodes.size()) - 1;
  }
  int add_set(CodePointSet set) {
    tree_.sets.push_back(std::move(set));
    return add({.kind = Kind::set, .set = static_cast<int>(tree_.sets.size()) - 1});
  }
  int add_place(uint8_t where) { return add({.kind = Kind::place, .where = where}); }
  int add_literal(int32_t code_point) {
    CodePointSet set{{code_point, code_point}};
    if (flags_.ignores_case) set.add_other_cases();
    return add_set(std::move(set));
  }
  int add_list(Kind kind, std::vector<int> children) {
    if (children.size() == 1) return children[0];
    if (children.empty()) kind = Kind::empty;
    return add({.kind = kind, .children = std::move(children)});
  }

  int alternation() {
    std::vector<int> branches{concatenation()};
    while (take("|")) branches.push_back(concatenation());
    return add_list(Kind::alternation, std::move(branches));
  }

  int concatenation() {
    std::vector<int> items;
    bool repeated = false;
    while (!at_end() && !starts_with("|") && !starts_with(")")) {
      if (std::optional<Count> count = repetition()) {
        if (items.empty()) fail_here("there is nothing to repeat before it ends");
        if (repeated) fail_here("a repetition is repeated");
        items.back() = repeat(items.back(), *count);
        repeated = true;
        continue;
      }
      repeated = false;
      if (take("\\Q")) {
        while (!at_end() && !take("\\E")) items.push_back(add_literal(take_code_point()));
      } else if (std::optional<int> item = atom()) {
        items.push_back(*item);
      }
    }
    return add_list(Kind::concatenation, std::move(items));
  }

  int repeat(int item, Count count) {
    RegexTree::Node node{.kind = Kind::repetition, .least = count.least, .most = count.most, .children = {item}};
    int inner = tree_.nodes[static_cast<size_t>(item)].copies, times = std::max({1, count.least, count.most});
    // Both are at most most_repetitions.
    if (inner * times > most_repetitions) fail_here("what is repeated is repeated more than 1000 times");
    node.copies = inner * times;
    tree_.nodes.push_back(std::move(node));
    return static_cast<int>(tree_.nodes.size()) - 1;
  }

  // *, +, ?, {n}, {n,}, {n,m}, each with a ? behind it that changes nothing for the match of a whole text.
  std::optional<Count> repetition() {
    std::optional<Count> count;
    if (take("*")) {
      count = Count{0, RegexTree::without_end};
    } else if (take("+")) {
      count = Count{1, RegexTree::without_end};
    } else if (take("?")) {
      count = Count{0, 1};
    } else {
      count = counted_repetition();
    }
    if (count) take("?");
    return count;
  }

  // Braces around anything else are just characters.
  std::optional<Count> counted_repetition() {
    const size_t start = at_;
    if (!take("{")) return std::nullopt;
    std::optional<int> least = number(), most = least;
    if (least && take(",")) most = peek() == '}' ? RegexTree::without_end : number();
    if (!least || !most || !take("}")) {
      at_ = start;
      return std::nullopt;
    }
    if (*least > most_repetitions || *most > most_repetitions) fail_here("more than 1000 repetitions are asked for");
    if (*most != RegexTree::without_end && *most < *least) fail_here("a repetition has more at least than at most");
    return Count{*least, *most};
  }

  // Values above the limit stop there.
  std::optional<int> number() {
    if (!is_digit(peek())) return std::nullopt;
    int result = 0;
    for (; is_digit(peek()); ++at_) result = std::min(result * 10 + (peek() - '0'), most_repetitions + 1);
    return result;
  }

  std::optional<int> atom() {
    switch (peek()) {
      case '(':
        return group();
      case '[':
        return add_set(bracket_class());
      case '\\':
        return escape();
      case '.': {
        ++at_;
        CodePointSet set;
        if (!flags_.dot_takes_newline) set.add('\n', '\n');
        set.negate();
        return add_set(std::move(set));
      }
      case '^':
        ++at_;
        return add_place(flags_.has_lines ? place::line_begin : place::text_begin);
      case '$':
        ++at_;
        return add_place(flags_.has_lines ? place::line_end : place::text_end);
      default:
        return add_literal(take_code_point());
    }
  }

  // Nothing when it only sets flags, which then hold until the group around it ends.
  std::optional<int> group() {
    ++at_;
    const Flags outer = flags_;
    if (take("?")) {
      if (starts_with("=") || starts_with("!") || starts_with("<=") || starts_with("<!")) {
        fail_here("looking ahead or behind is not supported");
      }
      if (take("P<") || take("<")) {
        group_name();
      } else if (flag_list()) {
        return std::nullopt;
      }
    }
    if (++nesting_ > most_nesting) fail_here("groups are nested too deeply");
    int result = alternation();
    if (!take(")")) fail_here("a ) is missing");
    --nesting_;
    flags_ = outer;
    return result;
  }

  void group_name() {
    const size_t start = at_;
    while (is_letter(peek()) || is_digit(peek()) || peek() == '_' || static_cast<uint8_t>(peek()) >= 0x80) ++at_;
    if (at_ == start || !take(">")) fail_here("the name of a group is broken");
  }

  // "i-s:" or "i-s)"; whether it was the latter.
  bool flag_list() {
    bool value = true, any = false;
    for (; !at_end(); ++at_) {
      switch (peek()) {
        case 'i':
          flags_.ignores_case = value;
          break;
        case 'm':
          flags_.has_lines = value;
          break;
        case 's':
          flags_.dot_takes_newline = value;
          break;
        case 'U':
          break;
        case '-':
          if (!value) fail_here("a second - is among the flags");
          value = any = false;
          continue;
        case ':':
        case ')':
          if (!value && !any) fail_here("flags are missing after -");
          return pattern_[at_++] == ')';
        default:
          fail_here("there is no such flag");
      }
      any = true;
    }
    fail_here("a ) is missing");
  }

  int escape() {
    const char letter = peek(1);
    if (auto set = escaped_class()) return add_set(std::move(*set));
    constexpr std::string_view letters = "AzbB";
    constexpr uint8_t places[] = {place::text_begin, place::text_end, place::word_boundary, place::no_word_boundary};
    if (size_t i = letters.find(letter); i != std::string_view::npos && at_ + 1 < pattern_.size()) {
      at_ += 2;
      return add_place(places[i]);
    }
    return add_literal(escaped_character());
  }

  // \d, \D, … if one is here.
  std::optional<CodePointSet> escaped_class() {
    if (peek() != '\\') return std::nullopt;
    const char letter = peek(1);
    if (letter == 'p' || letter == 'P' || letter == 'C') {
      fail(ErrorCode::unsupported, "the pattern has \\{} at byte {}, which Tenon does not support", letter, at_);
    }
    const CodePointSet* known = find_escaped_class(lower(letter));
    if (!known) return std::nullopt;
    at_ += 2;
    return with_flags(*known, is_upper(letter));
  }

  CodePointSet with_flags(CodePointSet set, bool negated) const {
    if (flags_.ignores_case) set.add_other_cases();
    if (negated) set.negate();
    return set;
  }

  int32_t escaped_character() {
    ++at_;
    if (at_end()) fail_here("nothing follows a backslash");
    const char c = peek();
    if (is_octal(c) && (c == '0' || is_octal(peek(1)))) {
      int32_t value = 0;
      for (int digits = 0; digits < 3 && is_octal(peek()); ++digits, ++at_) value = value * 8 + (peek() - '0');
      return value;
    }
    if (is_digit(c)) fail_here("a back-reference is not supported");
    constexpr std::string_view letters = "aftnrv", meanings = "\a\f\t\n\r\v";
    if (size_t i = letters.find(c); i != std::string_view::npos) return ++at_, meanings[i];
    if (c == 'x') return ++at_, hexadecimal();
    if (is_letter(c) || static_cast<uint8_t>(c) >= 0x80) fail_here("no character or class is written like this");
    return ++at_, c;
  }

  // Two digits, or any number of them in braces.
  int32_t hexadecimal() {
    const bool braces = take("{");
    int32_t value = 0;
    int digits = 0;
    for (; hex_value(peek()) >= 0 && (braces || digits < 2); ++digits, ++at_) {
      value = value * 16 + hex_value(peek());
      if (value > last_code_point) fail_here("there is no such character");
    }
    if (digits < (braces ? 1 : 2) || (braces && !take("}"))) fail_here("a hexadecimal number is broken");
    return value;
  }

  CodePointSet bracket_class() {
    ++at_;
    const bool negated = take("^");
    CodePointSet set;
    for (bool first = true; first || !starts_with("]"); first = false) {
      if (at_end()) fail_here("a ] is missing");
      if (add_posix_class(set)) continue;
      if (auto inner = escaped_class()) {
        set.add(*inner);
        continue;
      }
      const int32_t begin = class_character();
      int32_t end = begin;
      if (peek() == '-' && at_ + 1 < pattern_.size() && peek(1) != ']') {
        ++at_;
        end = class_character();
      }
      if (end < begin) fail_here("a range of characters ends before it begins");
      set.add(begin, end);
    }
    ++at_;
    return with_flags(std::move(set), negated);
  }

  int32_t class_character() { return peek() == '\\' ? escaped_character() : take_code_point(); }

  bool add_posix_class(CodePointSet& set) {
    if (!starts_with("[:")) return false;
    const size_t end = pattern_.find(":]", at_ + 2);
    if (end == std::string_view::npos) return false;
    std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
    const bool negated = name.starts_with('^');
    const CodePointSet* known = find_posix_class(name.substr(negated ? 1 : 0));
    if (!known) fail_here("there is no such class of characters");
    set.add(with_flags(*known, negated));
    at_ = end + 2;
    return true;
  }

  std::string_view pattern_;
  size_t at_ = 0;
  Flags flags_;
  int nesting_ = 0;
  RegexTree tree_;
};

}  // namespace

RegexTree parse_regex(std::string_view pattern) { return Parser(pattern).parse(); }

}  // namespace tenon::ops
