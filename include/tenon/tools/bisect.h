#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tenon/tools/error_statistics.h"
#include "tenon/tools/make_inputs.h"
#include "tenon/tools/onnx_model.h"

namespace tenon::tools {

struct BisectOptions {
  // How the model runs when it is wrong. Right is: not optimised, in full precision.
  SessionOptions session;
  ErrorLimit limit;
  InputSources inputs;
  // Is told how many runs are done and how many there may be.
  std::function<void(int64_t done, int64_t estimate)> progress;
};

// The outputs of one run beside those that are right.
struct OutputErrors {
  bool within = true;
  std::string output;  // whose error is the largest part of what is allowed
  double error = 0, limit = 0;
};

struct RewriteBisection {
  enum class Outcome : unsigned char {
    found,
    holds,          // with all rewrites the outputs are within the tolerance
    wrong_already,  // without any they are not
  } outcome = Outcome::found;
  int64_t rewrites = 0;  // of all
  int64_t number = 0;    // of the one that was found, counted from 1
  Rewrite rewrite;
  OutputErrors before, after;  // of runs without and with it
  OutputErrors without_pass;   // of a run with all rewrites but those of its pass
  int64_t runs = 0;
};

// The first rewrite of the optimiser with which outputs are beyond the tolerance, in as many runs as halving takes.
RewriteBisection bisect_rewrites(const OnnxModel& model, const BisectOptions& options = {});

struct NodeBisection {
  enum class Outcome : unsigned char { found, holds, wrong_already, nothing_rounds } outcome = Outcome::found;
  std::vector<std::string> candidates;  // nodes that compute in less than full precision
  std::vector<std::string> keep;        // those that must not: one fewer, and the outputs are beyond the tolerance
  OutputErrors before, after;           // of runs with all candidates rounded, and without those that are kept
  std::optional<OnnxModel> model;       // the converted or quantized model with those that are kept in float
  int64_t runs = 0;
};

// The nodes that must keep full precision so that the outputs stay within the tolerance, when the others have
// `session.precision` fast.
NodeBisection bisect_precision(const OnnxModel& model, const BisectOptions& options = {});
// The same when float32 becomes `type`, float16 or bfloat16, as convert_dtype does it.
NodeBisection bisect_dtype(const OnnxModel& model, ElementType type, const BisectOptions& options = {});
// The same for a model that was quantized with QuantizeLinear and DequantizeLinear; values and outputs have the names
// that they have in the original.
NodeBisection bisect_quantization(const OnnxModel& original, const OnnxModel& quantized,
                                  const BisectOptions& options = {});

}  // namespace tenon::tools
