// What the passes share that move constants into the weights of Conv, ConvTranspose, Gemm and MatMul. They write the
// new weights as nodes on constants, which fold-constants then computes.
#pragma once

#include "passes/editor.h"

namespace tenon::passes {

// Whether the value is a constant of one number, or of one per channel of a tensor of rank `rank` whose channels, on
// `axis`, are `channels` many: all its other sizes are 1, and combined with that tensor it keeps the tensor's shape.
bool is_per_channel(const ir::Value* value, int rank, int axis, int64_t channels);

// The value, which is_per_channel, with its numbers on `axis` of `rank` axes.
ir::Value* on_axis(Patch& patch, ir::Value* value, int rank, int axis);

// How many channels a Conv or ConvTranspose with constant weights makes; 0 if that is not known, or if its weights
// cannot be scaled per channel.
int64_t output_channels(const ir::Node& conv);
// The axis of the weights that is the channels of the output.
int weight_axis(const ir::Node& conv);

}  // namespace tenon::passes
