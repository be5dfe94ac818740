"""CUDA kernels on sizes that the ONNX suite does not have, beside the CPU's: rows that one warp, several or many blocks share, lines too
long to be sorted at once, attention by streams, tiles, products and tensor cores. The stand-in for NVIDIA's libraries (tests/cuda) runs them."""
import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

F, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
TF32 = "float that may be rounded to TF32"
TOLERANCES = {F: "1e-4", F16: "2e-3", BF16: "1.6e-2", TF32: "2e-3"}  # of the narrow ones: two steps of the largest number


def ints(*values):
    return np.array(values, np.int64)


def numbers(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def attention(heads, kv_heads, queries, keys, size, past=0, **attributes):
    shapes = [[2, heads, queries, size], [2, kv_heads, keys, size], [2, kv_heads, keys, size]]
    inputs = [*shapes, None, *[[2, kv_heads, past, size]] * 2] if past else shapes
    return "Attention", inputs, attributes


def fused(kind, heads, kv_heads, queries, keys, size, past=0, v_size=None, flat=False, mask=None, lengths=None, **attributes):
    """Attention by tensor cores: of F16, BF16 or TF32. A mask of numbers has the type of the queries."""
    v_size = v_size or size
    if flat:
        inputs = [[2, queries, heads * size], [2, keys, kv_heads * size], [2, keys, kv_heads * v_size]]
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    else:
        inputs = [[2, heads, queries, size], [2, kv_heads, keys, size], [2, kv_heads, keys, v_size]]
    inputs += [mask, *([[2, kv_heads, past, size], [2, kv_heads, past, v_size]] if past else [None, None]), lengths]
    while inputs[-1] is None:
        inputs.pop()
    return "Attention", inputs, attributes, kind


def hidden(*shape):
    """A mask that hides half of the keys, and all of the first query's."""
    mask = np.random.default_rng(2).random(size=shape) < 0.5
    mask[..., 0, :] = False
    return mask


def halves(*shape):
    return (numbers(*shape) / 8).astype(np.float16)


def of_kind(kind, *shape):
    """Small numbers, as constants."""
    if kind in (F, TF32):
        return numbers(*shape) / 8
    return bfloat16(halves(*shape)) if kind == BF16 else halves(*shape)


def pixels(shape, outputs, residual=False, kind=F16, **attributes):
    """A 1x1 convolution of an image whose channels come last."""
    weights, bias = [of_kind(kind, outputs, 1, 1, shape[-1]), of_kind(kind, outputs)]
    inputs = [shape, weights, bias] + ([[*shape[:-1], outputs]] if residual else [])
    return "ChannelsLastConv", inputs, attributes, kind


def bfloat16(values):
    return helper.make_tensor("", BF16, values.shape, values.astype(np.float32).flatten())


def depthwise(shape, kernel, stride=1, pads=None, kind=F16, **attributes):
    channels, pads = shape[-1], pads or [kernel // 2] * 4
    weights, bias = of_kind(kind, channels, kernel, kernel, 1), of_kind(kind, channels)
    return "ChannelsLastConv", [shape, weights, bias], {"group": channels, "strides": [stride] * 2, "pads": pads, **attributes}, kind


def first_conv(shape, outputs, kernel, pads, strides=(2, 2), kind=F16, **attributes):
    inputs = [shape, of_kind(kind, outputs, *kernel, shape[-1]), of_kind(kind, outputs)]
    return "ChannelsLastConv", inputs, {"strides": list(strides), "pads": pads, **attributes}, kind


def windows(shape, outputs, kernel, pads, kind=F16, residual=None, **attributes):
    """A convolution by groups of warps. Weights are small, as many of them are added up."""
    weights, bias = [values / 4 for values in (halves(outputs, *kernel, shape[-1]), halves(outputs))]
    if kind == BF16:
        weights, bias = [bfloat16(values) for values in (weights, bias)]
    return "ChannelsLastConv", [shape, weights, bias] + ([residual] if residual else []), {"pads": pads, **attributes}, kind


def product(rows, depth, columns, kind=F16, transposed=False, residual=False, **attributes):
    """A product with a bias and what follows, by groups of warps."""
    weights, bias = of_kind(kind, *((columns, depth) if transposed else (depth, columns))), of_kind(kind, columns)
    inputs = [[*rows, depth], weights, bias] + ([[*rows, columns]] if residual else [])
    return "FusedMatMul", inputs, {"transB": int(transposed), **attributes}, kind


def floats(*values):
    return np.array(values, np.float32)


def small_boxes(*shape):
    """Of which some overlap, given by their centers or by their corners."""
    centers, sizes = np.random.default_rng(3).random(size=(2, *shape, 2)).astype(np.float32)
    return np.concatenate([centers, centers + sizes / 8], axis=-1)


# Operator, inputs (a shape is an input of the model, an array a constant, None is left out), attributes and, where that is not float, the type of
# the inputs.
CASES = {
    **{f"rows_of_{n}": ("ReduceSum", [[6, n], ints(1)], {}) for n in (3, 31, 65, 200, 300, 1030, 5000, 70000)},
    "columns": ("ReduceMax", [[700, 37], ints(0)], {}),
    "divided_columns": ("ReduceSum", [[9000, 5], ints(0)], {}),
    "both_ends": ("ReduceMean", [[3, 130, 5, 33], ints(0, 2)], {}),
    "all": ("ReduceLogSumExp", [[300, 700]], {}),
    "argmax_rows": ("ArgMax", [[4, 9000]], {"axis": 1}),
    "argmin_columns": ("ArgMin", [[4, 500, 9]], {"axis": 1}),
    "softmax_many": ("Softmax", [[1100, 300]], {"axis": -1}),
    "softmax_columns": ("Softmax", [[3, 130, 17]], {"axis": 1}),
    "softmax_long": ("LogSoftmax", [[2, 40000]], {"axis": -1}),
    "layer_norm_two_warps": ("LayerNormalization", [[6, 200], numbers(200), numbers(200)], {}),
    "layer_norm_broadcast": ("LayerNormalization", [[4, 6, 40], numbers(6, 1), numbers(4, 1, 40)], {}),
    "layer_norm_packs": ("LayerNormalization", [[1030, 72], numbers(72), numbers(72)], {}),
    "layer_norm_two_axes": ("LayerNormalization", [[5, 12, 90], numbers(12, 90), numbers(12, 90)], {"axis": 1}),
    "layer_norm_float16": ("LayerNormalization", [[3, 768], numbers(768).astype(np.float16), numbers(768).astype(np.float16)], {}, F16),
    "layer_norm_warps": ("LayerNormalization", [[1030, 1540], numbers(1540), numbers(1540)], {}),
    "softmax_float16": ("Softmax", [[1040, 328]], {"axis": -1}, F16),
    "softmax_pairs": ("Softmax", [[7, 130]], {"axis": -1}, BF16),
    "log_softmax_packs": ("LogSoftmax", [[7, 1000]], {"axis": -1}),
    "hardmax_packs": ("Hardmax", [[7, 1000]], {"axis": -1}),
    "lp_norm_packs": ("LpNormalization", [[7, 1000]], {"axis": -1}),
    "instance_norm": ("InstanceNormalization", [[2, 5, 12, 12], numbers(5), numbers(5)], {}),
    "mean_variance_norm": ("MeanVarianceNormalization", [[3, 5, 8, 12]], {"axes": [2, 3]}),
    "rms_norm_long": ("RMSNormalization", [[2, 50000], numbers(50000)], {}),
    "group_norm": ("GroupNormalization", [[3, 6, 19, 19], numbers(6), numbers(6)], {"num_groups": 2}),
    "max_pool": ("MaxPool", [[2, 3, 17, 19]], {"kernel_shape": [3, 2], "strides": [2, 3], "dilations": [2, 1], "ceil_mode": 1}),
    "average_pool": ("AveragePool", [[2, 3, 17, 19]],
                     {"kernel_shape": [4, 4], "strides": [3, 3], "pads": [1, 2, 2, 1], "dilations": [2, 2], "ceil_mode": 1,
                      "count_include_pad": 1}),
    "resize_smooth": ("Resize", [[2, 3, 19, 21], None, None, ints(2, 3, 7, 5)], {"mode": "cubic", "antialias": 1}),
    "cumsum_row": ("CumSum", [[3, 3000], np.array(1)], {"exclusive": 1, "reverse": 1}),
    "cumsum_columns": ("CumSum", [[3, 40, 50], np.array(1)], {}),
    "top_k_sorted": ("TopK", [[5, 2000], ints(50)], {}),
    "top_k_selected": ("TopK", [[2, 5000, 3], ints(33)], {"axis": 1, "largest": 0}),
    "top_k_of_most": ("TopK", [[2, 3000], ints(2500)], {}),
    "attention_streams": attention(8, 2, 1, 1, 128, past=1000),
    "attention_odd": attention(4, 2, 2, 300, 33),
    "attention_tiles": attention(4, 2, 33, 90, 128, is_causal=1),
    "attention_large_heads": attention(2, 1, 33, 50, 200),
    "attention_products": attention(6, 2, 70, 70, 24, past=21, is_causal=1),
    "attention_window": attention(2, 2, 64, 300, 16, left_window_size=20, right_window_size=0, softcap=2.0),
    "fused_one_key": fused(F16, 2, 2, 17, 1, 8),
    "fused_flat": fused(F16, 4, 4, 197, 197, 64, flat=True),
    "fused_flat_bfloat16": fused(BF16, 4, 2, 65, 77, 80, flat=True),
    "fused_grouped": fused(BF16, 4, 1, 64, 129, 128, is_causal=1),
    "fused_causal_past": fused(F16, 4, 2, 150, 150, 40, past=21, is_causal=1),
    "fused_window": fused(F16, 4, 4, 140, 200, 16, left_window_size=20, right_window_size=3, softcap=2.0),
    "fused_odd_sizes": fused(F16, 3, 3, 33, 50, 13, v_size=37, past=7, flat=True),
    "fused_large_heads": fused(F16, 1, 1, 33, 50, 200, v_size=256),
    "fused_largest_heads": fused(BF16, 1, 1, 16, 40, 256, is_causal=1, mask=hidden(16, 40)),
    "fused_wide_values": fused(F16, 6, 2, 130, 40, 24, v_size=120),
    "fused_mask": fused(F16, 4, 4, 70, 90, 64, mask=numbers(1, 4, 70, 90).astype(np.float16)),
    "fused_short_mask": fused(F16, 2, 2, 70, 90, 32, mask=numbers(2, 1, 1, 71).astype(np.float16), is_causal=1),
    "fused_bool_mask": fused(BF16, 4, 2, 70, 90, 32, mask=hidden(2, 1, 70, 90)),
    "fused_lengths": fused(F16, 2, 2, 20, 90, 64, lengths=ints(3, 71), is_causal=1),
    "fused_tf32": fused(TF32, 4, 2, 130, 77, 64, past=30, is_causal=1),
    "fused_tf32_flat": fused(TF32, 2, 2, 65, 90, 80, flat=True, mask=numbers(2, 2, 65, 90)),
    "fused_tf32_odd_sizes": fused(TF32, 3, 3, 33, 50, 13, v_size=37, past=7, flat=True, softcap=3.0),
    "fused_tf32_large_heads": fused(TF32, 2, 1, 33, 50, 128, v_size=200, mask=hidden(33, 57), past=7),
    "fused_tf32_one_tile": fused(TF32, 2, 2, 197, 197, 64, flat=True),
    "fused_tf32_one_tile_odd": fused(TF32, 4, 1, 70, 37, 28, v_size=12, is_causal=1),
    "fused_tf32_one_tile_mask": fused(TF32, 4, 4, 65, 90, 32, v_size=64, mask=numbers(2, 4, 65, 90)),
    "fused_tf32_one_tile_columns": fused(TF32, 2, 2, 64, 128, 64, flat=True, mask=numbers(2, 1, 1, 128)),
    "fused_tf32_one_tile_bools": fused(TF32, 1, 1, 20, 33, 8, mask=hidden(20, 33), left_window_size=20, softcap=2.0),
    "fused_tf32_one_tile_lengths": fused(TF32, 2, 2, 130, 20, 64, lengths=ints(5, 0), is_causal=1),
    "fused_in_turns": fused(F16, 8, 8, 197, 100, 64, flat=True),
    "fused_tf32_two_groups": fused(TF32, 2, 2, 128, 128, 64, flat=True, mask=numbers(2, 1, 1, 128)),
    "fused_tf32_two_groups_uneven": fused(TF32, 4, 4, 65, 40, 64, lengths=ints(33, 0)),
    "fused_tf32_in_turns": fused(TF32, 12, 4, 200, 208, 64, is_causal=1),
    "fused_tf32_values_replace_keys": fused(TF32, 20, 20, 60, 208, 64),
    "fused_negative_scale": fused(F16, 2, 2, 20, 90, 64, scale=-0.3),
    "fused_several_tiles": fused(F16, 2, 2, 100, 300, 64),
    "fused_several_tiles_causal": fused(BF16, 2, 1, 230, 230, 96, v_size=32, is_causal=1),
    "fused_several_tiles_flat": fused(F16, 4, 2, 100, 300, 64, flat=True),
    "fused_several_tiles_window": fused(F16, 2, 2, 140, 400, 32, left_window_size=150, right_window_size=3, softcap=2.0),
    "fused_several_tiles_mask": fused(BF16, 2, 2, 70, 300, 128, mask=hidden(2, 1, 70, 300)),
    "fused_several_tiles_lengths": fused(F16, 2, 2, 20, 300, 64, lengths=ints(3, 271), is_causal=1),
    "fused_columns_hidden": fused(F16, 2, 2, 70, 300, 32, mask=numbers(2, 1, 1, 300).astype(np.float16)),
    "fused_columns_hidden_by_bools": fused(F16, 2, 2, 70, 90, 64, mask=np.random.default_rng(3).random((2, 1, 1, 90)) < 0.5, left_window_size=20),
    "fused_queries_that_see_nothing": fused(F16, 1, 1, 130, 20, 64, lengths=ints(5, 0), is_causal=1),
    "pixels": pixels([2, 9, 11, 24], 72, activation="HardSwish"),
    "pixels_residual": pixels([1, 13, 13, 200], 40, residual=True, activation="Relu"),
    "pixels_many_outputs": pixels([2, 5, 5, 16], 240),
    "pixels_one": pixels([3, 1, 1, 72], 8, activation="Sigmoid", kind=BF16),
    "pixels_of_many_channels": pixels([2, 9, 11, 264], 72, activation="HardSwish"),
    "pixels_of_many_tiles": pixels([2, 40, 41, 24], 120, activation="HardSwish"),
    "pixels_of_many_large_tiles": pixels([1, 91, 90, 16], 16, residual=True, kind=BF16),
    "pixels_of_wide_tiles": pixels([1, 24, 32, 112], 168, activation="HardSwish"),
    "pixels_of_many_parts": pixels([2, 20, 21, 112], 264, residual=True, activation="Relu"),
    "pixels_tf32": pixels([2, 9, 11, 24], 72, kind=TF32, activation="HardSwish"),
    "pixels_tf32_residual": pixels([1, 91, 90, 20], 16, residual=True, kind=TF32, activation="Relu"),
    "pixels_tf32_of_many_channels": pixels([1, 13, 13, 200], 40, residual=True, kind=TF32),
    "pixels_tf32_of_wide_tiles": pixels([1, 24, 32, 112], 168, kind=TF32, activation="HardSwish"),
    "pixels_tf32_of_many_parts": pixels([2, 20, 21, 132], 264, residual=True, kind=TF32),
    "product_gelu": product([300], 72, 264, activation="Gelu"),
    "product_transposed": product([2, 190], 136, 200, kind=BF16, transposed=True, residual=True, activation="Swish"),
    "product_of_many_tiles": product([600], 72, 264, residual=True, activation="Gelu"),
    "product_of_many_narrow_tiles": product([1510], 40, 56, kind=BF16, transposed=True),
    "product_of_many_pieces": product([520], 520, 136, residual=True),
    "product_of_few_tiles": product([3, 20], 200, 40, activation="Gelu"),
    "product_of_few_tiles_transposed": product([130], 64, 72, transposed=True, residual=True, activation="HardSwish"),
    "product_of_given_matrices": ("FusedMatMul", [[300, 72], [72, 264]], {}, F16),
    "product_of_a_row": ("FusedMatMul", [[1, 200], numbers(200, 72), numbers(72), [1, 72]], {"activation": "Gelu"}),
    "product_of_rows_transposed": product([2, 2], 200, 43, kind=BF16, transposed=True, residual=True, activation="Swish"),
    "gemm_of_rows": ("Gemm", [[3, 40], halves(70, 40), halves(1, 70)], {"transB": 1}, F16),
    "depthwise": depthwise([2, 9, 11, 24], 3, activation="HardSwish"),
    "depthwise_stride": depthwise([1, 14, 15, 16], 5, stride=2),
    "depthwise_many_channels": depthwise([2, 17, 40, 136], 5, activation="Relu"),
    "depthwise_bfloat16": depthwise([1, 9, 9, 64], 3, stride=2, pads=[1, 0, 0, 1], kind=BF16),
    "depthwise_float": depthwise([2, 17, 40, 136], 5, kind=F, activation="HardSwish"),
    "depthwise_float_stride": depthwise([1, 15, 30, 40], 3, stride=2, pads=[1, 0, 0, 1], kind=F),
    "depthwise_uneven": depthwise([1, 5, 6, 13], 5, pads=[0, 3, 4, 1]),
    "first_conv": first_conv([2, 30, 41, 3], 24, (7, 7), [3, 3, 3, 3], activation="Relu"),
    "first_conv_small_window": first_conv([1, 13, 14, 3], 16, (3, 3), [1, 1, 1, 1], activation="HardSwish"),
    "first_conv_wide": first_conv([1, 9, 290, 4], 64, (2, 8), [0, 5, 1, 2], strides=(1, 2)),
    "first_conv_by_groups": first_conv([2, 30, 40, 3], 24, (7, 7), [3, 3, 3, 3], activation="Relu"),
    "first_conv_small_window_by_groups": first_conv([3, 13, 32, 3], 16, (3, 3), [1, 1, 1, 1], activation="HardSwish"),
    "first_conv_wide_by_groups": first_conv([1, 9, 296, 4], 64, (2, 8), [0, 5, 1, 2], strides=(1, 2)),
    "first_conv_one_channel_by_groups": first_conv([2, 17, 24, 1], 8, (5, 4), [0, 0, 0, 0]),
    "first_conv_tf32": first_conv([2, 30, 36, 3], 24, (7, 7), [3, 3, 3, 3], kind=TF32, activation="Relu"),
    "first_conv_tf32_small_window": first_conv([3, 13, 20, 3], 16, (3, 3), [1, 1, 1, 1], kind=TF32, activation="HardSwish"),
    "first_conv_tf32_wide": first_conv([1, 9, 292, 4], 64, (2, 8), [0, 5, 1, 2], strides=(1, 2), kind=TF32),
    "first_conv_tf32_one_channel": first_conv([2, 17, 28, 1], 8, (5, 4), [0, 0, 0, 0], kind=TF32),
    "first_conv_one_channel": first_conv([2, 16, 16, 1], 8, (5, 4), [0, 0, 0, 0]),
    "windows": windows([2, 14, 15, 64], 64, (3, 3), [1, 1, 1, 1], residual=[2, 14, 15, 64], activation="Relu"),
    "windows_of_many_tiles": windows([3, 21, 22, 16], 80, (3, 3), [1, 1, 1, 1], residual=[3, 21, 22, 80]),
    "windows_stride": windows([1, 15, 14, 72], 40, (3, 3), [1, 1, 1, 1], strides=[2, 2], residual=[1, 8, 7, 40], activation="HardSwish"),
    "windows_of_one_pixel": windows([3, 9, 8, 16], 136, (1, 1), [0, 0, 0, 0], kind=BF16, strides=[2, 2]),
    "windows_uneven": windows([2, 11, 9, 24], 48, (2, 5), [0, 3, 2, 1], strides=[1, 3], dilations=[3, 1]),
    "boxes": windows([3, 14, 15, 64], 64, (3, 3), [1, 1, 1, 1], activation="Relu"),
    "boxes_of_many_tiles": windows([9, 15, 30, 32], 40, (3, 3), [1, 1, 1, 1], kind=BF16, activation="HardSwish"),
    "boxes_of_many_channels": windows([2, 14, 14, 136], 200, (3, 3), [1, 1, 1, 1]),
    "boxes_of_wide_images": windows([1, 7, 290, 16], 24, (3, 3), [1, 1, 1, 1]),
    "boxes_of_many_outputs": windows([5, 17, 16, 64], 128, (3, 3), [1, 1, 1, 1], activation="Relu"),
    "select_few_boxes": ("NonMaxSuppression", [small_boxes(2, 50), [2, 3, 50], ints(7), floats(0.3), floats(0.2)], {}),
    "select_of_many_boxes": ("NonMaxSuppression", [small_boxes(1, 3300), [1, 2, 3300], ints(3300), floats(0.3)], {}),
    "select_up_to_a_limit": ("NonMaxSuppression", [small_boxes(1, 1600), [1, 2, 1600], ints(600), floats(0.5), floats(-1)], {}),
    "select_among_equals": ("NonMaxSuppression", [[1, 2049, 4], numbers(1, 1, 2049).round(1), ints(2049), floats(0.1)], {"center_point_box": 1}),
    "boxes_whose_weights_follow": windows([3, 20, 21, 136], 40, (3, 3), [1, 1, 1, 1], activation="Relu"),
    "boxes_uneven": windows([2, 11, 9, 24], 72, (2, 5), [0, 3, 2, 1]),
    "boxes_of_columns": windows([2, 9, 13, 200], 56, (5, 1), [4, 0, 0, 2]),
    "boxes_of_long_lines": windows([4, 1, 256, 16], 24, (1, 3), [0, 1, 0, 1]),
    "boxes_of_given_weights": ("ChannelsLastConv", [[2, 14, 15, 16], [24, 3, 3, 16]], {"pads": [1, 1, 1, 1]}, F16),
    "channels_last_max_pool": ("ChannelsLastMaxPool", [[2, 17, 19, 24]], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, F16),
    "channels_last_max_pool_bfloat16": ("ChannelsLastMaxPool", [[1, 9, 8, 6]], {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]}, BF16),
    "channels_last_max_pool_odd": ("ChannelsLastMaxPool", [[1, 9, 8, 5]], {"kernel_shape": [2, 3], "pads": [1, 1, 0, 1]}, F16),
    "channels_last_large_pool": ("ChannelsLastAveragePool", [[2, 17, 19, 3]],
                                 {"kernel_shape": [6, 5], "strides": [2, 3], "pads": [2, 1, 3, 4], "dilations": [2, 1], "count_include_pad": 1}, F16),
    "channels_last_average_pool": ("ChannelsLastAveragePool", [[2, 9, 9, 16]], {"kernel_shape": [3, 2], "pads": [1, 1, 1, 1]}, F16),
    "planes_side_by_side": ("Transpose", [[2, 3, 8, 10]], {"perm": [0, 2, 3, 1]}, F16),
    "planes_of_floats": ("Transpose", [[5, 12]], {"perm": [1, 0]}),
}
# Convolutions in full precision as products of patches, also in several parts of an image or a batch. The stand-in has no other way.
CASES |= {
    "patches": ("Conv", [[3, 5, 13, 14], [7, 5, 3, 3]], {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
    "patches_plain": ("Conv", [[2, 24, 7, 9], [20, 24, 1, 1], [20]], {}),
    "patches_of_one_pixel_in_four": ("Conv", [[2, 24, 7, 9], [20, 24, 1, 1]], {"strides": [2, 2]}),
    "patches_of_lines": ("Conv", [[2, 6, 50], [9, 6, 5]], {"pads": [2, 2], "strides": [3]}),
    "patches_of_volumes": ("Conv", [[2, 3, 6, 7, 8], [4, 3, 3, 2, 3]], {"pads": [1, 0, 1, 0, 1, 1], "strides": [1, 2, 1]}),
    "patches_in_parts": ("Conv", [[2, 64, 105, 106], [3, 64, 3, 3]], {"pads": [1, 1, 1, 1]}),
    "patches_of_some_images": ("Conv", [[5, 64, 70, 66], [2, 64, 3, 3]], {"pads": [1, 1, 1, 1]}),
}
# Operators of Tenon's own.
OWN = {"FusedMatMul", "ChannelsLastConv", "ChannelsLastMaxPool", "ChannelsLastAveragePool"}


def write_model(path, op, inputs, attributes, kind=F):
    names, given, constants = [], [], []
    kind = F if kind == TF32 else kind
    for i, value in enumerate(inputs):
        names.append("" if value is None else f"x{i}")
        if isinstance(value, list):
            given.append(helper.make_tensor_value_info(names[-1], kind, value))
        elif value is not None:
            constants.append(numpy_helper.from_array(value, names[-1]) if isinstance(value, np.ndarray) else value)
            constants[-1].name = names[-1]
    outputs = {"TopK": [F, TensorProto.INT64], "ArgMax": [TensorProto.INT64], "ArgMin": [TensorProto.INT64], "NonMaxSuppression": [TensorProto.INT64]}.get(op, [kind])
    made = [helper.make_tensor_value_info(f"y{i}", kind, None) for i, kind in enumerate(outputs)]
    node = helper.make_node(op, names, [value.name for value in made], domain="tenon" if op in OWN else "", **attributes)
    graph = helper.make_graph([node], "shapes", given, made, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25), helper.make_opsetid("tenon", 1)], ir_version=11), path)


