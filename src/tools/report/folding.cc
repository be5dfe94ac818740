#include "tools/report/folding.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tenon::tools {
namespace {

using Kind = Folded::Kind;
using List = std::vector<Folded>;

constexpr size_t fewest_in_block = 3;  // leaves; fewer are shown where the block would be
constexpr size_t flat_up_to = 10;      // leaves of a block that has no blocks in it
constexpr size_t repeats_from = 14;    // children of a block in which repeats are looked for
constexpr size_t most_children = 28;   // of any block
constexpr size_t shortest_repeat = 4;  // children
constexpr size_t most_alike = 16;      // blocks that repeat and are not in one of their own
constexpr size_t usual_part = 14;      // children

size_t leaf_count(const Folded& folded) {
  if (folded.kind == Kind::node) return 1;
  size_t count = 0;
  for (const Folded& child : folded.children) count += leaf_count(child);
  return count;
}

template <typename Visit>
void each_leaf(const Folded& folded, const Visit& visit) {
  if (folded.item >= 0) visit(folded.item);
  for (const Folded& child : folded.children) each_leaf(child, visit);
}

void take_leaves(Folded& folded, List& leaves) {
  if (folded.kind == Kind::node || folded.kind == Kind::body) {
    leaves.push_back(std::move(folded));
    return;
  }
  for (Folded& child : folded.children) take_leaves(child, leaves);
}

// The first item of a block, which is where it stands among others.
int first_item(const Folded& folded) {
  int first = folded.item;
  for (const Folded& child : folded.children) {
    const int item = first_item(child);
    if (first < 0 || (item >= 0 && item < first)) first = item;
  }
  return first;
}

bool same_order(const Folded& a, const Folded& b) { return first_item(a) < first_item(b); }

// A scope with little in it is not worth a block.
void add_scope(Folded block, List& to) {
  const size_t leaves = leaf_count(block);
  if (leaves <= flat_up_to) {
    List flat;
    for (Folded& child : block.children) take_leaves(child, flat);
    std::ranges::sort(flat, same_order);
    block.children = std::move(flat);
  }
  if (leaves < fewest_in_block) {
    for (Folded& child : block.children) to.push_back(std::move(child));
  } else if (block.children.size() == 1) {
    Folded only = std::move(block.children[0]);
    if (only.kind == Kind::scope) only.label = block.label + "/" + only.label;
    to.push_back(std::move(only));
  } else {
    to.push_back(std::move(block));
  }
}

// `list` are nodes that have the first `depth` scopes in common.
List fold_scopes(List list, std::span<const FoldItem> items, size_t depth) {
  List result;
  std::map<std::string, List> by_scope;
  for (Folded& node : list) {
    const std::vector<std::string>& scopes = items[static_cast<size_t>(node.item)].scopes;
    if (scopes.size() > depth)
      by_scope[scopes[depth]].push_back(std::move(node));
    else
      result.push_back(std::move(node));
  }
  for (auto& [scope, inner] : by_scope)
    add_scope({Kind::scope, scope, -1, fold_scopes(std::move(inner), items, depth + 1)}, result);
  std::ranges::sort(result, same_order);
  return result;
}

// How the children of a block read each other.
class Wiring {
 public:
  Wiring(const List& list, std::span<const FoldItem> items) : reads_(list.size()) {
    std::map<int, size_t> child_of;
    for (size_t i = 0; i < list.size(); ++i) each_leaf(list[i], [&](int item) { child_of[item] = i; });
    for (size_t i = 0; i < list.size(); ++i) {
      each_leaf(list[i], [&](int item) {
        for (int input : items[static_cast<size_t>(item)].inputs) {
          auto found = child_of.find(input);
          if (found != child_of.end() && found->second < i) reads_[i].insert(found->second);
        }
      });
    }
  }

  // What makes two children alike: what they are, and how far before them what they read is.
  std::vector<std::string> signatures(const List& list, std::span<const FoldItem> items) const {
    constexpr size_t far = 40;
    std::vector<std::string> result;
    for (size_t i = 0; i < list.size(); ++i) {
      std::string text;
      each_leaf(list[i], [&](int item) { text += items[static_cast<size_t>(item)].op + ' '; });
      for (size_t from : reads_[i]) text += i - from < far ? fmt::format("{},", i - from) : "far,";
      result.push_back(std::move(text));
    }
    return result;
  }

