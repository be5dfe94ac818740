"""Where onnxruntime does not do what ONNX says, or where ONNX says nothing. A case that differs and that an entry applies to is
counted apart; each entry gives the sentence of the specification, or what else speaks for Tenon's result."""
from dataclasses import dataclass
from typing import Callable

import numpy as np
from onnx import helper, numpy_helper


@dataclass(frozen=True)
class Disagreement:
    operator: str
    applies: Callable
    reason: str


def value(case, name):
    """An input or attribute by its name, None if the case has none."""
    if name in case.attributes:
        return case.attributes[name]
    return next((case.inputs.get(i) for i, p in enumerate(case.schema.inputs) if p.name == name), None)


def is_float16(case):
    return "float16" in case.types.values()


def slices_backwards_to_the_end(case):
    steps, ends = value(case, "steps"), value(case, "ends")
    return steps is not None and bool(np.any((np.asarray(steps) < 0) & (np.asarray(ends) == 2**31 - 1)))


def has_gaps_between_windows(case):
    strides, kernel = value(case, "strides"), value(case, "kernel_shape") or list(case.inputs.get(1, np.zeros(0)).shape[2:])
    return str(value(case, "auto_pad")).startswith("SAME") and strides is not None and any(s > k for s, k in zip(strides, kernel))


def has_fractional_size(case):
    scales, shape = value(case, "scales"), case.inputs[0].shape
    if value(case, "coordinate_transformation_mode") in ("asymmetric", "tf_half_pixel_for_nn"):
        return False
    if scales is None:
        return value(case, "keep_aspect_ratio_policy") in ("not_larger", "not_smaller")
    axes = value(case, "axes") or range(len(shape))
    return any(shape[a] * scale % 1 for a, scale in zip(axes, scales))


def crops_to_the_same_size(case):
    """Whether one of the last two axes, which are cropped, keeps its size."""
    if value(case, "coordinate_transformation_mode") != "tf_crop_and_resize":
        return False
    scales, sizes, shape = value(case, "scales"), value(case, "sizes"), case.inputs[0].shape
    if sizes is None or value(case, "keep_aspect_ratio_policy") not in (None, "stretch"):
        return scales is None or 1 in scales[-2:]
    axes = value(case, "axes") or range(len(shape))
    return any(shape[a] == size for a, size in list(zip(axes, sizes))[-2:])


def crops_bytes(case):
    return value(case, "coordinate_transformation_mode") == "tf_crop_and_resize" and value(case, "mode") == "linear" and \
        case.inputs[0].dtype.itemsize == 1


def is_constant_somewhere(case):
    axes = value(case, "axes") or [0, 2, 3]
    return bool(np.any(np.ptp(case.inputs[0].astype(np.float64), axis=tuple(axes)) == 0))


def has_two_classes(case):
    return len(value(case, "classlabels_int64s") or value(case, "classlabels_strings")) == 2


def rounds_to_few_bits(case):
    """Whether floats become integers below 8 bits."""
    target = case.inputs[1].dtype if 1 in case.inputs else helper.tensor_dtype_to_np_dtype(value(case, "to"))
    return "float" in case.inputs[0].dtype.name and target.name in ("int4", "uint4", "int2", "uint2")


def is_smaller_than_its_strides(case):
    """Whether a transposed convolution leaves gaps between windows, so that SAME needs more than there is."""
    strides = value(case, "strides")
    dilations = value(case, "dilations") or [1] * len(case.inputs[1].shape[2:])
    reach = [(k - 1) * x + 1 for k, x in zip(case.inputs[1].shape[2:], dilations)]
    return str(value(case, "auto_pad")).startswith("SAME") and strides is not None and any(s > r for s, r in zip(strides, reach))


def has_a_row_of_zeros(case):
    return value(case, "post_transform") == "SOFTMAX_ZERO" and not np.all(np.any(case.inputs[0], axis=1))


def tests_membership(case):
    return 6 in numpy_helper.to_array(case.attributes["nodes_modes"])


def has_a_masked_row(case):
    mask = value(case, "attn_mask")
    masked = mask is not None and mask.dtype == bool and not mask.any(axis=-1).all()
    return masked or value(case, "is_causal") == 1 or value(case, "nonpad_kv_seqlen") is not None


