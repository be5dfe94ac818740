#pragma once

#include <functional>
#include <string>
#include <vector>

#include "passes/editor.h"

namespace tenon::passes {

#ifdef NDEBUG
inline constexpr bool is_debug_build = false;
#else
inline constexpr bool is_debug_build = true;
#endif

struct OptimizerOptions {
  OptimizationLevel level = OptimizationLevel::all;
  Target target;
  std::vector<std::string> disabled;  // passes, by name
  std::vector<std::string> keep;      // values that stay
  Evaluator evaluate;                 // without it no constants are folded
  int64_t most_rewrites = -1;         // after which it stops; -1: none
  // Whether passes may rewrite this node; those that look at whole graphs are left out then. Null: any.
  std::function<bool(const ir::Node&)> may_change;
  bool verify = is_debug_build;  // whether the graph is checked after each pass that changed it
  // Hears of each pass that changed the graph.
  std::function<void(std::string_view pass, const ir::Graph& graph)> after_pass;
};

// Runs the passes of a level over the graph and the graphs in it, again and again until nothing changes. The nodes must
// be lifted and sorted. Returns what was changed, in order. Throws ErrorCode::invalid_argument for a pass that does not
// exist, ErrorCode::unknown_name for a value to be kept that does not.
std::vector<Rewrite> optimize(ir::Graph& graph, const OptimizerOptions& options);

// For tests: a pass that runs after all others, from level basic on, as long as this exists.
class ExtraPass {
 public:
  ExtraPass(std::string_view name, void (*rewrite)(Editor&, ir::Node&));
  ~ExtraPass();
  ExtraPass(const ExtraPass&) = delete;
  ExtraPass& operator=(const ExtraPass&) = delete;
};

}  // namespace tenon::passes
