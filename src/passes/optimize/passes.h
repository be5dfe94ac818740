// The optimiser's passes. What they do is said in the list in passes/optimizer.cc.
#pragma once

#include "passes/editor.h"

namespace tenon::passes {

// Each is called with every node of every graph, in order.
void add_bias_to_matmul(Editor& editor, ir::Node& node);
void add_to_bias(Editor& editor, ir::Node& node);
void average_first(Editor& editor, ir::Node& node);
void cancel_transposes(Editor& editor, ir::Node& node);
void fold_batch_norm(Editor& editor, ir::Node& node);
void fold_constants(Editor& editor, ir::Node& node);
void fold_reshape_targets(Editor& editor, ir::Node& node);
void compute_in_integers(Editor& editor, ir::Node& node);
void fuse_attention(Editor& editor, ir::Node& node);
void fuse_attention_cache(Editor& editor, ir::Node& node);
void fuse_batch_norm_activation(Editor& editor, ir::Node& node);
void fuse_conv_epilogue(Editor& editor, ir::Node& node);
void fuse_gelu(Editor& editor, ir::Node& node);
void fuse_group_norm(Editor& editor, ir::Node& node);
void fuse_hard_swish(Editor& editor, ir::Node& node);
void fuse_layer_norm(Editor& editor, ir::Node& node);
void fuse_matmul_epilogue(Editor& editor, ir::Node& node);
void fuse_max_pool(Editor& editor, ir::Node& node);
void fuse_mish(Editor& editor, ir::Node& node);
void fuse_rms_norm(Editor& editor, ir::Node& node);
void fuse_rotary_embedding(Editor& editor, ir::Node& node);
void fuse_skip_norm(Editor& editor, ir::Node& node);
void fuse_swish(Editor& editor, ir::Node& node);
void fuse_tanh_gelu(Editor& editor, ir::Node& node);
void inline_constant_if(Editor& editor, ir::Node& node);
void join_splits(Editor& editor, ir::Node& node);
void merge_casts(Editor& editor, ir::Node& node);
void make_codes_of_halves(Editor& editor, ir::Node& node);
void merge_concats(Editor& editor, ir::Node& node);
void merge_moves(Editor& editor, ir::Node& node);
void merge_parallel_convs(Editor& editor, ir::Node& node);
void merge_pads(Editor& editor, ir::Node& node);
void drop_unread_taps(Editor& editor, ir::Node& node);
void merge_reshapes(Editor& editor, ir::Node& node);
void merge_slices(Editor& editor, ir::Node& node);
void gather_along_axes(Editor& editor, ir::Node& node);
void fill_boxes(Editor& editor, ir::Node& node);
void merge_transposes(Editor& editor, ir::Node& node);
void move_whole_blocks(Editor& editor, ir::Node& node);
void multiply_patches(Editor& editor, ir::Node& node);
void pack_attention(Editor& editor, ir::Node& node);
void reduce_without_transpose(Editor& editor, ir::Node& node);
void remove_flatten_around_softmax(Editor& editor, ir::Node& node);
void remove_identities(Editor& editor, ir::Node& node);
void remove_no_ops(Editor& editor, ir::Node& node);
void remove_sums_with_zero(Editor& editor, ir::Node& node);
void leave_out_zero_states(Editor& editor, ir::Node& node);
void scale_weights(Editor& editor, ir::Node& node);
void sink_transposes(Editor& editor, ir::Node& node);
void transpose_in_gemm(Editor& editor, ir::Node& node);
void transpose_in_matmul(Editor& editor, ir::Node& node);
void transpose_weights(Editor& editor, ir::Node& node);
void use_packed_weights(Editor& editor, ir::Node& node);

// Each is called with every graph, outer ones first.
void fuse_elementwise(Editor& editor, ir::Graph& graph);
void grow_concats(Editor& editor, ir::Graph& graph);
void merge_common_subexpressions(Editor& editor, ir::Graph& graph);
void remove_dead_code(Editor& editor, ir::Graph& graph);
void use_blocked_layout(Editor& editor, ir::Graph& graph);
void use_channels_last(Editor& editor, ir::Graph& graph);
void use_winograd(Editor& editor, ir::Graph& graph);

// Whether it is a Reshape, Flatten, Squeeze or Unsqueeze.
bool only_changes_shape(const ir::Node& node);
// Whether the shape that such a node makes was computed from its inputs, not merely declared by the model.
bool shape_is_computed(Editor& editor, const ir::Node& node);
// The axes of `to`, all of size 1, that are all it has more than `from`; nullopt when there is another difference.
std::optional<std::vector<int64_t>> added_axes(const SymbolicShape* from, const SymbolicShape* to);

}  // namespace tenon::passes
