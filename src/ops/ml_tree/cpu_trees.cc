#include "ops/ml_tree/cpu_trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_set>

#include "base/fail.h"
#include "tensor/element_value.h"

namespace tenon::ops {
namespace {

// Positions of nodes, among them leaves, are ints.
constexpr size_t most_nodes = size_t{1} << 29;

void require_same_length(std::string_view name, size_t length, std::string_view other, size_t other_length) {
  if (length != other_length) {
    fail(ErrorCode::invalid_attribute, "{} has {} entries, {} has {}", name, length, other, other_length);
  }
}

// A list as long as the one it goes with.
std::vector<int64_t> ints_of_length(const ir::Node& node, const std::string& name, std::string_view other,
                                    size_t length) {
  std::vector<int64_t> list = node.ints_attribute(name);
  require_same_length(name, list.size(), other, length);
  return list;
}

// An optional list of flags, all false when it is left out.
std::vector<int64_t> missing_tracks(const ir::Node& node, std::string_view other, size_t length) {
  constexpr const char* name = "nodes_missing_value_tracks_true";
  if (node.ints_attribute(name).empty()) return std::vector<int64_t>(length);
  return ints_of_length(node, name, other, length);
}

int position_in(std::string_view name, int64_t position, size_t length) {
  if (position < 0 || position >= static_cast<int64_t>(length)) {
    fail(ErrorCode::invalid_attribute, "{} holds {}, which is not one of the {} positions", name, position, length);
  }
  return static_cast<int>(position);
}

constexpr std::array<std::string_view, 6> mode_names{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                                     "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
constexpr std::string_view leaf_name = "LEAF";

}  // namespace

template <typename T>
std::vector<T> numbers_attribute(const ir::Node& node, std::string_view name, std::string_view tensor_name) {
  const Tensor* tensor = tensor_name.empty() ? nullptr : node.tensor_attribute(tensor_name);
  if (!tensor) {
    std::vector<float> numbers = node.floats_attribute(name);
    return {numbers.begin(), numbers.end()};
  }
  if (!is_floating(tensor->type())) {
    fail(ErrorCode::invalid_attribute, "{} has elements of type {}", tensor_name, name_of(tensor->type()));
  }
  std::vector<T> numbers(static_cast<size_t>(tensor->elements()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<T>(element_as_double(*tensor, static_cast<int64_t>(i)));
  }
  return numbers;
}
template std::vector<float> numbers_attribute(const ir::Node&, std::string_view, std::string_view);
template std::vector<double> numbers_attribute(const ir::Node&, std::string_view, std::string_view);

template <typename T>
void Trees<T>::set_feature(Node& node, int64_t feature) {
  if (feature < 0 || feature > static_cast<int64_t>(most_nodes)) {
    fail(ErrorCode::invalid_attribute, "nodes_featureids holds {}", feature);
  }
  node.feature = static_cast<int>(feature);
  last_feature_ = std::max(last_feature_, node.feature);
}

template <typename T>
Trees<T> Trees<T>::of_ensemble(const ir::Node& node, int64_t targets) {
  Trees trees;
  const std::vector<int64_t> features = node.ints_attribute("nodes_featureids");
  const size_t count = features.size();
  auto nodes_list = [&](const char* name) { return ints_of_length(node, name, "nodes_featureids", count); };
  const auto if_true = nodes_list("nodes_truenodeids"), if_false = nodes_list("nodes_falsenodeids");
  const auto true_is_leaf = nodes_list("nodes_trueleafs"), false_is_leaf = nodes_list("nodes_falseleafs");
  const auto missing = missing_tracks(node, "nodes_featureids", count);
  const auto splits = numbers_attribute<T>(node, "", "nodes_splits");
  require_same_length("nodes_splits", splits.size(), "nodes_featureids", count);
  const Tensor& modes = *node.tensor_attribute("nodes_modes");
  if (modes.type() != ElementType::uint8) {
    fail(ErrorCode::invalid_attribute, "nodes_modes has elements of type {}, not uint8", name_of(modes.type()));
  }
  require_same_length("nodes_modes", static_cast<size_t>(modes.elements()), "nodes_featureids", count);
  const auto weights = numbers_attribute<T>(node, "", "leaf_weights");
  const auto ids = ints_of_length(node, "leaf_targetids", "leaf_weights", weights.size());
  if (count > most_nodes || weights.size() > most_nodes) fail(ErrorCode::overflow, "there are more than 2^29 nodes");

  for (size_t i = 0; i < weights.size(); ++i) {
    trees.leaves_.push_back({i, 1});
    trees.weights_.push_back({position_in("leaf_targetids", ids[i], static_cast<size_t>(targets)), weights[i]});
  }
  auto next = [&](const char* name, int64_t position, bool is_leaf) {
    return is_leaf ? ~position_in(name, position, weights.size()) : position_in(name, position, count);
  };
  for (size_t i = 0; i < count; ++i) {
    Node& n = trees.nodes_.emplace_back();
    n.split = splits[i];
    n.next[true] = next("nodes_truenodeids", if_true[i], true_is_leaf[i] != 0);
    n.next[false] = next("nodes_falsenodeids", if_false[i], false_is_leaf[i] != 0);
    const int mode = position_in("nodes_modes", modes.data<uint8_t>()[i], mode_names.size() + 1);
    trees.tests_.push_back({static_cast<Mode>(mode), missing[i] != 0});
    trees.set_feature(n, features[i]);
  }
  for (int64_t root : node.ints_attribute("tree_roots")) {
    trees.roots_.push_back(position_in("tree_roots", root, count));
  }
  trees.read_members(node);
  trees.finish();
  return trees;
}

// The sets of all nodes that test for a member, one after the other, each ended by a NaN.
template <typename T>
void Trees<T>::read_members(const ir::Node& node) {
  const bool given = node.tensor_attribute("membership_values") != nullptr;
  const std::vector<T> values = given ? numbers_attribute<T>(node, "", "membership_values") : std::vector<T>{};
  auto at = values.begin();
  for (Test& test : tests_) {
    if (test.mode != Mode::member) continue;
    auto end = std::find_if(at, values.end(), [](T value) { return std::isnan(value); });
    if (at == values.end()) {
      fail(ErrorCode::invalid_attribute, "membership_values has {} sets, fewer than there are nodes that need one",
           members_.size());
    }
    test.members = static_cast<int>(members_.size());
    std::ranges::sort(members_.emplace_back(at, end));
    at = end == values.end() ? end : end + 1;
  }
}

template <typename T>
struct Trees<T>::NodeLists {
  std::vector<int64_t> trees, ids, features, if_true, if_false, missing;
  std::vector<T> splits;
  std::vector<std::string> modes;

  explicit NodeLists(const ir::Node& node) : trees(node.ints_attribute("nodes_treeids")) {
    auto list = [&](const char* name) { return ints_of_length(node, name, "nodes_treeids", trees.size()); };
    ids = list("nodes_nodeids");
    features = list("nodes_featureids");
    if_true = list("nodes_truenodeids");
    if_false = list("nodes_falsenodeids");
    missing = missing_tracks(node, "nodes_treeids", trees.size());
    splits = numbers_attribute<T>(node, "nodes_values", "nodes_values_as_tensor");
    modes = node.strings_attribute("nodes_modes");
    require_same_length("nodes_values", splits.size(), "nodes_treeids", trees.size());
    require_same_length("nodes_modes", modes.size(), "nodes_treeids", trees.size());
    if (trees.size() > most_nodes) fail(ErrorCode::overflow, "there are more than 2^29 nodes");
  }
  size_t size() const { return trees.size(); }
  bool is_leaf(size_t i) const { return modes[i] == leaf_name; }
};

// Where the node with a number in a tree is, as in Node::next.
template <typename T>
struct Trees<T>::Positions : std::map<std::pair<int64_t, int64_t>, int> {};

template <typename T>
Trees<T> Trees<T>::of_lists(const ir::Node& node, const std::string& weights, int64_t targets) {
  Trees trees;
  Positions positions;
  const NodeLists lists(node);
  trees.add_nodes(lists, positions);
  trees.link_nodes(lists, positions);
  trees.add_weights(node, weights, targets, positions);
  trees.finish();
  return trees;
}

template <typename T>
void Trees<T>::add_nodes(const NodeLists& lists, Positions& positions) {
  for (size_t i = 0; i < lists.size(); ++i) {
    const int position = lists.is_leaf(i) ? ~static_cast<int>(leaves_.size()) : static_cast<int>(nodes_.size());
    if (!positions.insert({{lists.trees[i], lists.ids[i]}, position}).second) {
      fail(ErrorCode::invalid_attribute, "tree {} has node {} twice", lists.trees[i], lists.ids[i]);
    }
    if (lists.is_leaf(i)) {
      leaves_.emplace_back();
      continue;
    }
    auto mode = std::ranges::find(mode_names, lists.modes[i]);
    if (mode == mode_names.end()) fail(ErrorCode::invalid_attribute, "nodes_modes holds '{}'", lists.modes[i]);
    Node& node = nodes_.emplace_back();
    node.split = lists.splits[i];
    tests_.push_back({static_cast<Mode>(mode - mode_names.begin()), lists.missing[i] != 0});
    set_feature(node, lists.features[i]);
  }
}

// The root of a tree is the first of its nodes that no other leads to; a leaf only if it has nothing else.
template <typename T>
void Trees<T>::link_nodes(const NodeLists& lists, const Positions& positions) {
  std::unordered_set<int> has_parent;
  for (size_t i = 0, inner = 0; i < lists.size(); ++i) {
    if (lists.is_leaf(i)) continue;
    auto next = [&](int64_t id) {
      auto found = positions.find({lists.trees[i], id});
      if (found == positions.end()) {
        fail(ErrorCode::invalid_attribute, "node {} of tree {} leads to node {}, which the tree does not have",
             lists.ids[i], lists.trees[i], id);
      }
      has_parent.insert(found->second);
      return found->second;
    };
    Node& node = nodes_[inner++];
    node.next[true] = next(lists.if_true[i]);
    node.next[false] = next(lists.if_false[i]);
  }
  std::unordered_set<int64_t> has_root, has_inner_nodes;
  for (const auto& [name, position] : positions) {
    if (position >= 0) has_inner_nodes.insert(name.first);
  }
  for (size_t i = 0; i < lists.size(); ++i) {
    const int64_t tree = lists.trees[i];
    const int position = positions.at({tree, lists.ids[i]});
    const bool can_be_root = !has_parent.contains(position) && (position >= 0 || !has_inner_nodes.contains(tree));
    if (can_be_root && has_root.insert(tree).second) roots_.push_back(position);
  }
  for (int64_t tree : lists.trees) {
    if (!has_root.contains(tree)) fail(ErrorCode::invalid_attribute, "the nodes of tree {} form a cycle", tree);
  }
}

template <typename T>
void Trees<T>::add_weights(const ir::Node& node, const std::string& prefix, int64_t targets,
                           const Positions& positions) {
  const auto weights = numbers_attribute<T>(node, prefix + "_weights", prefix + "_weights_as_tensor");
  auto list = [&](const char* suffix) {
    return ints_of_length(node, prefix + suffix, prefix + "_weights", weights.size());
  };
  const auto trees = list("_treeids"), nodes = list("_nodeids"), ids = list("_ids");
  std::vector<std::pair<int, Weight>> by_leaf;
  for (size_t i = 0; i < weights.size(); ++i) {
    auto found = positions.find({trees[i], nodes[i]});
    if (found == positions.end()) {
      fail(ErrorCode::invalid_attribute, "{}_nodeids names node {} of tree {}, which does not exist", prefix, nodes[i],
           trees[i]);
    }
    const int target = position_in(prefix + "_ids", ids[i], static_cast<size_t>(targets));
    // Weights of inner nodes are never used.
    if (found->second < 0) by_leaf.push_back({~found->second, {target, weights[i]}});
  }
  std::ranges::stable_sort(by_leaf, {}, [](const auto& entry) { return entry.first; });
  for (const auto& [position, weight] : by_leaf) {
    Leaf& leaf = leaves_[static_cast<size_t>(position)];
    if (leaf.count++ == 0) leaf.first = weights_.size();
    weights_.push_back(weight);
  }
}

template <typename T>
std::vector<int> Trees<T>::steps_to_leaves() const {
  enum : int { unseen = -2, entered = -1 };
  std::vector<int> steps(nodes_.size(), unseen), path;
  const auto steps_from = [&](int next) { return next < 0 ? 0 : steps[static_cast<size_t>(next)]; };
  for (int root : roots_) {
    if (root >= 0) path.push_back(root);
    while (!path.empty()) {
      const Node& node = nodes_[static_cast<size_t>(path.back())];
      int& state = steps[static_cast<size_t>(path.back())];
      if (state != unseen) {
        if (state == entered) state = 1 + std::min(steps_from(node.next[0]), steps_from(node.next[1]));
        path.pop_back();
        continue;
      }
      state = entered;
      for (int next : node.next) {
        if (steps_from(next) == entered) {
          fail(ErrorCode::invalid_attribute, "the nodes of a tree form a cycle through node {}", next);
        }
        if (steps_from(next) == unseen) path.push_back(next);
      }
    }
  }
  return steps;
}

template <typename T>
void Trees<T>::finish() {
  const std::vector<int> steps = steps_to_leaves();
  for (int root : roots_) sure_steps_.push_back(root < 0 ? 0 : steps[static_cast<size_t>(root)]);
  only_leq_ =
      std::ranges::all_of(tests_, [](const Test& test) { return test.mode == Mode::leq && !test.missing_is_true; });

  first_leaf_ = nodes_.size();
  const auto as_node = [&](int& position) {
    if (position < 0) position = static_cast<int>(first_leaf_) + ~position;
  };
  for (Node& node : nodes_) std::ranges::for_each(node.next, as_node);
  std::ranges::for_each(roots_, as_node);
  nodes_.resize(nodes_.size() + leaves_.size());
  tests_.resize(nodes_.size());
  for (size_t leaf = first_leaf_; leaf < nodes_.size(); ++leaf) {
    std::ranges::fill(nodes_[leaf].next, static_cast<int>(leaf));
  }
  size_t weight = 0;
  if (std::ranges::all_of(leaves_, [&](Leaf leaf) { return leaf.count == 1 && leaf.first == weight++; })) leaves_ = {};
}

template <typename T>
void Trees<T>::require_features(int64_t count) const {
  if (last_feature_ >= count) {
    fail(ErrorCode::invalid_value, "the trees look at feature {}, the rows have {}", last_feature_, count);
  }
}

template <typename T>
bool Trees<T>::is_true(size_t node, T value) const {
  const Test& test = tests_[node];
  const T split = nodes_[node].split;
  if (test.missing_is_true && std::isnan(value)) return true;
  switch (test.mode) {
    case Mode::leq:
      return value <= split;
    case Mode::less:
      return value < split;
    case Mode::geq:
      return value >= split;
    case Mode::greater:
      return value > split;
    case Mode::equal:
      return value == split;
    case Mode::not_equal:
      return value != split;
    case Mode::member:
      return !std::isnan(value) && std::ranges::binary_search(members_[static_cast<size_t>(test.members)], value);
  }
  return false;
}

// There is no branch on what a test gives.
template <typename T>
template <size_t count>
std::array<size_t, count> Trees<T>::walk(const std::array<size_t, count>& starts, int sure_steps, const T* rows,
                                         int64_t stride) const {
  std::array<size_t, count> leaves;
  const auto take_steps = [&](auto next) {
    std::array<size_t, count> at = starts;
    const auto step = [&] {
      for (size_t i = 0; i < count; ++i) {
        at[i] = static_cast<size_t>(next(at[i], rows + static_cast<int64_t>(i) * stride));
      }
    };
    for (int i = 0; i < sure_steps; ++i) step();
    while (std::ranges::any_of(at, [this](size_t node) { return node < first_leaf_; })) step();
    for (size_t i = 0; i < count; ++i) leaves[i] = at[i] - first_leaf_;
  };
  const Node* nodes = nodes_.data();
  if (only_leq_) {
    take_steps([=](size_t at, const T* row) {
      const Node& node = nodes[at];
      return node.next[row[node.feature] <= node.split];
    });
  } else {
    take_steps([=, this](size_t at, const T* row) {
      const Node& node = nodes[at];
      return node.next[is_true(at, row[node.feature])];
    });
  }
  return leaves;
}

template <typename T>
std::array<size_t, Trees<T>::rows_together> Trees<T>::find_leaves(size_t tree, const T* rows, int64_t stride) const {
  std::array<size_t, rows_together> starts;
  starts.fill(static_cast<size_t>(roots_[tree]));
  return walk(starts, sure_steps_[tree], rows, stride);
}

template <typename T>
std::array<size_t, Trees<T>::trees_together> Trees<T>::find_leaves_of_row(size_t first, const T* row) const {
  std::array<size_t, trees_together> starts;
  int sure_steps = sure_steps_[first];
  for (size_t i = 0; i < trees_together; ++i) {
    const size_t tree = std::min(first + i, size() - 1);
    starts[i] = static_cast<size_t>(roots_[tree]);
    sure_steps = std::min(sure_steps, sure_steps_[tree]);
  }
  return walk(starts, sure_steps, row, 0);
}

template class Trees<float>;
template class Trees<double>;

}  // namespace tenon::ops
