#include "passes/optimize/layout_choice.h"

#include <algorithm>

namespace tenon::passes {

double likely_size(const SymbolicShape& images, size_t axis) {
  const int64_t assumed = axis == 0 ? 1 : 56;
  const auto size = images[axis].evaluate([&](const std::string&) { return assumed; });
  return static_cast<double>(std::max<int64_t>(0, size.value_or(assumed)));
}

double likely_elements(const SymbolicShape& shape) {
  double total = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) total *= likely_size(shape, axis);
  return total;
}

LayoutChoice::LayoutChoice(Editor& editor, LayoutRules& rules, ir::Graph& graph)
    : editor_(editor), rules_(rules), graph_(graph) {
  bool any = false;
  for (ir::Node& node : graph.nodes()) {
    if (!rules_.can_change(node)) continue;
    candidates_[&node] = cut_.add();
    any = any || rules_.is_reason(node);
  }
  if (!any) candidates_.clear();
}

std::vector<ir::Node*> LayoutChoice::nodes() {
  if (candidates_.empty()) return {};
  std::unordered_map<ir::Value*, std::vector<int>> readers;  // those that want a value changed
  std::vector<ir::Value*> values;                            // all of them, in the graph's order
  const auto readers_of = [&](ir::Value* value) -> std::vector<int>& {
    const auto [found, is_new] = readers.try_emplace(value);
    if (is_new) values.push_back(value);
    return found->second;
  };
  for (ir::Node& node : graph_.nodes()) {
    const auto found = candidates_.find(&node);
    if (found == candidates_.end()) continue;
    const double gain = rules_.gain(node);
    if (gain > 0)
      cut_.price(MinCut::first, found->second, static_cast<int64_t>(gain));
    else if (gain < 0)
      cut_.price(found->second, MinCut::second, static_cast<int64_t>(-gain));
    for (size_t i : rules_.image_inputs(node)) readers_of(node.input(i)).push_back(found->second);
    for (ir::Value* output : node.outputs()) readers_of(output);
  }
  for (ir::Value* value : values) add_conversions(*value, readers[value]);
  const std::vector<bool> is_changed = cut_.solve();
  std::vector<ir::Node*> result;
  for (ir::Node& node : graph_.nodes()) {
    const auto found = candidates_.find(&node);
    if (found != candidates_.end() && is_changed[static_cast<size_t>(found->second)]) result.push_back(&node);
  }
  return result;
}

// The prices of having a value in another layout than those who read it want.
void LayoutChoice::add_conversions(ir::Value& value, const std::vector<int>& readers) {
  const auto price = static_cast<int64_t>(rules_.conversion(value));
  const auto made = value.producer() ? candidates_.find(value.producer()) : candidates_.end();
  const int maker = made == candidates_.end() ? MinCut::second : made->second;
  if (!readers.empty()) {
    const int changed = cut_.add();
    for (int reader : readers) cut_.price(reader, changed, MinCut::forbidden);
    cut_.price(changed, maker, price);
  }
  if (maker == MinCut::second) return;
  if (is_read_as_it_is(value)) return cut_.price(maker, MinCut::second, price);
  const int unchanged = cut_.add();
  cut_.price(maker, unchanged, price);
  for (int reader : readers) cut_.price(unchanged, reader, MinCut::forbidden);
}

// Whether something needs the value in the layout it has, whatever is chosen.
bool LayoutChoice::is_read_as_it_is(ir::Value& value) {
  if (editor_.is_pinned(value)) return true;
  for (ir::Node* user : value.users()) {
    if (!candidates_.contains(user)) return true;
    bool is_image = false;
    for (size_t i : rules_.image_inputs(*user)) is_image = is_image || user->input(i) == &value;
    if (!is_image) return true;
  }
  return false;
}

}  // namespace tenon::passes
