#pragma once

#include <span>

#include "provider/provider.h"

namespace tenon {

// The outputs of a node whose inputs are all constants, computed by the first provider that runs it. Throws Error when
// none does, or when the node fails.
std::vector<Value> evaluate(const ir::Node& node, std::span<const Provider* const> providers, ThreadPool& threads,
                            Allocator& allocator);

}  // namespace tenon