  // By position: how many children before it are read from there on.
  std::vector<size_t> crossings() const {
    std::vector<size_t> last_reader(reads_.size());
    for (size_t i = 0; i < reads_.size(); ++i) {
      for (size_t from : reads_[i]) last_reader[from] = i;
    }
    std::vector<size_t> count(reads_.size() + 1);
    for (size_t i = 0; i < reads_.size(); ++i) {
      for (size_t cut = i + 1; cut <= last_reader[i]; ++cut) ++count[cut];
    }
    return count;
  }

 private:
  std::vector<std::set<size_t>> reads_;
};

struct Repeat {
  size_t start, period, count;
  size_t covered() const { return period * count; }
};

// The repeat that covers most of [begin, end), the shortest of such.
std::optional<Repeat> best_repeat(const std::vector<std::string>& signatures, const std::vector<size_t>& crossings,
                                  size_t begin, size_t end) {
  std::optional<Repeat> best;
  for (size_t period = shortest_repeat; period * 2 <= end - begin; ++period) {
    size_t alike = 0;
    for (size_t i = begin; i + period <= end; ++i) {
      const bool is_alike = i + period < end && signatures[i] == signatures[i + period];
      if (is_alike) {
        ++alike;
        continue;
      }
      const size_t length = alike + period;
      Repeat repeat{i - alike, period, length / period};
      alike = 0;
      if (repeat.count < 2 || (best && repeat.covered() <= best->covered())) continue;
      // Blocks start where least is handed over.
      const size_t first = repeat.start, slack = length - repeat.covered();
      for (size_t at = first; at <= first + slack; ++at) {
        if (crossings[at] < crossings[repeat.start]) repeat.start = at;
      }
      best = repeat;
    }
  }
  return best;
}

void move_range(List& from, size_t begin, size_t end, List& to) {
  for (size_t i = begin; i < end; ++i) to.push_back(std::move(from[i]));
}

// The scopes that the names of all its nodes have in common, "" if there are none.
std::string common_scope(const Folded& folded, std::span<const FoldItem> items) {
  std::optional<std::vector<std::string>> common;
  each_leaf(folded, [&](int item) {
    const std::vector<std::string>& scopes = items[static_cast<size_t>(item)].scopes;
    if (!common) common = scopes;
    common->resize(static_cast<size_t>(std::ranges::mismatch(*common, scopes).in1 - common->begin()));
  });
  return common && !common->empty() ? common->back() : "";
}

// Their scopes, if these tell them apart.
void set_labels(List& blocks, std::span<const FoldItem> items) {
  std::set<std::string> labels;
  for (Folded& block : blocks) {
    block.label = common_scope(block, items);
    labels.insert(block.label);
  }
  if (labels.size() == blocks.size() && !labels.contains("")) return;
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i].label = fmt::format("block {} of {}", i + 1, blocks.size());
}

void fold_repeats_in(List& list, const std::vector<std::string>& signatures, const std::vector<size_t>& crossings,
                     size_t begin, size_t end, List& result, std::span<const FoldItem> items) {
  const std::optional<Repeat> repeat =
      end - begin >= repeats_from ? best_repeat(signatures, crossings, begin, end) : std::nullopt;
  if (!repeat) {
    move_range(list, begin, end, result);
    return;
  }
  fold_repeats_in(list, signatures, crossings, begin, repeat->start, result, items);
  List blocks;
  for (size_t i = 0; i < repeat->count; ++i) {
    Folded block{Kind::repeat, "", -1, {}};
    const size_t start = repeat->start + i * repeat->period;
    move_range(list, start, start + repeat->period, block.children);
    blocks.push_back(std::move(block));
  }
  set_labels(blocks, items);
  if (blocks.size() > most_alike)
    result.push_back({Kind::part, fmt::format("{} alike blocks", blocks.size()), -1, std::move(blocks)});
  else
    move_range(blocks, 0, blocks.size(), result);
  fold_repeats_in(list, signatures, crossings, repeat->start + repeat->covered(), end, result, items);
}

