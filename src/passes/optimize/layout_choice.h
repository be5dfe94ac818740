// Which nodes of a graph should compute in another layout of images.
#pragma once

#include <unordered_map>
#include <vector>

#include "passes/editor.h"
#include "passes/min_cut.h"

namespace tenon::passes {

// What differs between layouts. Prices are in picoseconds.
class LayoutRules {
 public:
  virtual ~LayoutRules() = default;
  // Whether the node can compute in the other layout.
  virtual bool can_change(const ir::Node& node) = 0;
  // Whether it is a reason to change the layout at all.
  virtual bool is_reason(const ir::Node& node) = 0;
  // Which of its inputs are images in the other layout then.
  virtual std::vector<size_t> image_inputs(const ir::Node& node) = 0;
  // What the node gains by the other layout, or loses.
  virtual double gain(const ir::Node& node) = 0;
  // What it costs to change the layout of a value.
  virtual double conversion(const ir::Value& value) = 0;
};

// Some nodes gain, changes of layout between nodes cost, and the cheapest division of the graph wins.
class LayoutChoice {
 public:
  LayoutChoice(Editor& editor, LayoutRules& rules, ir::Graph& graph);
  // Those that should change, in the graph's order.
  std::vector<ir::Node*> nodes();

 private:
  void add_conversions(ir::Value& value, const std::vector<int>& readers);
  bool is_read_as_it_is(ir::Value& value);

  Editor& editor_;
  LayoutRules& rules_;
  ir::Graph& graph_;
  MinCut cut_;
  std::unordered_map<ir::Node*, int> candidates_;
};

// The size of an axis of images, for estimates. Where only a run knows it: one image, neither small nor large.
double likely_size(const SymbolicShape& images, size_t axis);
// The product of them all.
double likely_elements(const SymbolicShape& shape);

}  // namespace tenon::passes
