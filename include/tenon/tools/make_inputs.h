#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/session.h"

namespace tenon::tools {

// Where the inputs of a run come from. What is not given is random.
struct InputSources {
  NamedValues values;                        // by input
  std::map<std::string, std::string> files;  // the same; read_value says which kinds
  std::map<std::string, Shape> shapes;       // of random inputs
  std::map<std::string, int64_t> dims;       // sizes of named dims of random inputs; 1 for those not given
  uint64_t seed = 0;
};

struct MadeInputs {
  NamedValues values;
  std::vector<std::string> random;   // inputs that were not given
  std::vector<std::string> assumed;  // named dims that were taken to be 1
};

// Throws ErrorCode::unknown_name for a name that the model does not have, ErrorCode::missing_input for an input that
// cannot be random.
MadeInputs make_inputs(const Session& session, const InputSources& sources);

// The shapes that make_inputs would give random inputs; those that neither the model nor `sources` tell are left out.
// `assumed` receives the named dims that were taken to be 1. Throws ErrorCode::unknown_name as make_inputs does.
std::map<std::string, Shape> input_shapes(const Session& session, const InputSources& sources,
                                          std::vector<std::string>& assumed);

}  // namespace tenon::tools
