// Which nodes compute on images whose channels come last, and as what.
#pragma once

#include <memory>

#include "passes/optimize/layout_choice.h"

namespace tenon::passes {

class ChannelsLastRules : public LayoutRules {
 public:
  // The node, reading these in place of its image inputs.
  virtual ir::Node& add(Patch& patch, const ir::Node& node, const std::vector<ir::Value*>& images) = 0;
};

// Images of floats, for a device.
std::unique_ptr<ChannelsLastRules> channels_last_on_device(Editor& editor);

}  // namespace tenon::passes
