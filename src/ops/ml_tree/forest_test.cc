#include <random>

#include "op_test.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

template <typename T>
Tensor tensor(Shape shape, const std::vector<T>& values) {
  Tensor result(element_type_of<T>, std::move(shape));
  std::ranges::copy(values, result.mutable_data<T>().begin());
  return result;
}

// Trees that are grown at random, whose leaves are at different depths, as the lists of TreeEnsembleRegressor and as
// nodes that can be followed one by one.
template <typename T>
class Forest {
 public:
  Forest(int trees, int depth, int features, std::vector<std::string> modes)
      : features_(features), modes_(std::move(modes)) {
    for (int tree = 0; tree < trees; ++tree) {
      roots_.push_back(nodes_.size());
      // Some trees are full, some only a leaf.
      grow(tree, tree % 5 == 4 ? 0 : depth, tree % 2 == 0);
    }
  }

  OpTest test() const {
    Ints trees, ids, features, if_true, if_false, weight_trees, weight_ids, targets;
    std::vector<T> splits, weights;
    std::vector<std::string> modes;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      trees.push_back(node.tree), ids.push_back(static_cast<int64_t>(i)), features.push_back(node.feature);
      if_true.push_back(node.if_true), if_false.push_back(node.if_false);
      splits.push_back(node.value), modes.push_back(node.mode);
      if (node.mode != "LEAF") continue;
      weight_trees.push_back(node.tree), weight_ids.push_back(static_cast<int64_t>(i)), targets.push_back(0);
      weights.push_back(node.value);
    }
    OpTest test("TreeEnsembleRegressor", 3, "ai.onnx.ml");
    test.attribute("nodes_treeids", trees)
        .attribute("nodes_nodeids", ids)
        .attribute("nodes_featureids", features)
        .attribute("nodes_truenodeids", if_true)
        .attribute("nodes_falsenodeids", if_false)
        .attribute("nodes_values_as_tensor", tensor({std::ssize(splits)}, splits))
        .attribute("nodes_modes", modes)
        .attribute("target_treeids", weight_trees)
        .attribute("target_nodeids", weight_ids)
        .attribute("target_ids", targets)
        .attribute("target_weights_as_tensor", tensor({std::ssize(weights)}, weights))
        .attribute("n_targets", 1)
        .tolerance(0, 0);
    return test;
  }

  // Weights are added in the order of the trees.
  float score(const T* row) const {
    T sum = 0;
    for (size_t at : roots_) {
      while (nodes_[at].mode != "LEAF") {
        const Node& node = nodes_[at];
        const T value = row[node.feature];
        const bool is_true = node.mode == "BRANCH_LEQ" ? value <= node.value : value > node.value;
        at = static_cast<size_t>(is_true ? node.if_true : node.if_false);
      }
      sum += nodes_[at].value;
    }
    return static_cast<float>(sum);
  }

  void expect_scores(int64_t rows) {
    std::vector<T> x(static_cast<size_t>(rows * features_));
    for (T& value : x) value = draw();
    std::vector<float> y;
    for (int64_t row = 0; row < rows; ++row) y.push_back(score(x.data() + row * features_));
    test().input(tensor({rows, features_}, x)).expect(tensor({rows, 1}, y)).run();
  }

 private:
  struct Node {
    int64_t tree, feature, if_true, if_false;
    T value;
    std::string mode;
  };

  T draw() { return static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random_)); }

  int64_t grow(int64_t tree, int depth, bool full) {
    const size_t at = nodes_.size();
    const bool is_leaf = depth == 0 || (!full && random_() % 4 == 0);
    const auto feature = static_cast<int64_t>(random_() % static_cast<uint64_t>(features_));
    nodes_.push_back({tree, is_leaf ? 0 : feature, 0, 0, draw(), is_leaf ? "LEAF" : modes_[random_() % modes_.size()]});
    if (is_leaf) return static_cast<int64_t>(at);
    const int64_t if_true = grow(tree, depth - 1, full), if_false = grow(tree, depth - 1, full);
    nodes_[at].if_true = if_true, nodes_[at].if_false = if_false;
    return static_cast<int64_t>(at);
  }

  int64_t features_;
  std::vector<std::string> modes_;
  std::vector<Node> nodes_;
  std::vector<size_t> roots_;
  std::mt19937_64 random_{5};
};

TEST(TreeEnsembleRegressor, Forests) {
  for (int trees : {1, 2, 15, 16, 17, 40}) {
    for (int64_t rows : {1, 2, 7, 8, 9, 19}) {
      Forest<float>(trees, 5, 3, {"BRANCH_LEQ"}).expect_scores(rows);
      Forest<double>(trees, 5, 3, {"BRANCH_LEQ"}).expect_scores(rows);
      Forest<float>(trees, 5, 3, {"BRANCH_LEQ", "BRANCH_GT"}).expect_scores(rows);
    }
  }
}

TEST(TreeEnsembleRegressor, MoreRowsThanGoThroughATreeAtOnce) {
  Forest<float>(6, 7, 2, {"BRANCH_LEQ"}).expect_scores(2500);
  Forest<float>(6, 7, 5000, {"BRANCH_LEQ"}).expect_scores(100);
}

}  // namespace
}  // namespace tenon
