#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tenon/session.h"
#include "tenon/tools/compare_values.h"

namespace tenon::tools {

struct CaseResult {
  enum class Outcome { passed, failed, skipped };
  std::string name;  // the folder, as found
  Outcome outcome = Outcome::passed;
  std::string reason;
  double seconds = 0;
  std::map<std::string, int> nodes;  // by provider
};

// The ONNX test-case folders at or below `folder`: those with a model.onnx and test_data_set_* folders, sorted.
std::vector<std::filesystem::path> find_test_cases(const std::filesystem::path& folder);

struct TestOptions {
  SessionOptions session;
  // Where the folder has no tolerance.json. If that file has "nonzero", the outputs are 0 at random: the model is run
  // many times, without its seeds, and each element must not be 0 as often as "nonzero" says: a probability, "input"
  // for the same element of the first input, or "1-input".
  Tolerance tolerance;
  // Brings the model up one opset at a time, writing and reading it in between, before it runs: every version adapter
  // then meets every version that it has to bring up.
  bool lift_steps = false;
  // Compiles the model to a file first, and runs what is loaded from there.
  bool compile = false;
};

// Loads the folder's model, runs each data set and compares. A case without data sets is skipped.
CaseResult run_test_case(const std::filesystem::path& folder, const TestOptions& options = {});

}  // namespace tenon::tools
