#pragma once

#include <optional>
#include <vector>

#include "ops/cost.h"
#include "tenon/session.h"

namespace tenon {

// What is said about where nodes run, with the expressions that its texts were made from.
struct Placement {
  std::vector<NodePlacement> nodes;
  std::vector<std::optional<ops::Cost>> costs;  // by node; nullopt: shapes are not known
  std::vector<ValueCopy> copies;
  std::vector<std::optional<Dim>> copied;  // bytes, by copy

  void add(NodePlacement node, std::optional<ops::Cost> cost);
  void add(ValueCopy copy, std::optional<Dim> bytes);
};

// `providers`: their names in order. Sizes that `lookup` knows become numbers.
PlacementReport report(const Placement& placement, const std::vector<std::string>& providers,
                       const Dim::Lookup& lookup);

}  // namespace tenon
