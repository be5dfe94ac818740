#pragma once

#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "provider/provider.h"
#include "session/precision_choice.h"

namespace tenon {

// The contents of the node's inputs that no run can change; null for the others.
std::vector<const Tensor*> constant_inputs(const ir::Node& node);

// Who reads the constants of a graph and of those in it. Gives the memory of constants back when the last kernel that
// reads them has made something else of them.
class ConstantUses {
 public:
  explicit ConstantUses(const ir::Graph& graph) { note_outputs(graph); }

  // Finds out what kernels would make of constants that several nodes read, before any of them makes it.
  void ask_kernels(const ir::Graph& graph, std::span<const Provider* const> providers, ThreadPool& threads,
                   const PrecisionChoice& precision);
  // Whether all that read the constants make this of them, so that nothing is held twice. Small ones do not count. The
  // kernels were asked.
  bool are_freed_by(const PackedConstants::Key& key) const;

  // The kernel of `node` was made of `info`.
  void add(const ir::Node& node, const NodeInfo& info);

 private:
  void note_outputs(const ir::Graph& graph);

  std::unordered_set<const ir::Value*> outputs_;  // of any graph: the caller reads them
  std::unordered_map<const ir::Value*, size_t> packed_uses_;
  std::map<PackedConstants::Key, size_t> asked_;  // by how many nodes, of those that were asked
};

}  // namespace tenon