# What the text of a kernel that runs there has, where several could: those of tensor cores and of plain copies beside others.
KERNELS = {
    "fused_flat": "group_64xNx16<Q, TILE",
    "fused_several_tiles": "values_are_there",
    "fused_several_tiles_causal": "values_are_there",
    "fused_causal_past": "key_parts(own",
    "fused_tf32": "key_parts(own",
    "fused_in_turns": "#define GROUPS 1\n#define TURNS 4",
    "fused_tf32_one_tile": "#define GROUPS 2\n#define TURNS 2",
    "fused_tf32_one_tile_columns": "#define GROUPS 1\n#define TURNS 1",
    "fused_tf32_two_groups": "#define GROUPS 2\n#define TURNS 1",
    "fused_tf32_two_groups_uneven": "#define GROUPS 2\n#define TURNS 1",
    "fused_tf32_in_turns": "#define GROUPS 2\n#define TURNS 2",
    "fused_tf32_values_replace_keys": "#define VALUES_REPLACE_KEYS 1",
    "pixels": "weights_are_there",
    "pixels_of_many_channels": "STAGES > 1) fetch(step",
    **{name: "#define IS_TF32 1" for name in CASES if name.startswith("pixels_tf32")},
    "pixels_of_many_large_tiles": "#define BM 128\n#define BN 16\n",
    "pixels_of_wide_tiles": "#define BM 64\n#define BN 168\n",
    "pixels_of_many_parts": "#define BM 64\n#define BN 136\n",
    "first_conv": "X_WIDTH",
    **{f"first_conv{name}": "group_plain_64xNx16<T" for form in ("", "_small_window", "_wide", "_one_channel") for name in (f"{form}_by_groups", f"_tf32{form}")},
    **{name: "DYNAMIC_SHARED(box" for name in ("depthwise", "depthwise_float", "depthwise_float_stride")},
    "depthwise_uneven": "Some taps[",
    **{name: "float* patches" for name in CASES if name.startswith("patches") and name != "patches_plain"},
    **{name: "store_matrix_x2_transposed(pairs" for name in CASES if name.startswith("boxes")},
    "boxes_of_many_tiles": "#define SHARES_WINDOWS 0\n#define WEIGHTS_STAY 1\n",
    "boxes_of_many_channels": "#define SHARES_WINDOWS 1\n#define WEIGHTS_STAY 0\n",
    "boxes_of_many_outputs": "#define SHARES_WINDOWS 1\n#define WEIGHTS_STAY 1\n",
    "boxes_whose_weights_follow": "#define SHARES_WINDOWS 0\n#define WEIGHTS_STAY 0\n",
    "windows": "copy_windows(to, a",
    "windows_stride": "copy_windows(to, a",
    "windows_of_one_pixel": "copy_windows(to, a",
    "windows_uneven": "copy_windows(to, a",
    "product_of_many_tiles": "#define BM 128\n#define BN 128",
    "product_of_many_narrow_tiles": "#define BM 128\n#define BN 64",
    "product_gelu": "#define BM 64\n#define BN 128",
    "product_of_few_tiles": "#define BM 64\n#define BN 64",
    "product_of_a_row": "float parts[WARPS][ROWS]",
    "product_of_rows_transposed": "#define ROWS 4",
    "gemm_of_rows": "#define ROWS 3",
    "channels_last_max_pool": "totals[e] = most_of_pairs<T>",
    "planes_side_by_side": "in[p] = ((const Some*)from)",
    "planes_of_floats": "in[p] = ((const Some*)from)",
}


