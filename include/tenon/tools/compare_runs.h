#pragma once

#include <string>
#include <vector>

#include "tenon/tools/compare_values.h"
#include "tenon/tools/make_inputs.h"
#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

// How a model that was made of another one computes beside it.
struct RunComparison {
  std::string why_not;               // the two could not be compared; "" if they were
  std::string failure;               // "" if every output is within the tolerance
  double largest_difference = 0;     // as a share of the largest number of the output
  std::vector<std::string> random;   // inputs that were not given
  std::vector<std::string> assumed;  // named dims that were taken to be 1

  bool ran() const { return why_not.empty(); }
  bool ok() const { return failure.empty(); }
};

// Runs both, unoptimised, on given or random inputs. Each output of `before` must be one of `after`, and within
// absolute + relative * (its largest magnitude). Of the options only the custom operators matter.
RunComparison compare_runs(const OnnxModel& before, const OnnxModel& after, const InputSources& sources = {},
                           const Tolerance& tolerance = {1e-4, 1e-6}, const SessionOptions& options = {});

}  // namespace tenon::tools
