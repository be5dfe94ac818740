"""onnxruntime's `extra_options`: which mean something to Tenon's quantizer, and why the others do not."""

from __future__ import annotations

import difflib
from typing import Any, Mapping

from tenon.errors import ArgumentError

from .quant_utils import QuantType, type_name

#: Options that are one of tenon.quantize's under another name.
_RENAMED = {
    "ActivationSymmetric": "symmetric_activations",
    "WeightSymmetric": "symmetric_weights",
    "CalibPercentile": "percentile",
}

#: Other options: what they may be, which is what Tenon does, and why they cannot be anything else.
_FIXED: dict[str, tuple[tuple[Any, ...], str]] = {
    "ActivationRestrictedAsymmetric": ((False,), "zero points are where the range puts them"),
    "AddQDQPairToWeight": ((False,), "weights are written as codes"),
    "BlockSize": ((0,), "blocks are for mode 'weight-only': use matmul_nbits_quantizer"),
    "CalibMaxIntermediateOutputs": ((None,), "calibration keeps no outputs: its memory does not grow with the number of samples"),
    "CalibMovingAverageConstant": ((0.01,), "the moving average has a weight of its own"),
    "CalibStridedMinMax": ((None,), "calibration reads one sample after the other"),
    "CalibTensorRangeSymmetric": ((False,), "use ActivationSymmetric"),
    "DefaultTensorType": ((None,), "types of tensors are inferred"),
    "DedicatedQDQPair": ((False,), "nodes that read the same tensor share its codes"),
    "EnableSubgraph": ((True,), "subgraphs are always quantized; exclude their nodes by name"),
    "ForceQuantizeNoInputCheck": ((False,), "operators that only move data compute on codes where their input is codes"),
    "MatMulConstBOnly": ((), "exclude MatMul nodes by name to keep them in float"),
    "MinimumRealRange": ((None,), "no provider of Tenon needs it"),
    "OpTypesToExcludeOutputQuantization": (([], None), "exclude the operator or the node"),
    "QDQDisableWeightAdjustForInt32Bias": ((False,), "biases that do not fit into 32 bits are handled by the quantizer"),
    "QDQKeepRemovableActivations": ((False,), "a Relu or Clip that the codes' range implies is left out"),
    "QDQOpTypePerChannelSupportToAxis": (({}, None), "weights have a scale for each output channel"),
    "QuantizeBias": ((True,), "biases become 32-bit integers"),
    "SmoothQuantFolding": ((True,), "the scales that SmoothQuant finds go into weights wherever they can"),
    "UseQDQContribOps": ((False,), "ONNX's own QuantizeLinear is written"),
    "extra.Sigmoid.nnapi": ((False,), "there is no provider NNAPI"),
}

_HANDLED = ("CalibMovingAverage", "SmoothQuant", "SmoothQuantAlpha", "TensorQuantOverrides")
KNOWN = (*_RENAMED, *_FIXED, *_HANDLED)


def _check(extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if key not in KNOWN:
            near = difflib.get_close_matches(key, KNOWN, 1)
            raise ArgumentError(f"extra_options has no {key!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        if key in _FIXED and value not in _FIXED[key][0]:
            raise ArgumentError(f"extra_options[{key!r}] cannot be {value!r}: {_FIXED[key][1]}")


def _override(tensor: str, channels: list[dict]) -> dict[str, Any]:
    """One entry of TensorQuantOverrides as tenon.quantize takes it."""
    if len(channels) != 1:
        raise ArgumentError(f"TensorQuantOverrides[{tensor!r}] has {len(channels)} entries: Tenon overrides a tensor as a whole")
    renamed = {"symmetric": "symmetric", "rmin": "low", "rmax": "high"}
    result: dict[str, Any] = {}
    for key, value in channels[0].items():
        if key == "quant_type":
            result["type"] = type_name(value if isinstance(value, QuantType) else QuantType.from_string(value), f"the type of {tensor!r}")
        elif key in renamed:
            result[renamed[key]] = value
        else:
            raise ArgumentError(f"TensorQuantOverrides[{tensor!r}] has {key!r}: Tenon takes quant_type, symmetric, rmin and rmax")
    return result


def translate(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """tenon.quantize's options. ArgumentError for what it does not have."""
    extra = dict(extra or {})
    _check(extra)
    result = {_RENAMED[key]: value for key, value in extra.items() if key in _RENAMED}
    if extra.get("CalibMovingAverage"):
        result["method"] = "moving-average"
    if extra.get("SmoothQuant"):
        result["smooth"] = extra.get("SmoothQuantAlpha", 0.5)
    if overrides := extra.get("TensorQuantOverrides"):
        result["overrides"] = {tensor: _override(tensor, channels) for tensor, channels in overrides.items()}
    return result