def environment_of(tenon, folder):
    libraries = tenon.parent / "cuda_emulated"
    if not libraries.exists():
        pytest.skip("the stand-in for NVIDIA's libraries is not built")
    # Of several ways to do the same, the last one: those of libraries come first.
    # What is right is computed by the CPU without arithmetic of half precision, which sums up in floats as the GPU does.
    return {**os.environ, "TENON_CUDA_PATH": str(libraries), "TENON_KERNEL_CACHE": str(folder), "TENON_EMULATED_SOURCES": str(folder),
            "TENON_TRIAL": "last", "TENON_ISA": "portable"}


def check(tenon, tmp_path, name, environment):
    write_model(tmp_path / "model.onnx", *CASES[name])

    def call(command, *arguments):
        run = subprocess.run([tenon, command, tmp_path / "model.onnx", *arguments, "--json"], capture_output=True, text=True,
                             env=environment, timeout=300)
        assert run.returncode == 0, run.stdout + run.stderr
        return json.loads(run.stdout)

    nodes = call("inspect", "--placement", "--provider", "cuda,cpu")["placement"]["nodes"]
    assert {node["provider"] for node in nodes} == {"cuda"}
    kind = CASES[name][3] if len(CASES[name]) > 3 else F
    precision = "full,fast" if kind == TF32 else "full"
    call("compare", "--provider", "cpu,cuda+cpu", "--outputs-only", "--precision", precision, "--rtol", TOLERANCES[kind])


