#pragma once

#include <functional>

#include "tenon/tools/make_inputs.h"
#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

struct ReduceOptions {
  // Whether a model, run on these inputs, still shows what is looked for.
  std::function<bool(const OnnxModel&, const NamedValues&)> shows;
  InputSources inputs;     // of the whole model
  SessionOptions session;  // of the run that finds what lies between; not optimised
  // Is told how many models were tried and how few nodes are left.
  std::function<void(int64_t tried, int64_t nodes)> progress;
};

struct ReducedModel {
  OnnxModel model;
  NamedValues inputs;  // what the whole model gave these values; random where it could not be run
  int64_t nodes_before = 0, nodes_after = 0, tried = 0;
  std::vector<std::string> notes;
};

// The smallest part of a model that still shows something: nodes of the main graph are left out as long as it does, and
// what they made becomes an input. Throws ErrorCode::invalid_argument if the whole model does not show it.
ReducedModel reduce(const OnnxModel& model, const ReduceOptions& options);

}  // namespace tenon::tools
