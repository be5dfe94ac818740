// What the passes share that move constants into the weights of Conv, ConvTranspose, Gemm and MatMul. They write the
// new weights as nodes on constants, which fold-constants then computes.
#pragma once

#include "passes/editor.h"

namespace tenon::passes {

// How many channels (columns, for Gemm and MatMul) the node makes, if its weights and bias are constants and the
// weights can be scaled per channel; else 0.
int64_t output_channels(const ir::Node& linear);
// The rank of what it makes; -1 when it is not known.
int output_rank(Editor& editor, const ir::Node& linear);
// The bias; null when there is none, or none yet.
ir::Value* linear_bias(const ir::Node& linear);

// Whether the value is a constant of one number, or of one per channel of what the node makes, and does not change the
// shape when it is combined with that.
bool is_per_channel(Editor& editor, const ir::Value* value, const ir::Node& linear);
// Its numbers as a list.
ir::Value* as_list(Patch& patch, const ir::Value* value);

// The weights times a list of one number, or of one per channel.
ir::Value* scaled_weights(Patch& patch, const ir::Node& linear, ir::Value* scale);
// The node's output with other weights and another bias, null for none; a list of one per channel. A MatMul with a bias
// becomes a Gemm, which needs matrices.
ir::Value* with_weights(Patch& patch, const ir::Node& linear, ir::Value* weights, ir::Value* bias);

// Whether it is a BatchNormalization, not of training, of so many channels with constants of this type.
bool is_constant_batch_norm(const ir::Node& node, int64_t channels, ElementType type);
// What it multiplies each channel by, and what it adds then where a bias, null for none, was added to its input.
ir::Value* batch_norm_scale(Patch& patch, const ir::Node& norm);
ir::Value* batch_norm_shift(Patch& patch, const ir::Node& norm, ir::Value* scale, ir::Value* bias);

}  // namespace tenon::passes
