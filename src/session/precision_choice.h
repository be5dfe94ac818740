#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tenon/precision.h"

namespace tenon {

// How precisely each node computes.
struct PrecisionChoice {
  Precision precision = Precision::full;
  std::vector<std::string> full = {};  // nodes that compute in full precision in any case

  Precision of(const ir::Node& node) const {
    if (precision == Precision::full || full.empty()) return precision;
    const auto is_meant = [&](const std::string& name) {
      return name == node.name || (node.origin && name == node.origin->name) || name == node.describe();
    };
    return std::ranges::any_of(full, is_meant) ? Precision::full : precision;
  }
};

}  // namespace tenon
