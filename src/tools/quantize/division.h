// Which products compute on codes, and which in float, when changing from one to the other takes time.
#pragma once

#include <functional>
#include <set>

#include "tools/quantize/plan.h"

namespace tenon::tools {

// What a node takes in float and on codes, and what quantizing it alone costs of the budget.
struct NodeCosts {
  double float_seconds = 0, code_seconds = 0, loss = 0;
};

// The products, by number, that stay float where seconds + price_of_loss * loss are fewest. Making codes of a number or
// a number of a code takes `seconds_per_element`.
std::set<size_t> cheapest_floats(const Plan& plan, const std::function<NodeCosts(size_t)>& costs, double price_of_loss,
                                 double seconds_per_element,
                                 const std::function<int64_t(const ir::Value&)>& elements_of);

}  // namespace tenon::tools
