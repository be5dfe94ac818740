// What a node looks like when its images are in blocked layout: [N, C / block rounded up, H, W, block].
#pragma once

#include <optional>
#include <vector>

#include "ops/blocked/blocked.h"
#include "passes/editor.h"

namespace tenon::passes {

class BlockedNodes {
 public:
  // Of images of this type, which is float32 or float16.
  BlockedNodes(Editor& editor, ElementType type, int64_t block) : editor_(editor), type_(type), block_(block) {}

  // Whether the node can compute on blocked images.
  bool can_be_blocked(const ir::Node& node);
  // Which of its inputs are blocked then. Others stay as they are, or are constants.
  std::vector<size_t> image_inputs(const ir::Node& node);
  // Whether it is a convolution whose weights are constants, and blocked or plain ones.
  bool is_conv(const ir::Node& node) const;
  // Whether it is a transposed one like that.
  bool is_conv_transpose(const ir::Node& node) const;
  // Of a convolution: it reads an image that is not blocked.
  bool reads_plain(const ir::Node& node);
  // The channels of an image that can be blocked.
  int64_t channels_of(const ir::Value& image);
  // Whether it is a convolution of more than one group, and each channel is one.
  static bool is_depthwise(const ir::Node& conv);
  // The groups of one, as blocks have them; nullopt where they cannot.
  std::optional<ops::BlockedGroups> groups_of(const ir::Node& conv) const;
  // How many channels the blocks of so many hold.
  int64_t filled_up(int64_t channels) const { return (channels + block_ - 1) / block_ * block_; }

  // The node, reading these in place of its image inputs.
  ir::Node& add(Patch& patch, const ir::Node& node, const std::vector<ir::Value*>& images);

 private:
  bool is_image(const ir::Value* value);
  bool fills_blocks(const ir::Value* value);
  bool is_mean_of_channels(const ir::Node& node);
  bool is_per_channel(const ir::Value* value, int64_t channels);
  bool can_conv_be_blocked(const ir::Node& node);
  bool can_conv_transpose_be_blocked(const ir::Node& node);
  bool can_elementwise_be_blocked(const ir::Node& node);
  bool can_concat_be_blocked(const ir::Node& node);
  ir::Value* blocked_constant(Patch& patch, ir::Value* value, float filling);
  std::vector<int64_t> split_sizes(const ir::Node& node);

  Editor& editor_;
  ElementType type_;
  int64_t block_;
};

// Of kinds that blocked layouts have.
bool is_pool(const ir::Node& node);

// Whether the window is one that Winograd's algorithm takes: 3 by 3, of every pixel, of one group or wide ones.
bool has_winograd_window(const ir::Node& conv, const Tensor& weights);

}  // namespace tenon::passes
