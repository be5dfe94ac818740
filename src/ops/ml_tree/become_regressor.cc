#include "ops/ml_tree/become_regressor.h"

#include <array>
#include <cmath>
#include <vector>

#include "ops/ml_tree/ensemble_targets.h"

namespace tenon::ops {
namespace {

constexpr std::array branch_names = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"};
constexpr std::array aggregations = {"AVERAGE", "SUM", "MIN", "MAX"};
constexpr std::array transforms = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
constexpr int member_mode = 6, equal_mode = 4;
constexpr size_t most_nodes = 1 << 24;

std::vector<float> floats_of(const ir::Node& node, const char* name) {
  const Tensor* tensor = node.tensor_attribute(name);
  if (!tensor) return {};
  return {tensor->data<float>().begin(), tensor->data<float>().end()};
}

// The members of each node that tests for them, which NaN separates.
std::vector<std::vector<float>> members_of(const ir::Node& node) {
  std::vector<std::vector<float>> sets(1);
  for (float value : floats_of(node, "membership_values")) {
    if (std::isnan(value))
      sets.emplace_back();
    else
      sets.back().push_back(value);
  }
  return sets;
}

// Copies trees into the lists of the older operator, in which each has all of its nodes, leaves too, with numbers of
// its own.
class Lists {
 public:
  explicit Lists(const ir::Node& node)
      : true_ids_(node.ints_attribute("nodes_truenodeids")),
        false_ids_(node.ints_attribute("nodes_falsenodeids")),
        true_leaves_(node.ints_attribute("nodes_trueleafs")),
        false_leaves_(node.ints_attribute("nodes_falseleafs")),
        features_(node.ints_attribute("nodes_featureids")),
        missing_(node.ints_attribute("nodes_missing_value_tracks_true")),
        targets_(node.ints_attribute("leaf_targetids")),
        splits_(floats_of(node, "nodes_splits")),
        leaf_weights_(floats_of(node, "leaf_weights")) {
    const Tensor* modes = node.tensor_attribute("nodes_modes");
    if (modes) modes_.assign(modes->data<uint8_t>().begin(), modes->data<uint8_t>().end());
    const std::vector<std::vector<float>> sets = members_of(node);
    size_t next = 0;
    for (uint8_t mode : modes_) {
      const bool tests_members = mode == member_mode && next < sets.size();
      members_.push_back(tests_members ? sets[next++] : std::vector<float>{});
    }
  }

  bool is_whole() const {
    const size_t count = modes_.size();
    return true_ids_.size() == count && false_ids_.size() == count && true_leaves_.size() == count &&
           false_leaves_.size() == count && features_.size() == count && splits_.size() == count &&
           (missing_.empty() || missing_.size() == count) && targets_.size() == leaf_weights_.size();
  }

  bool add_tree(int64_t root) {
    ++tree_;
    next_id_ = 0;
    return add_branch(root, /*is_leaf=*/false, 0) >= 0;
  }

  void write(ir::Node& node) {
    auto set = [&](const char* name, auto& list) { node.set_attribute({name, std::move(list)}); };
    set("nodes_treeids", tree_ids);
    set("nodes_nodeids", node_ids);
    set("nodes_featureids", feature_ids);
    set("nodes_modes", modes);
    set("nodes_values", values);
    set("nodes_truenodeids", true_ids);
    set("nodes_falsenodeids", false_ids);
    set("nodes_missing_value_tracks_true", tracks_true);
    set("target_treeids", target_trees);
    set("target_nodeids", target_nodes);
    set("target_ids", target_ids);
    set("target_weights", weights);
  }

 private:
  // Adds what is below a branch; the number of its first node, or -1 if the trees are broken or too large.
  int64_t add_branch(int64_t at, bool is_leaf, int depth) {
    const size_t count = is_leaf ? targets_.size() : modes_.size();
    if (at < 0 || static_cast<size_t>(at) >= count || depth > 4096 || node_ids.size() > most_nodes) return -1;
    const auto i = static_cast<size_t>(at);
    if (is_leaf) return add_leaf(i);
    if (modes_[i] > member_mode) return -1;
    if (modes_[i] != member_mode) return add_test(i, modes_[i], splits_[i], depth);
    return add_member_tests(i, depth);
  }

  int64_t add_leaf(size_t leaf) {
    const int64_t id = add_node("LEAF", 0, 0, 0);
    target_trees.push_back(tree_);
    target_nodes.push_back(id);
    target_ids.push_back(targets_[leaf]);
    weights.push_back(leaf_weights_[leaf]);
    return id;
  }

