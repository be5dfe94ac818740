// How good a quantized model is.
#pragma once

#include <vector>

#include "tenon/tools/quantize.h"

namespace tenon::tools {

// Compares outputs of models with those of the first one on the same samples.
class Evaluation {
 public:
  Evaluation(const OnnxModel& original, std::vector<NamedValues> samples, const QuantizeOptions& options);

  struct Result {
    std::vector<OutputReport> outputs;
    // The largest share of an output's power that its error has; of outputs that are no floats, the share of elements
    // that differ.
    double loss = 0;
    std::vector<std::string> not_compared;  // outputs of other sizes
  };
  Result of(const OnnxModel& model) const;

  const std::vector<NamedValues>& samples() const { return samples_; }

 private:
  std::vector<NamedValues> samples_;
  SessionOptions session_;
  std::vector<NamedValues> expected_;  // by sample
};

double decibels(double loss);

}  // namespace tenon::tools
