"""Where onnxruntime does not do what ONNX says, or where ONNX says nothing. A case that differs and that an entry applies to is
counted apart; each entry gives the sentence of the specification, or what else speaks for Tenon's result."""
from dataclasses import dataclass
from typing import Callable

import numpy as np


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
    scales = value(case, "scales")
    if scales is None or value(case, "coordinate_transformation_mode") not in ("align_corners", "pytorch_half_pixel", "half_pixel"):
        return False
    return bool(np.any(np.array(case.inputs[0].shape[-len(scales):] if len(scales) else []) * scales % 1))


def has_a_masked_row(case):
    mask = value(case, "attn_mask")
    masked = mask is not None and mask.dtype == bool and not mask.any(axis=-1).all()
    return masked or value(case, "is_causal") == 1


LIST = [
    Disagreement("Attention", is_float16, "onnxruntime's float16 kernel gives zeros where there is one key"),
    Disagreement("Attention", has_a_masked_row,
                 "\"zero (non-NaN) output for fully-masked rows\"; onnxruntime gives NaN, and an average in some versions"),
    Disagreement("Cast", lambda c: value(c, "to") == 8,
                 "ONNX does not say how many digits a float has as text; Tenon writes as many as it takes to read it back, "
                 "onnxruntime eight"),
    Disagreement("Conv", lambda c: is_float16(c) and value(c, "group") not in (None, 1),
                 "in float16, onnxruntime adds the first group's bias to every group and mixes up groups from the second image on; "
                 "with the same numbers in float32 it agrees with Tenon"),
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
]
