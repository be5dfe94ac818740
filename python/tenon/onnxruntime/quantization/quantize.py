"""onnxruntime's quantize_static and quantize_dynamic on Tenon's quantizer."""

from __future__ import annotations

from typing import Any

import tenon
from tenon.errors import ArgumentError

from . import _extra_options
from ._nodes import selection
from .calibrate import CalibrationDataReader, CalibrationMethod, feeds
from .quant_utils import QuantFormat, QuantizationMode, QuantType, format_name, type_name

__all__ = ["CalibrationMethod", "DynamicQuantConfig", "QuantConfig", "QuantFormat", "QuantType", "QuantizationMode",
           "StaticQuantConfig", "quantize", "quantize_dynamic", "quantize_static"]

_METHODS = {CalibrationMethod.MinMax: "minmax", CalibrationMethod.Entropy: "entropy", CalibrationMethod.Percentile: "percentile"}
#: onnxruntime quantizes whatever it can, without looking at what that gives.
_ALL_OF_IT = {"max_loss": None, "measure": False}


class QuantConfig:
    """What static and dynamic quantization have in common."""

    def __init__(self, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, op_types_to_quantize=None,
                 nodes_to_quantize=None, nodes_to_exclude=None, per_channel=False, reduce_range=False, use_external_data_format=False):
        self.activation_type = activation_type
        self.weight_type = weight_type
        self.op_types_to_quantize = op_types_to_quantize or []
        self.nodes_to_quantize = nodes_to_quantize or []
        self.nodes_to_exclude = nodes_to_exclude or []
        self.per_channel = per_channel
        self.reduce_range = reduce_range
        self.use_external_data_format = use_external_data_format

    def _options(self) -> dict[str, Any]:
        if self.reduce_range:
            raise ArgumentError("reduce_range cannot be True: no kernel of Tenon loses bits when all 8 are used")
        return {"weights": type_name(self.weight_type, "weight_type"), "per_channel": self.per_channel}


class StaticQuantConfig(QuantConfig):
    """The arguments of quantize_static."""

    def __init__(self, calibration_data_reader: CalibrationDataReader, calibrate_method=CalibrationMethod.MinMax,
                 quant_format=QuantFormat.QDQ, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                 op_types_to_quantize=None, nodes_to_quantize=None, nodes_to_exclude=None, per_channel=False, reduce_range=False,
                 use_external_data_format=False, calibration_providers=None, extra_options=None):
        super().__init__(activation_type, weight_type, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, per_channel,
                         reduce_range, use_external_data_format)
        self.calibration_data_reader = calibration_data_reader
        self.calibrate_method = calibrate_method
        self.quant_format = quant_format
        self.calibration_providers = calibration_providers
        self.extra_options = extra_options or {}

    def _options(self) -> dict[str, Any]:
        if self.calibration_data_reader is None:
            raise ArgumentError("calibration_data_reader is missing: there are no ranges without data")
        if self.calibrate_method not in _METHODS:
            raise ArgumentError(f"calibrate_method cannot be {self.calibrate_method}: it is for float8, and Tenon quantizes to integers only")
        if self.calibration_providers not in (None, ["CPUExecutionProvider"]):
            raise ArgumentError(f"calibration_providers cannot be {self.calibration_providers}: calibration runs on the CPU")
        return {**super()._options(), "mode": "static", "format": format_name(self.quant_format),
                "activations": type_name(self.activation_type, "activation_type"), "method": _METHODS[self.calibrate_method],
                "calibration": feeds(self.calibration_data_reader), **_extra_options.translate(self.extra_options)}


class DynamicQuantConfig(QuantConfig):
    """The arguments of quantize_dynamic."""

    def __init__(self, weight_type=QuantType.QInt8, op_types_to_quantize=None, nodes_to_quantize=None, nodes_to_exclude=None,
                 per_channel=False, reduce_range=False, use_external_data_format=False, extra_options=None):
        super().__init__(QuantType.QUInt8, weight_type, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, per_channel,
                         reduce_range, use_external_data_format)
        self.extra_options = extra_options or {}

    def _options(self) -> dict[str, Any]:
        extra = {key: value for key, value in self.extra_options.items() if (key, value) != ("MatMulConstBOnly", True)}
        return {**super()._options(), "mode": "dynamic", **_extra_options.translate(extra)}


def quantize(model_input, model_output, quant_config: QuantConfig) -> None:
    """Quantizes a model, a path or an onnx.ModelProto, as the configuration says, into a file."""
    model = tenon.read_onnx(model_input)
    nodes = selection(model, quant_config.op_types_to_quantize, quant_config.nodes_to_quantize, quant_config.nodes_to_exclude)
    report = tenon.quantize(model, **_ALL_OF_IT, **nodes, **quant_config._options())
    report.model.save(model_output, external_data=True if quant_config.use_external_data_format else None)


def quantize_static(model_input, model_output, calibration_data_reader=None, quant_format=QuantFormat.QDQ, op_types_to_quantize=None,
                    per_channel=False, reduce_range=False, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                    nodes_to_quantize=None, nodes_to_exclude=None, use_external_data_format=False,
                    calibrate_method=CalibrationMethod.MinMax, calibration_providers=None, extra_options=None,
                    calibration_cache_path=None) -> None:
    """Weights and activations in integers, with ranges from the reader's data."""
    if calibration_cache_path is not None:
        raise ArgumentError("calibration_cache_path cannot be given: ranges are found anew each time")
    quantize(model_input, model_output, StaticQuantConfig(
        calibration_data_reader, calibrate_method, quant_format, activation_type, weight_type, op_types_to_quantize, nodes_to_quantize,
        nodes_to_exclude, per_channel, reduce_range, use_external_data_format, calibration_providers, extra_options))


def quantize_dynamic(model_input, model_output, op_types_to_quantize=None, per_channel=False, reduce_range=False,
                     weight_type=QuantType.QInt8, nodes_to_quantize=None, nodes_to_exclude=None, use_external_data_format=False,
                     extra_options=None) -> None:
    """Weights in integers, and activations, whose ranges are found in every run."""
    quantize(model_input, model_output, DynamicQuantConfig(
        weight_type, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, per_channel, reduce_range, use_external_data_format,
        extra_options))
