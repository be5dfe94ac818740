#pragma once

#include <algorithm>

#include "base/checked.h"
#include "ir/graph.h"

namespace tenon::ops {

// The number of targets of a TreeEnsemble: n_targets, or as many as its leaves name.
inline int64_t ensemble_targets(const ir::Node& node) {
  if (node.attribute("n_targets")) return node.int_attribute("n_targets", 1);
  const std::vector<int64_t> ids = node.ints_attribute("leaf_targetids");
  return ids.empty() ? 1 : checked_add(std::ranges::max(ids), 1);
}

}  // namespace tenon::ops
