#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace tenon::ops {

enum class Aggregation { average, sum, min, max };  // the numbers are those of TreeEnsemble

// Decision trees as one array of nodes, read and checked once. T is the type of features and weights: float or double.
template <typename T>
class Trees {
 public:
  struct Weight {
    int target;
    T value;
  };

  // From the attributes of TreeEnsemble, and from those of the two older operators, in which the leaves' weights are in
  // attributes whose names start with `weights`: "target" or "class". `targets` is what there are of those.
  static Trees of_ensemble(const ir::Node& node, int64_t targets);
  static Trees of_lists(const ir::Node& node, const std::string& weights, int64_t targets);

  size_t size() const { return roots_.size(); }
  // Throws when rows are too short for the features that the nodes ask for.
  void require_features(int64_t count) const;

  // Walks that go side by side, so that the processor need not wait for one node before it asks for the next.
  static constexpr size_t rows_together = 8, trees_together = 16;

  // The leaves that rows come to in tree number `tree`: row i starts at rows + i * stride.
  std::array<size_t, rows_together> find_leaves(size_t tree, const T* rows, int64_t stride) const;
  // Those that one row comes to in the trees from number `first` on; after the last tree that one again.
  std::array<size_t, trees_together> find_leaves_of_row(size_t first, const T* row) const;
  // What a leaf says.
  std::span<const Weight> leaf_weights(size_t leaf) const {
    if (leaves_.empty()) return {weights_.data() + leaf, 1};
    return {weights_.data() + leaves_[leaf].first, leaves_[leaf].count};
  }
  const std::vector<Weight>& all_weights() const { return weights_; }

 private:
  enum class Mode : uint8_t { leq, less, geq, greater, equal, not_equal, member };  // as numbered by TreeEnsemble

  // The next node is a position in nodes_, while these are read ~ a position in leaves_ too. Walks want it small.
  struct Node {
    T split = 0;
    int feature = 0;
    int next[2] = {0, 0};  // if false, if true
  };
  // What else there is to a node, at the same position of tests_.
  struct Test {
    Mode mode = Mode::leq;
    bool missing_is_true = false;
    int members = -1;  // position in members_
  };
  struct Leaf {
    size_t first = 0, count = 0;  // of weights_
  };

  // The older operators list all nodes, leaves too, by tree and number.
  struct NodeLists;
  struct Positions;
  void add_nodes(const NodeLists& lists, Positions& positions);
  void link_nodes(const NodeLists& lists, const Positions& positions);
  void add_weights(const ir::Node& node, const std::string& prefix, int64_t targets, const Positions& positions);

  // From positions in nodes_ to leaves.
  template <size_t count>
  std::array<size_t, count> walk(const std::array<size_t, count>& starts, int sure_steps, const T* rows,
                                 int64_t stride) const;
  bool is_true(size_t node, T value) const;
  void set_feature(Node& node, int64_t feature);
  void read_members(const ir::Node& node);
  // Makes sure that every walk ends. Returns how many steps there are at least from each node to a leaf.
  std::vector<int> steps_to_leaves() const;
  void finish();

  // Leaves come after all other nodes and lead to themselves, so walks that have ended may go on beside others.
  std::vector<Node> nodes_;
  std::vector<Test> tests_;
  std::vector<Leaf> leaves_;  // none where leaf i has the weight i and no other
  std::vector<Weight> weights_;
  std::vector<std::vector<T>> members_;  // sorted
  std::vector<int> roots_;               // like Node::next
  std::vector<int> sure_steps_;          // that every walk from the root takes
  size_t first_leaf_ = 0;                // in nodes_
  int last_feature_ = -1;
  bool only_leq_ = false;
};

// A list of numbers that is in the attribute `name`, or in `tensor_name` as a tensor.
template <typename T>
std::vector<T> numbers_attribute(const ir::Node& node, std::string_view name, std::string_view tensor_name);

}  // namespace tenon::ops
