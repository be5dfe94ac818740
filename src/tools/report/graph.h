// The graph of a compiled model as a report shows it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "session/compiled_model.h"
#include "session/plan.h"
#include "tenon/tools/profile.h"

namespace tenon::tools {

struct ReportTensor {
  enum class Kind : unsigned char { computed, input, weight };
  const ir::Value* value = nullptr;
  Kind kind = Kind::computed;
  bool is_output = false;
  std::string type;          // "float [1, 3, 224, 224]"
  int64_t bytes = -1;        // -1: not known
  int producer = -1;         // node
  std::vector<int> made_of;  // tensors that it is a view of, or that lie in it side by side, if its node does not run
};

struct ReportNode {
  const Step* step = nullptr;
  std::string text;  // as in placement and profiles
  int owner = -1;    // the node whose body it is in
  std::string body;  // which of its bodies
  enum class Role : unsigned char {
    runs,
    known,  // shapes and weights alone decide what it makes
    view,   // its outputs are where its inputs are: it takes them apart, joins them or gives them another shape
  } role = Role::runs;
  std::vector<int> inputs, outputs;  // tensors; -1 where one is left out
  // Of all runs together.
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

struct ReportGraph {
  std::vector<ReportNode> nodes;  // in the order in which they run; those of a body after its node
  std::vector<ReportTensor> tensors;

  // A node by what a profile says of a step that is the n-th of that description in its run; -1 if there is none.
  int find(const std::string& text, const std::string& op_type, size_t n) const;

  std::unordered_map<std::string, std::vector<int>> by_description;
};

ReportGraph read_graph(const CompiledModel& model);

// How the model runs with these inputs.
std::shared_ptr<const Plan> plan_for(const CompiledModel& model, const NamedValues& inputs, int branch_threads);

// Types and sizes that follow from the inputs, and which nodes do not run.
void take_plan(ReportGraph& graph, const Program& program, const Plan& plan);

// Types and sizes that only a run shows.
void take_sizes_of_run(ReportGraph& graph, const Session& session, const NamedValues& inputs);

void take_times(ReportGraph& graph, const std::vector<ProfiledRun>& runs);

}  // namespace tenon::tools
