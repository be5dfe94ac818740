#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tenon/session.h"

namespace tenon::tools {

struct OperatorUse {
  std::string name;   // "Conv", "com.microsoft.FusedMatMul"
  int64_t count = 0;  // subgraphs and functions included
  bool known = true;  // to this version of Tenon, or one of the user's own
};

struct ModelSummary {
  ModelInfo info;
  std::vector<ValueInfo> inputs, outputs, overridable_initializers;
  std::vector<OperatorUse> operators;  // most used first
  std::vector<std::string> functions;
  int64_t nodes = 0;
  int64_t parameters = 0;  // elements of initializers and Constant nodes
  int64_t parameter_bytes = 0;
  std::vector<std::string> dynamic_dims;  // named sizes of the inputs
  // Multiplications and additions of nodes that multiply matrices (MatMul, Conv, LSTM, Attention, …), as a number or in
  // terms of the named sizes; "" if shapes cannot be inferred.
  std::string flops;
  // What keeps the model from running, "" if nothing was found without running it.
  std::string problem;
  std::vector<std::string> notes;
};

// Reads the model and says what is in it, also when Tenon could not run it. Of the options only the custom operators
// matter.
ModelSummary inspect(const std::filesystem::path& path, const SessionOptions& options = {});

// The model as text, one node a line. With `inferred`, lifted to the newest operators and with inferred types.
std::string model_text(const std::filesystem::path& path, bool inferred = false, const SessionOptions& options = {});

// The session's placement report for the shapes of these inputs; in terms of named sizes if no report can be made for
// those.
PlacementReport placement_for(const Session& session, const NamedValues& inputs);

}  // namespace tenon::tools