List fold_repeats(List list, std::span<const FoldItem> items) {
  const Wiring wiring(list, items);
  List result;
  fold_repeats_in(list, wiring.signatures(list, items), wiring.crossings(), 0, list.size(), result, items);
  return result;
}

// "head …" of a block most of which is in the block "head"; "" if there is no such.
std::string main_label(const Folded& folded) {
  const size_t all = leaf_count(folded);
  for (const Folded& child : folded.children) {
    if (child.kind == Kind::scope && leaf_count(child) * 2 >= all) return child.label + " …";
  }
  return "";
}

// Cuts a long list where least is handed over.
List fold_parts(List list, std::span<const FoldItem> items) {
  const std::vector<size_t> crossings = Wiring(list, items).crossings();
  List result;
  size_t begin = 0;
  while (begin < list.size()) {
    size_t end = list.size();
    if (end - begin > usual_part * 3 / 2) {
      end = begin + usual_part;
      for (size_t at = begin + usual_part / 2; at <= begin + usual_part * 3 / 2; ++at) {
        if (crossings[at] < crossings[end]) end = at;
      }
    }
    if (end - begin == 1) {
      move_range(list, begin, end, result);
    } else {
      Folded part{Kind::part, "", -1, {}};
      move_range(list, begin, end, part.children);
      part.label = main_label(part);
      if (part.label.empty()) part.label = fmt::format("part {}", result.size() + 1);
      result.push_back(std::move(part));
    }
    begin = end;
  }
  return result;
}

void tidy(Folded& block, std::span<const FoldItem> items) {
  if (block.children.size() >= repeats_from) block.children = fold_repeats(std::move(block.children), items);
  while (block.children.size() > most_children) block.children = fold_parts(std::move(block.children), items);
  for (Folded& child : block.children) tidy(child, items);
}

// A scope around nearly everything says nothing: what is in it takes its place. Returns whether there was one.
bool take_main_scope(List& list) {
  size_t all = 0;
  for (const Folded& child : list) all += leaf_count(child);
  auto main = std::ranges::find_if(
      list, [&](const Folded& child) { return child.kind == Kind::scope && leaf_count(child) * 4 >= all * 3; });
  if (main == list.end()) return false;
  List inner = std::move(main->children);
  list.erase(main);
  move_range(inner, 0, inner.size(), list);
  std::ranges::sort(list, same_order);
  return true;
}

class Folder {
 public:
  explicit Folder(std::span<const FoldItem> items) : items_(items) {
    for (size_t i = 0; i < items.size(); ++i) bodies_[items[i].owner][items[i].body].push_back(static_cast<int>(i));
  }

  List of(const std::vector<int>& members) const {
    List nodes;
    for (int item : members) {
      Folded node{Kind::node, items_[static_cast<size_t>(item)].op, item, {}};
      auto bodies = bodies_.find(item);
      if (bodies != bodies_.end()) {
        node.kind = Kind::body;
        for (const auto& [name, inner] : bodies->second) node.children.push_back({Kind::scope, name, -1, of(inner)});
        if (node.children.size() == 1) node.children = List(std::move(node.children[0].children));
      }
      nodes.push_back(std::move(node));
    }
    return fold_scopes(std::move(nodes), items_, 0);
  }

  Folded all() const {
    Folded root{Kind::scope, "", -1, {}};
    auto found = bodies_.find(-1);
    if (found != bodies_.end()) root.children = of(found->second.begin()->second);
    while (take_main_scope(root.children)) {
    }
    tidy(root, items_);
    return root;
  }

 private:
  std::span<const FoldItem> items_;
  std::map<int, std::map<std::string, std::vector<int>>> bodies_;
};

}  // namespace

std::vector<std::string> scopes_of(const std::string& name) {
  std::vector<std::string> scopes;
  size_t at = 0;
  for (size_t end = name.find('/'); end != std::string::npos; end = name.find('/', at)) {
    if (end > at) scopes.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  constexpr size_t deepest = 40;
  if (scopes.size() > deepest) scopes.resize(deepest);
  return scopes;
}

Folded fold(std::span<const FoldItem> items) { return Folder(items).all(); }

}  // namespace tenon::tools
