#pragma once

#include <bit>
#include <optional>

#include "ir/graph.h"
#include "kernels/random/random.h"

namespace tenon::ops {

// The seed of a node that draws random numbers. With a `seed` attribute each run draws the same numbers, with any
// number of threads; without one it draws others each time.
class RandomSeed {
 public:
  explicit RandomSeed(const ir::Node& node) {
    const ir::Attribute* given = node.attribute("seed");
    if (!given) return;
    fixed_ = given->kind == ir::AttributeKind::int_ ? static_cast<uint64_t>(node.int_attribute("seed", 0))
                                                    : std::bit_cast<uint32_t>(node.float_attribute("seed", 0));
  }

  kernels::RandomNumbers numbers() const { return kernels::RandomNumbers(fixed_ ? *fixed_ : kernels::fresh_seed()); }

 private:
  std::optional<uint64_t> fixed_;
};

}  // namespace tenon::ops
