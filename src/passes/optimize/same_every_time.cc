#include "passes/optimize/same_every_time.h"

#include <algorithm>
#include <array>

#include "ops/operator.h"

namespace tenon::passes {

bool is_same_every_time(const ir::Node& node) {
  if (node.custom_operator && node.custom_operator->is_random) return false;
  constexpr std::array random = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
                                 "Multinomial",  "Bernoulli",        "Dropout"};
  if (std::ranges::find(random, node.op_type) != random.end()) return false;
  bool has_subgraph = false;
  for (const ir::Attribute& attribute : node.attributes)
    attribute.for_each_graph([&](const ir::Graph&) { has_subgraph = true; });
  return !has_subgraph;
}

}  // namespace tenon::passes
