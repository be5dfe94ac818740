// What a node looks like when its images are in blocked layout: [N, C / block, H, W, block].
#pragma once

#include <vector>

#include "passes/editor.h"

namespace tenon::passes {

class BlockedNodes {
 public:
  BlockedNodes(Editor& editor, int64_t block) : editor_(editor), block_(block) {}

  // Whether the node can compute on blocked images.
  bool can_be_blocked(const ir::Node& node);
  // Which of its inputs are blocked then. Others stay as they are, or are constants.
  std::vector<size_t> image_inputs(const ir::Node& node);
  // Whether it is a convolution whose weights are constants, and blocked or plain ones.
  bool is_conv(const ir::Node& node) const;
  // Of such a convolution: it reads an image whose channels do not fill blocks.
  bool reads_plain(const ir::Node& node);

  // The node, reading these in place of its image inputs.
  ir::Node& add(Patch& patch, const ir::Node& node, const std::vector<ir::Value*>& images);

 private:
  bool is_image(const ir::Value* value);
  bool is_per_channel(const ir::Value* value, int64_t channels);
  bool can_conv_be_blocked(const ir::Node& node);
  bool can_elementwise_be_blocked(const ir::Node& node);
  std::vector<int64_t> split_sizes(const ir::Node& node);

  Editor& editor_;
  int64_t block_;
};

// The size of an axis of images, for estimates. Where only a run knows it: one image, neither small nor large.
double likely_size(const SymbolicShape& images, size_t axis);

// Whether the window is one that Winograd's algorithm takes: 3 by 3, each pixel and its neighbours, one group.
bool has_winograd_window(const ir::Node& conv, const Tensor& weights);

}  // namespace tenon::passes
