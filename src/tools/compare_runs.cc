#include "tenon/tools/compare_runs.h"

#include <fmt/core.h>

#include <optional>

#include "ir/graph.h"
#include "ops/operator.h"

namespace tenon::tools {
namespace {

// A node that gives other numbers in every run; null if there is none.
const ir::Node* random_node(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    const ops::Operator* op = ops::operator_of(node);
    if (op && op->is_random && !node.attribute("seed")) return &node;
    const ir::Node* found = nullptr;
    for (const ir::Attribute& attribute : node.attributes)
      attribute.for_each_graph([&](const ir::Graph& subgraph) { found = found ? found : random_node(subgraph); });
    if (found) return found;
  }
  return nullptr;
}

SessionOptions unoptimised(const SessionOptions& options) {
  SessionOptions plain = options;
  plain.level = OptimizationLevel::none;
  return plain;
}

// Nothing, and why, if Tenon does not know one of the model's operators.
std::optional<Session> open_if_known(const OnnxModel& model, const SessionOptions& options, std::string& why_not) {
  try {
    return model.open(options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unknown_operator) throw;
    why_not = error.message();
    return std::nullopt;
  }
}

}  // namespace

RunComparison compare_runs(const OnnxModel& before, const OnnxModel& after, const InputSources& sources,
                           const Tolerance& tolerance, const SessionOptions& options) {
  RunComparison result;
  if (const ir::Node* random = random_node(*before.ir().graph)) {
    result.why_not = fmt::format("{} gives other numbers in every run", random->describe());
    return result;
  }
  std::optional<Session> opened = open_if_known(before, unoptimised(options), result.why_not);
  if (!opened) return result;
  const Session& expected_from = *opened;
  NamedValues inputs, expected;
  try {
    MadeInputs made = make_inputs(expected_from, sources);
    inputs = std::move(made.values);
    result.random = std::move(made.random);
    result.assumed = std::move(made.assumed);
    expected = expected_from.run(inputs);
  } catch (const Error& error) {
    if (sources.files.size() == expected_from.inputs().size() && !sources.files.empty()) throw;
    result.why_not = fmt::format("the model does not run on random inputs: {}", error.what());
    return result;
  }
  const NamedValues actual = after.open(unoptimised(options)).run(inputs);
  for (const auto& [name, value] : expected) {
    auto found = actual.find(name);
    std::string problem = found == actual.end() ? "is gone" : difference_by_size(found->second, value, tolerance);
    if (!problem.empty() && result.failure.empty()) result.failure = fmt::format("output '{}': {}", name, problem);
  }
  result.largest_difference = largest_difference(actual, expected);
  return result;
}

}  // namespace tenon::tools
