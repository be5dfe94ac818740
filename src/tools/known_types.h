#pragma once

#include <map>
#include <string>

#include "ir/graph.h"

namespace tenon::tools {

// Types of the main graph's values by name: what inference finds, else what the model declares. A model that cannot be
// understood (it has operators that nobody knows, or contradicts itself) has the latter only, and `problem` says why.
struct KnownTypes {
  std::map<std::string, ir::Type, std::less<>> types;
  std::string problem;
};
KnownTypes known_types(const ir::Model& model);

// A copy that is lifted, with functions inlined and Constant nodes as initializers, sorted; types are not inferred.
std::unique_ptr<ir::Model> lifted_copy(const ir::Model& model);

}  // namespace tenon::tools
