#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/tools/changed_model.h"

namespace tenon::tools {

// An axis of an input that becomes a named size. No input: every input that has the axis.
struct DynamicAxis {
  std::string input;
  int axis = 0;
};

struct DynamicOptions {
  std::string name = "batch";  // of the new size
  std::vector<DynamicAxis> axes = {{}};
  // For the runs that prove it: sizes of other named dimensions (5 if not given), and the seed of random inputs.
  std::map<std::string, int64_t> sizes = {};
  uint64_t seed = 0;
  double tolerance = 1e-4;  // allowed difference, times the largest number of the output
};

// What keeps a size from being free.
struct DynamicBlocker {
  std::string node, constant, reason;
};

struct DynamicModel {
  std::optional<OnnxModel> model;  // nothing if something blocks it
  std::vector<ModelChange> changes;
  std::vector<DynamicBlocker> blockers;
  std::vector<std::string> notes;
  std::vector<int64_t> proven;    // sizes that were run
  double largest_difference = 0;  // between rows and the original's results, by the largest number of the output

  // The model. Throws ErrorCode::unsupported with every blocker.
  const OnnxModel& require() const;
};

// Frees a size of the inputs, such as the batch: finds the constants in which the old size is baked and writes them
// from the inputs' shapes. Then runs it with 1, 2 and 3 rows, and each row alone through the original. Throws
// ErrorCode::unknown_name for an input that does not exist, ErrorCode::invalid_argument where the axes have different
// sizes, or none.
DynamicModel make_dynamic(const OnnxModel& model, const DynamicOptions& options = {});

}  // namespace tenon::tools