  int64_t add_test(size_t i, int mode, float split, int depth) {
    const int64_t id = add_node(branch_names.at(static_cast<size_t>(mode)), features_[i], split, tracks(i));
    return link(id, add_branch(true_ids_[i], true_leaves_[i] != 0, depth + 1),
                add_branch(false_ids_[i], false_leaves_[i] != 0, depth + 1));
  }

  // A test for each member; the next one is where one is false.
  int64_t add_member_tests(size_t i, int depth) {
    const std::vector<float>& members = members_[i];
    if (members.empty()) return -1;
    std::vector<int64_t> ids;
    for (float member : members) ids.push_back(add_node(branch_names[equal_mode], features_[i], member, tracks(i)));
    for (size_t k = 0; k < ids.size(); ++k) {
      const bool is_last = k + 1 == ids.size();
      const int64_t if_false = is_last ? add_branch(false_ids_[i], false_leaves_[i] != 0, depth + 1) : ids[k + 1];
      if (link(ids[k], add_branch(true_ids_[i], true_leaves_[i] != 0, depth + 1), if_false) < 0) return -1;
    }
    return ids[0];
  }

  int64_t tracks(size_t i) const { return missing_.empty() ? 0 : missing_[i]; }

  int64_t add_node(const char* mode, int64_t feature, float value, int64_t missing) {
    tree_ids.push_back(tree_);
    node_ids.push_back(next_id_);
    feature_ids.push_back(feature);
    modes.emplace_back(mode);
    values.push_back(value);
    true_ids.push_back(0);
    false_ids.push_back(0);
    tracks_true.push_back(missing);
    return next_id_++;
  }

  int64_t link(int64_t id, int64_t if_true, int64_t if_false) {
    if (if_true < 0 || if_false < 0) return -1;
    const size_t at = node_ids.size() - static_cast<size_t>(next_id_ - id);
    true_ids[at] = if_true;
    false_ids[at] = if_false;
    return id;
  }

  std::vector<int64_t> true_ids_, false_ids_, true_leaves_, false_leaves_, features_, missing_, targets_;
  std::vector<float> splits_, leaf_weights_;
  std::vector<uint8_t> modes_;
  std::vector<std::vector<float>> members_;
  int64_t tree_ = -1, next_id_ = 0;

  std::vector<int64_t> tree_ids, node_ids, feature_ids, true_ids, false_ids, tracks_true;
  std::vector<int64_t> target_trees, target_nodes, target_ids;
  std::vector<float> values, weights;
  std::vector<std::string> modes;
};

bool is_float32(const ir::Node& node, const char* name) {
  const Tensor* tensor = node.tensor_attribute(name);
  return !tensor || tensor->type() == ElementType::float32;
}

}  // namespace

std::string become_regressor(ir::Node& node) {
  const bool takes_floats = node.input(0) && node.input(0)->type.element == ElementType::float32;
  if (!takes_floats || !is_float32(node, "leaf_weights") || !is_float32(node, "nodes_splits") ||
      !is_float32(node, "membership_values"))
    return "TreeEnsembleRegressor, which was there before, gives float32 only";
  const int64_t aggregation = node.int_attribute("aggregate_function", 1),
                transform = node.int_attribute("post_transform", 0), targets = ensemble_targets(node);
  if (aggregation < 0 || aggregation >= static_cast<int64_t>(aggregations.size()) || transform < 0 ||
      transform >= static_cast<int64_t>(transforms.size()))
    return "its attributes are not valid";
  Lists lists(node);
  if (!lists.is_whole()) return "its lists do not fit each other";
  for (int64_t root : node.ints_attribute("tree_roots")) {
    if (!lists.add_tree(root)) return "its trees are not valid, or too large";
  }
  node.op_type = "TreeEnsembleRegressor";
  node.attributes.clear();
  node.set_attribute({"n_targets", targets});
  node.set_attribute({"aggregate_function", std::string(aggregations[static_cast<size_t>(aggregation)])});
  node.set_attribute({"post_transform", std::string(transforms[static_cast<size_t>(transform)])});
  lists.write(node);
  return {};
}

std::string tensors_to_lists(ir::Node& node) {
  const std::string suffix = "_as_tensor";
  std::vector<std::string> names;
  for (const ir::Attribute& attribute : node.attributes) {
    if (attribute.name.ends_with(suffix)) names.push_back(attribute.name);
  }
  for (const std::string& name : names) {
    if (!is_float32(node, name.c_str())) return "before version 3 its numbers were float32";
  }
  for (const std::string& name : names) {
    std::vector<float> numbers = floats_of(node, name.c_str());
    node.remove_attribute(name);
    node.set_attribute({name.substr(0, name.size() - suffix.size()), std::move(numbers)});
  }
  return {};
}

}  // namespace tenon::ops
