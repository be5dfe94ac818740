// What of a model computes on codes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "tenon/tools/quantize.h"
#include "tools/known_types.h"

namespace tenon::tools {

// What a node is to the quantizer.
enum class Role : uint8_t {
  none,      // computes in float
  product,   // Conv, MatMul, Gemm: what quantization is for
  sum,       // Add and Mul of two activations
  function,  // of single elements of one activation: a table of codes
  move,      // keeps the codes: Reshape, MaxPool, …
  average,   // GlobalAveragePool
  concat,
  embedding,  // Gather of rows of a constant table
  follower,   // a bias or limit that the node before it does in the same step
};

// What is quantized, or not, for its own sake.
constexpr bool is_unit(Role role) { return role == Role::product || role == Role::embedding; }

// The constant behind an input of a product, be it through a Transpose, and the axis of its channels.
struct Weight {
  ir::Value* value = nullptr;     // null: the input is no constant
  int64_t axis = -1;              // of the constant; -1: one scale for all
  ir::Node* transpose = nullptr;  // that is between the constant and the product
  ir::Node* reader = nullptr;     // of the constant: the transpose or the product
  size_t input = 0;               // of the reader
};

// Nodes by role, and values that become codes, of a model whose nodes are sorted, with constants as initializers.
class Plan {
 public:
  // `stay_float` are nodes by number, in the order of for_each_node.
  Plan(ir::Model& model, const KnownTypes& types, const QuantizeOptions& options,
       const std::set<size_t>& stay_float = {});

  struct Entry {
    ir::Node* node;
    Role role = Role::none;
    bool is_quantized = false;
    std::string why_float;        // of what could be quantized
    ir::Value* source = nullptr;  // of a function: the activation that it is of
    ir::Node* leader = nullptr;   // of a follower: the node whose step it belongs to
    // Of a product: its activation, and what its second input is.
    ir::Value* activation = nullptr;
    Weight weight = {};
  };
  // In the order of for_each_node; a number is a position here.
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry& entry(const ir::Node& node) const { return entries_[numbers_.at(&node)]; }
  // Whether it computes on codes.
  bool is_quantized(const ir::Node& node) const;

  // Whether a quantized node reads this value as codes.
  bool reads_codes(const ir::Node& node, const ir::Value& value) const;
  // Values that become codes, in order of the nodes that make them.
  const std::vector<ir::Value*>& coded() const { return coded_; }
  // The value whose range decides the codes of this one: its own, or what a move has moved.
  ir::Value& range_source(ir::Value& value) const;
  bool is_float(const ir::Value* value) const;

 private:
  Role role_of(const ir::Node& node) const;
  bool is_embedding(const ir::Node& node) const;
  Weight weight_of(ir::Node& node, size_t input) const;
  std::string why_no_product(const Entry& entry) const;
  void find_sources();
  void find_followers();
  void decide();
  void collect_codes();
  bool is_made_of_codes(const Entry& entry) const;
  bool feeds_codes(const ir::Value& value) const;
  ir::Node* sole_user(const ir::Value& value) const;
  bool is_output(const ir::Value& value) const { return outputs_.contains(&value); }
  Entry& entry_of(const ir::Node& node) { return entries_[numbers_.at(&node)]; }

  const KnownTypes& types_;
  const QuantizeOptions& options_;
  std::vector<Entry> entries_;
  std::unordered_map<const ir::Node*, size_t> numbers_;
  std::unordered_set<const ir::Value*> outputs_;                    // of all graphs
  std::unordered_map<const ir::Value*, ir::Value*> sources_;        // of what functions make
  std::unordered_map<const ir::Value*, ir::Value*> range_sources_;  // of codes that were moved
  std::vector<ir::Value*> coded_;
};

// Throws ErrorCode::unknown_name for patterns that fit neither a node nor an operator.
void require_nodes(const ir::Model& model, const std::vector<std::string>& patterns);

}  // namespace tenon::tools