@pytest.mark.parametrize("name", CASES)
def test_equals_cpu(tenon, tmp_path, name):
    check(tenon, tmp_path, name, environment_of(tenon, tmp_path))
    if name in KERNELS:
        assert any(KERNELS[name] in path.read_text() for path in tmp_path.glob("*.cu"))


@pytest.mark.parametrize("name", ["fused_flat", "fused_grouped", "fused_window", "fused_mask", "fused_bool_mask", "fused_several_tiles"])
def test_without_groups_of_warps(tenon, tmp_path, name):
    check(tenon, tmp_path, name, {**environment_of(tenon, tmp_path), "TENON_EMULATED_MAJOR": "8"})
    assert any("key_parts(own" in path.read_text() for path in tmp_path.glob("*.cu"))


@pytest.mark.parametrize("name", ["pixels", "pixels_of_many_parts", "pixels_many_outputs", "pixels_one"])
def test_pixels_without_groups_of_warps(tenon, tmp_path, name):
    check(tenon, tmp_path, name, {**environment_of(tenon, tmp_path), "TENON_EMULATED_MAJOR": "8"})
    assert any(KERNELS["pixels_of_many_channels"] in path.read_text() for path in tmp_path.glob("*.cu"))


def test_unknown_trial_is_an_error(tenon, tmp_path):
    write_model(tmp_path / "model.onnx", *CASES["pixels"])
    run = subprocess.run([tenon, "run", tmp_path / "model.onnx", "--provider", "cuda,cpu"], capture_output=True, text=True,
                         env={**environment_of(tenon, tmp_path), "TENON_TRIAL": "best"}, timeout=300)
    assert run.returncode != 0
    assert "TENON_TRIAL is 'best'; it may be first or last" in run.stdout + run.stderr
