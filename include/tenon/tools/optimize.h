#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tenon/session.h"
#include "tenon/tools/compare_values.h"

namespace tenon::tools {

struct OptimizeOptions {
  OptimizationLevel level = OptimizationLevel::basic;
  std::vector<std::string> disabled_passes;
  std::vector<std::string> keep;  // values that stay, by name
  // As in SessionOptions.
  std::vector<CustomOperator> custom_operators = {};
  std::vector<std::filesystem::path> custom_operator_libraries = {};
};

// How often an operator occurs before and after; subgraphs included.
struct OperatorChange {
  std::string name;
  int64_t before = 0, after = 0;
};

// What the optimiser did to a model, and the model itself.
struct OptimizedModel {
  std::vector<OperatorChange> operators;  // those that changed most first
  int64_t nodes_before = 0, nodes_after = 0;
  std::vector<Rewrite> rewrites;
  double seconds = 0;  // that the passes took
  std::vector<std::string> notes;
  // Writes it as a standard ONNX model of the input's opsets and IR version. Throws ErrorCode::unsupported with every
  // node that has no expression there.
  void save(const std::filesystem::path& path);

  struct Implementation;
  std::shared_ptr<Implementation> implementation;
};

// Reads a model and optimises it.
OptimizedModel optimize(const std::filesystem::path& path, const OptimizeOptions& options = {});

// A pass that changed results by more than is allowed.
struct VerifyFailure {
  std::string pass, node, tensor, difference;
};

// Runs the model on `inputs` as it is, and again after every pass that changed it. Each output must be within
// absolute + relative * (its largest magnitude). Returns the first failure, none when all is well.
std::vector<VerifyFailure> verify_optimization(const std::filesystem::path& path, const OptimizeOptions& options,
                                               const NamedValues& inputs, const Tolerance& tolerance);

}  // namespace tenon::tools
