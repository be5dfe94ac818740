#include "passes/optimize/same_every_time.h"

#include <algorithm>
#include <array>

#include "ir/visit.h"
#include "ops/operator.h"

namespace tenon::passes {

bool is_same_every_time(const ir::Node& node) {
  if (node.custom_operator && node.custom_operator->is_random) return false;
  constexpr std::array random = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
                                 "Multinomial",  "Bernoulli",        "Dropout"};
  return std::ranges::find(random, node.op_type) == random.end() && !ir::has_subgraphs(node);
}

}  // namespace tenon::passes