LIST = [
    Disagreement("AffineGrid", lambda c: value(c, "align_corners") == 1 and 1 in value(c, "size")[2:],
                 "\"-1 and 1 refer to the centers of the corner pixels\": the only pixel is the first, at -1, as in ONNX's reference; "
                 "onnxruntime puts it at 1"),
    Disagreement("Attention", is_float16, "onnxruntime's float16 kernel gives zeros where there is one key"),
    Disagreement("Attention", has_a_masked_row,
                 "\"zero (non-NaN) output for fully-masked rows\"; onnxruntime gives NaN, and an average in some versions"),
    Disagreement("Attention", lambda c: c.outputs == 4 and value(c, "attn_mask") is not None,
                 "ONNX's function adds -inf where a mask is false; onnxruntime adds the lowest finite number, which shows in "
                 "qk_matmul_output"),
    Disagreement("Cast", lambda c: value(c, "to") == 8,
                 "ONNX does not say how many digits a float has as text; Tenon writes as many as it takes to read it back, "
                 "onnxruntime eight"),
    Disagreement("Conv", lambda c: is_float16(c) and value(c, "group") not in (None, 1),
                 "in float16, onnxruntime adds the first group's bias to every group and mixes up groups from the second image on; "
                 "with the same numbers in float32 it agrees with Tenon"),
    Disagreement("DFT", lambda c: value(c, "onesided") == 1 and value(c, "inverse") == 1,
                 "the inverse of a one-sided transform takes the other half as conjugates, as numpy's irfft and ONNX's reference; "
                 "onnxruntime leaves values out when dft_length is not the input's size"),
    *(Disagreement(name, lambda c: c.inputs[0].dtype != object and bool(np.any(c.inputs[0].astype(np.float32) < 0)) and
                   (value(c, "to") == 24 or "e8m0" in c.inputs.get(1, c.inputs[0]).dtype.name),
                   "\"Casting negative values to FLOAT8E8M0 gives undefined behavior\"")
      for name in ("Cast", "CastLike")),
    *(Disagreement(name, rounds_to_few_bits,
                   "\"Cast to a 4 bit type is done by rounding to the nearest-integer (with ties to even)\"; onnxruntime rounds ties away from 0")
      for name in ("Cast", "CastLike")),
    Disagreement("Col2Im", lambda c: len(value(c, "block_shape")) == 3,
                 "of images with three axes and several channels, onnxruntime leaves channels empty; Tenon gives what ONNX's reference does"),
    Disagreement("ConvTranspose", is_smaller_than_its_strides,
                 "\"SAME_UPPER or SAME_LOWER mean pad the input so that output_shape[i] = input_shape[i] * strides[i]\"; onnxruntime's output is "
                 "smaller where windows leave gaps"),
    Disagreement("Dropout", lambda c: c.outputs == 2,
                 "outside of training nothing is dropped, so the mask is true (test_dropout_default_mask); onnxruntime's mask "
                 "of version 10 is false"),
    Disagreement("Erf", is_float16,
                 "onnxruntime's float16 kernel is wrong near 0: erf(1e-7) is given as -0.0044"),
    Disagreement("Gather", lambda c: "string" in c.types.values(),
                 "onnxruntime leaves strings out when a slice has more than one"),
    *(Disagreement(name, lambda c: value(c, "size") == 1 and value(c, "periodic") == 0,
                   "a window of one sample is 1, as in numpy and scipy; onnxruntime divides zero by zero")
      for name in ("HannWindow", "HammingWindow", "BlackmanWindow")),
    Disagreement("LabelEncoder", lambda c: c.version < 4 and "keys_floats" in c.attributes,
                 "\"Float keys with value 'NaN' match any input 'NaN' value regardless of bit value\", says version 4, and version 2 does "
                 "not say otherwise; onnxruntime has NaN match from version 4 on"),
    Disagreement("Loop", lambda c: 1 not in c.inputs,
                 "\"input (trip_count, \"\"): cond = ...; // ignored\"; onnxruntime stops when the body's condition is false"),
    Disagreement("MatMul", lambda c: c.inputs[0].shape[-1] == 0,
                 "\"Matrix product that behaves like numpy.matmul\", which broadcasts batches; onnxruntime's float16 kernel does not when "
                 "there is nothing to add up"),
    Disagreement("MeanVarianceNormalization", is_constant_somewhere,
                 "of values that are alike the variance is 0; onnxruntime's is below 0 by an error of rounding, and has no root"),
    Disagreement("MaxUnpool", lambda c: 2 in c.inputs,
                 "test_maxunpool_export_with_output_shape: indices are those of the image without output_shape, which then is made "
                 "larger; onnxruntime takes them as those of the larger one"),
    Disagreement("NonZero", lambda c: c.inputs[0].ndim == 0,
                 "ONNX's shape inference gives the output the input's rank as its first size, 0 for a scalar; onnxruntime takes "
                 "a scalar as one-dimensional"),
    Disagreement("OneHot", lambda c: value(c, "indices").dtype.kind == "f",
                 "\"In case 'indices' is of non-integer type, the values will be casted to int64 before use\""),
    Disagreement("QuantizeLinear", is_float16,
                 "\"precision of the division operation between x and y_scale. If not provided, it will be the same as the type of "
                 "y_scale\": ties that exist in float16 only"),
    Disagreement("ReduceLogSumExp", lambda c: c.types["T"].startswith(("int", "uint")),
                 "of integers, Tenon gives the truncated real result; onnxruntime sums truncated exponentials"),
    Disagreement("Resize", has_fractional_size,
                 "where the output's size is rounded, ONNX's cases (test_resize_downsample_scales_linear_align_corners) take "
                 "size * scale unrounded as length_resized; onnxruntime takes the rounded one"),
    Disagreement("Resize", crops_bytes,
                 "with the same numbers in float32 onnxruntime agrees with Tenon"),
    Disagreement("Resize", crops_to_the_same_size,
                 "\"tf_crop_and_resize: x_original = start_x * (length_original - 1) + …\"; onnxruntime does not crop axes whose size stays"),
    *(Disagreement(name, has_gaps_between_windows,
                   "\"pads: values should be greater than or equal to 0\"; with SAME and a stride above the kernel, onnxruntime's are below")
      for name in ("MaxPool", "AveragePool", "LpPool", "Conv")),
    Disagreement("ScatterElements", lambda c: "string" in c.types.values(),
                 "ONNX names no sum or product of strings; onnxruntime concatenates"),
    Disagreement("ScatterND", lambda c: "string" in c.types.values(),
                 "ONNX names no sum or product of strings; onnxruntime concatenates"),
    Disagreement("Slice", slices_backwards_to_the_end,
                 "\"end clamps to [-1, dims[axes[i]]-1] for negative stepping\": an end of INT_MAX is the last element, which is "
                 "left out; onnxruntime takes INT32_MAX as the other end"),
    Disagreement("SplitToSequence", lambda c: 1 in c.inputs and value(c, "keepdims") == 0,
                 "\"keepdims: If input 'split' is specified, this attribute is ignored\""),
    Disagreement("StringSplit", lambda c: not value(c, "delimiter"),
                 "\"consecutive whitespace characters are regarded as a single separator\": for onnxruntime only the space is one"),
    Disagreement("StringSplit", lambda c: "" in c.inputs[0],
                 "with a delimiter, a text without one is one substring (test_string_split_basic), an empty one too, as in Python; "
                 "onnxruntime counts none"),
    Disagreement("TreeEnsemble", tests_membership,
                 "BRANCH_MEMBER tests whether a value is one of membership_values; onnxruntime finds some that are not"),
    Disagreement("TreeEnsemble", lambda c: value(c, "post_transform") in (1, 2),
                 "\"'SOFTMAX' (1), 'LOGISTIC' (2)\"; onnxruntime takes them the other way round"),
    Disagreement("TreeEnsembleClassifier", has_two_classes,
                 "\"Y: N, Top class for each point\"; of two classes onnxruntime does not take the one with the higher score, and names it 0 or 1"),
    Disagreement("TreeEnsembleRegressor", lambda c: value(c, "n_targets") > 1 and ({"base_values", "base_values_as_tensor"} & set(c.attributes)),
                 "\"base_values: added to final prediction score\"; onnxruntime leaves them out for targets that no leaf adds to"),
    *(Disagreement(name, lambda c: "ThresholdedRelu" in (value(c, "activations") or []) and not value(c, "activation_alpha"),
                   "activation_alpha: \"Default values are the same as of corresponding ONNX operators\", 1.0 for ThresholdedRelu; "
                   "onnxruntime's is 0")
      for name in ("RNN", "GRU", "LSTM")),
    *(Disagreement(name, lambda c: "Softplus" in (value(c, "activations") or []),
                   "ln(exp(x) + 1) is near x for large x; onnxruntime's exp(x) is infinite")
      for name in ("RNN", "GRU", "LSTM")),
    *(Disagreement(name, has_a_row_of_zeros,
                   "ONNX does not say what SOFTMAX_ZERO makes of scores that are all zero; onnxruntime divides zero by zero")
      for name in ("LinearRegressor", "LinearClassifier")),
    *(Disagreement(name, lambda c: value(c, "post_transform") in ("PROBIT", 4),
                   "the inverse of the normal distribution; onnxruntime has an approximation that is off by some percent near 0")
      for name in ("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor", "TreeEnsemble", "TreeEnsembleClassifier",
                   "TreeEnsembleRegressor")),
]
