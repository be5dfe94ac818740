"""Names that onnxruntime.quantization has and this package has not, with the reason."""

from __future__ import annotations

_CALIBRATION = "ranges are found inside tenon.quantize, whose report has them"
_QUANTIZERS = "it is onnxruntime's implementation: use quantize_static"

REASONS: dict[str, str] = {
    "CalibraterBase": _CALIBRATION,
    "MinMaxCalibrater": _CALIBRATION,
    "TensorData": _CALIBRATION,
    "TensorsData": _CALIBRATION,
    "create_calibrator": _CALIBRATION,
    "load_tensors_data": _CALIBRATION,
    "save_tensors_data": _CALIBRATION,
    "CudaQuantizer": _QUANTIZERS,
    "QDQQuantizer": _QUANTIZERS,
    "get_qdq_config": "there is one set of rules for all formats: use StaticQuantConfig",
    "write_calibration_table": "calibration tables are TensorRT's",
}
