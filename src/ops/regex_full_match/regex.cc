#include "ops/regex_full_match/regex.h"

#include <algorithm>

#include "base/fail.h"
#include "ops/text/unicode.h"

namespace tenon::ops {
namespace {

// Of nodes, counted once for each copy in the program.
constexpr int64_t most_compiled_nodes = 200'000;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

uint8_t places_at(std::string_view text, size_t at) {
  const bool first = at == 0, last = at == text.size();
  const bool boundary = (!first && is_word(text[at - 1])) != (!last && is_word(text[at]));
  int places = boundary ? place::word_boundary : place::no_word_boundary;
  if (first) places |= place::text_begin;
  if (last) places |= place::text_end;
  if (first || text[at - 1] == '\n') places |= place::line_begin;
  if (last || text[at] == '\n') places |= place::line_end;
  return static_cast<uint8_t>(places);
}

}  // namespace

Regex::Regex(std::string_view pattern) {
  RegexTree tree = parse_regex(pattern);
  compile(tree, tree.root);
  emit({.kind = Kind::match});
  sets_ = std::move(tree.sets);
}

int Regex::emit(Instruction instruction) {
  program_.push_back(instruction);
  return here() - 1;
}

void Regex::set_target(int instruction, int target) {
  Instruction& changed = program_[static_cast<size_t>(instruction)];
  (changed.first < 0 ? changed.first : changed.second) = target;
}

void Regex::compile(const RegexTree& tree, int node) {
  if (++compiled_nodes_ > most_compiled_nodes) {
    fail(ErrorCode::invalid_attribute, "the pattern is too large: it has more than {} parts, repeated ones counted",
         most_compiled_nodes);
  }
  const RegexTree::Node& n = tree.nodes[static_cast<size_t>(node)];
  switch (n.kind) {
    case RegexTree::Kind::empty:
      return;
    case RegexTree::Kind::set:
      emit({.kind = Kind::set, .set = n.set});
      return;
    case RegexTree::Kind::place:
      has_places_ = true;
      emit({.kind = Kind::place, .where = n.where});
      return;
    case RegexTree::Kind::concatenation:
      for (int child : n.children) compile(tree, child);
      return;
    case RegexTree::Kind::alternation:
      return compile_alternation(tree, n);
    case RegexTree::Kind::repetition:
      return compile_repetition(tree, n);
  }
}

void Regex::compile_alternation(const RegexTree& tree, const RegexTree::Node& node) {
  std::vector<int> jumps;
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (i + 1 == node.children.size()) {
      compile(tree, node.children[i]);
      break;
    }
    int split = emit({.kind = Kind::split, .first = here() + 1});
    compile(tree, node.children[i]);
    jumps.push_back(emit({.kind = Kind::jump}));
    set_target(split, here());
  }
  for (int jump : jumps) set_target(jump, here());
}

void Regex::compile_repetition(const RegexTree& tree, const RegexTree::Node& node) {
  for (int i = 0; i < node.least; ++i) compile(tree, node.children[0]);
  if (node.most == RegexTree::without_end) {
    int split = emit({.kind = Kind::split, .first = here() + 1});
    compile(tree, node.children[0]);
    emit({.kind = Kind::jump, .first = split});
    set_target(split, here());
    return;
  }
  std::vector<int> splits;
  for (int i = node.least; i < node.most; ++i) {
    splits.push_back(emit({.kind = Kind::split, .first = here() + 1}));
    compile(tree, node.children[0]);
  }
  for (int split : splits) set_target(split, here());
}

void Regex::Matcher::enter(int state, uint8_t places, std::vector<int>& states) {
  pending_.push_back(state);
  while (!pending_.empty()) {
    const int at = pending_.back();
    pending_.pop_back();
    if (seen_[static_cast<size_t>(at)] == step_) continue;
    seen_[static_cast<size_t>(at)] = step_;
    const Instruction& instruction = regex_.program_[static_cast<size_t>(at)];
    switch (instruction.kind) {
      case Kind::set:
        states.push_back(at);
        break;
      case Kind::place:
        if (instruction.where & places) pending_.push_back(at + 1);
        break;
      case Kind::split:
        pending_.push_back(instruction.second);
        [[fallthrough]];
      case Kind::jump:
        pending_.push_back(instruction.first);
        break;
      case Kind::match:
        break;
    }
  }
}

int32_t Regex::Matcher::row_of_next(bool matches) {
  if (next_.empty() && !matches) return dead;
  std::ranges::sort(next_);
  std::vector<int> key = next_;
  key.push_back(matches ? 1 : 0);
  if (auto known = numbers_.find(key); known != numbers_.end()) return known->second;
  constexpr size_t most_rows = 256;
  if (rows_.size() == most_rows) return too_many;
  const auto number = static_cast<int32_t>(rows_.size());
  rows_.push_back({next_, matches, {}});
  rows_.back().next.fill(unknown);
  numbers_.emplace(std::move(key), number);
  return number;
}

int32_t Regex::Matcher::find_transition(int32_t row, unsigned char byte) {
  ++step_;
  next_.clear();
  for (int state : rows_[static_cast<size_t>(row)].states) {
    const int set = regex_.program_[static_cast<size_t>(state)].set;
    if (regex_.sets_[static_cast<size_t>(set)].contains(byte)) enter(state + 1, 0, next_);
  }
  const int32_t next = row_of_next(seen_.back() == step_);
  if (next != too_many) rows_[static_cast<size_t>(row)].next[byte] = next;
  return next;
}

std::optional<bool> Regex::Matcher::match_by_table(std::string_view text) {
  if (regex_.has_places_) return std::nullopt;
  if (rows_.empty()) {
    ++step_;
    next_.clear();
    enter(0, 0, next_);
    if (row_of_next(seen_.back() == step_) == dead) return false;
  }
  int32_t row = 0;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 128) return std::nullopt;
    int32_t next = rows_[static_cast<size_t>(row)].next[byte];
    if (next == unknown) next = find_transition(row, byte);
    if (next == too_many) return std::nullopt;
    if (next == dead) return false;
    row = next;
  }
  return rows_[static_cast<size_t>(row)].matches;
}

bool Regex::Matcher::full_match(std::string_view text) {
  if (const auto result = match_by_table(text)) return *result;
  ++step_;
  now_.clear();
  enter(0, places_at(text, 0), now_);
  for (size_t at = 0; at < text.size();) {
    auto code_point = next_code_point(text, at);
    if (!code_point || now_.empty()) return false;
    ++step_;
    next_.clear();
    const uint8_t places = places_at(text, at);
    for (int state : now_) {
      const Instruction& instruction = regex_.program_[static_cast<size_t>(state)];
      if (regex_.sets_[static_cast<size_t>(instruction.set)].contains(*code_point)) enter(state + 1, places, next_);
    }
    std::swap(now_, next_);
  }
  return seen_.back() == step_;
}

}  // namespace tenon::ops
