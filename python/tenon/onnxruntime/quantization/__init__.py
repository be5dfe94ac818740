"""onnxruntime.quantization's names on Tenon's quantizer, tenon.quantize.

An argument that Tenon does not have is an error that says so. docs/migration.md has the list.
"""

from __future__ import annotations

from . import _not_here
from .calibrate import CalibrationDataReader, CalibrationMethod
from .quant_utils import QuantFormat, QuantizationMode, QuantType
from .quantize import DynamicQuantConfig, StaticQuantConfig, quantize, quantize_dynamic, quantize_static
from .shape_inference import quant_pre_process

__all__ = [
    "CalibrationDataReader", "CalibrationMethod", "DynamicQuantConfig", "QuantFormat", "QuantType", "QuantizationMode",
    "StaticQuantConfig", "quant_pre_process", "quantize", "quantize_dynamic", "quantize_static",
]


def __getattr__(name: str):
    reason = _not_here.REASONS.get(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}" + (f": {reason}" if reason else ""))
