#include "tools/quantize/division.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "passes/min_cut.h"

namespace tenon::tools {
namespace {

using passes::MinCut;

int64_t picoseconds(double seconds) {
  return static_cast<int64_t>(std::clamp(seconds * 1e12, 0.0, static_cast<double>(MinCut::forbidden)));
}

}  // namespace

std::set<size_t> cheapest_floats(const Plan& plan, const std::function<NodeCosts(size_t)>& costs, double price_of_loss,
                                 double seconds_per_element,
                                 const std::function<int64_t(const ir::Value&)>& elements_of) {
  const auto& entries = plan.entries();
  MinCut cut;  // what computes on codes is on the first side
  std::vector<int> things;
  std::unordered_map<const ir::Value*, int> makers;
  for (size_t i = 0; i < entries.size(); ++i) {
    const int thing = cut.add();
    things.push_back(thing);
    const NodeCosts cost = costs(i);
    const bool may_be_codes = plan.is_quantized(*entries[i].node);
    cut.price(MinCut::first, thing, picoseconds(cost.float_seconds));
    cut.price(thing, MinCut::second,
              may_be_codes ? picoseconds(cost.code_seconds + price_of_loss * cost.loss) : MinCut::forbidden);
    for (const ir::Value* input : entries[i].node->inputs()) {
      const auto maker = makers.find(input);
      if (maker == makers.end() || !plan.is_float(input)) continue;
      const int64_t border = picoseconds(seconds_per_element * static_cast<double>(elements_of(*input)));
      cut.price(thing, maker->second, border);
      cut.price(maker->second, thing, border);
    }
    for (const ir::Value* output : entries[i].node->outputs()) makers[output] = thing;
  }
  const std::vector<bool> on_codes = cut.solve();
  std::set<size_t> floats;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool is_unit_of_codes = is_unit(entries[i].role) && entries[i].is_quantized;
    if (is_unit_of_codes && !on_codes[static_cast<size_t>(things[i])]) floats.insert(i);
  }
  return floats;
}

}  // namespace tenon::tools
