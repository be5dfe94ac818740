#include "session/stages.h"

#include <algorithm>
#include <numeric>

#include "base/index.h"
#include "ops/cost.h"

namespace tenon {
namespace {

// What a thread does in the time that it takes to hand work to other threads and to wait for the last of them.
constexpr double handover = 100'000;

// nullopt: unknown.
std::optional<double> work_of(const Step& step, const ShapeResolver& shapes) {
  std::vector<ops::CostTensor> tensors;
  auto describe = [&](std::span<const int> slots) {
    for (int slot : slots) {
      tensors.emplace_back();
      if (slot < 0) continue;
      const ir::Type& type = shapes.slot(slot).fact.type;
      if (type.is_tensor()) tensors.back() = {type.element, type.shape ? &*type.shape : nullptr};
    }
  };
  describe({step.inputs.data(), step.inputs.size()});
  describe({step.outputs.data(), step.outputs.size()});
  const std::span<const ops::CostTensor> all = tensors;
  try {
    const auto cost = ops::cost_of(*step.node, all.first(step.inputs.size()), all.subspan(step.inputs.size()));
    if (!cost || !cost->flops.is_known() || !cost->bytes.is_known()) return std::nullopt;
    return static_cast<double>(cost->flops.value()) + static_cast<double>(cost->bytes.value());
  } catch (const Error&) {
    return std::nullopt;  // more than can be counted
  }
}

// For each item, how many others at least run before it, one after the other; of a view, as of what it is a part of.
std::vector<int> find_levels(const std::vector<Plan::Item>& items, const std::vector<bool>& is_view,
                             const Program& program) {
  std::vector<int> levels,
      made_before(static_cast<size_t>(program.slot_count()));  // by slot: the first level that may read it
  for (size_t i = 0; i < items.size(); ++i) {
    const Step& step = at(program.steps(), items[i].step);
    int level = 0;
    each_read(step, [&](int slot) { level = std::max(level, at(made_before, slot)); });
    if (is_view[i]) --level;
    levels.push_back(level);
    for (int slot : step.outputs) {
      if (slot >= 0) at(made_before, slot) = level + 1;
    }
  }
  return levels;
}

}  // namespace

bool is_worth_side_by_side(std::vector<double> work, int threads) {
  if (work.size() < 2 || threads < 2) return false;
  // Each step goes to the thread that is free first, the largest before the others.
  std::ranges::sort(work, std::ranges::greater{});
  std::vector<double> busy(std::min(static_cast<size_t>(threads), work.size()));
  double in_turn = 0;
  for (double one : work) {
    *std::ranges::min_element(busy) += one;
    in_turn += std::min(one, one / threads + handover);
  }
  return *std::ranges::max_element(busy) + handover <= in_turn;
}

std::vector<int> arrange_stages(std::vector<Plan::Item>& items, const std::vector<bool>& is_view,
                                const Program& program, const ShapeResolver& shapes, int threads) {
  const std::vector<int> levels = find_levels(items, is_view, program);
  std::vector<std::optional<double>> work(items.size());  // of those that may run beside others
  std::vector<int> order(items.size()), stages;
  for (size_t i = 0; i < items.size(); ++i) {
    order[i] = static_cast<int>(i);
    if (items[i].is_placed && !items[i].needs_check && !is_view[i])
      work[i] = work_of(at(program.steps(), items[i].step), shapes);
  }
  // In a level, those that may run side by side come first, the largest before the others: so none is left for the end.
  std::ranges::stable_sort(order, [&](int a, int b) {
    return std::pair(at(levels, a), -at(work, a).value_or(-1)) < std::pair(at(levels, b), -at(work, b).value_or(-1));
  });

  int stage = 0;
  bool any = false;
  for (size_t first = 0, last; first < order.size(); first = last) {
    std::vector<double> together;
    for (last = first; last < order.size() && at(levels, order[last]) == at(levels, order[first]); ++last) {
      if (at(work, order[last])) together.push_back(*at(work, order[last]));
    }
    const bool is_worth = is_worth_side_by_side(together, threads);
    any |= is_worth;
    for (size_t i = first; i < last; ++i) {
      const bool joins = is_worth && i > first && i - first < together.size();
      stages.push_back(joins ? stage : ++stage);
    }
  }
  if (!any) return {};
  std::vector<Plan::Item> arranged;
  arranged.reserve(items.size());
  for (int i : order) arranged.push_back(std::move(at(items, i)));
  items = std::move(arranged);
  return stages;
}

}  // namespace tenon
