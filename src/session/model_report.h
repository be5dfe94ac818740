#pragma once

#include <string>
#include <vector>

#include "tenon/session.h"

namespace tenon {

// What a session can say of its model beside its nodes.
struct ModelReport {
  ModelInfo info;
  std::vector<ValueInfo> inputs, outputs, overridable;
  std::vector<Rewrite> rewrites;
  std::vector<std::string> notes;
};

}  // namespace tenon
