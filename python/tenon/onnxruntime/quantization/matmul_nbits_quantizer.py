"""onnxruntime's MatMulNBitsQuantizer: weights of MatMul in few bits, in blocks, on Tenon's quantizer."""

from __future__ import annotations

from typing import Any

import tenon
from tenon.errors import ArgumentError

from ._nodes import selection
from .calibrate import CalibrationDataReader, feeds
from .quant_utils import QuantFormat, format_name

__all__ = ["DefaultWeightOnlyQuantConfig", "GPTQWeightOnlyQuantConfig", "MatMulNBitsQuantizer", "RTNWeightOnlyQuantConfig",
           "WeightOnlyQuantConfig"]


def _refuse(name: str, value: Any, accepted: tuple, reason: str) -> None:
    if value not in accepted:
        raise ArgumentError(f"{name} cannot be {value!r}: {reason}")


class WeightOnlyQuantConfig:
    """How weights become codes."""

    def __init__(self, algorithm: str, quant_format: QuantFormat, op_types_to_quantize=None, quant_axes=None,
                 customized_weight_config=None):
        _refuse("customized_weight_config", customized_weight_config, (None, {}), "all nodes are quantized in the same way")
        _refuse("quant_axes", dict(quant_axes) if quant_axes else None, (None, {"MatMul": 0}, {"MatMul": 0, "Gather": 1}),
                "blocks go along the rows that are multiplied")
        self.algorithm = algorithm
        self.quant_format = quant_format
        self.op_types_to_quantize = set(op_types_to_quantize) if op_types_to_quantize else {"MatMul"}
        self.quant_axes = dict(quant_axes) if quant_axes else {"MatMul": 0, "Gather": 1}
        self.customized_weight_config = customized_weight_config

    def _options(self) -> dict[str, Any]:
        return {"format": format_name(self.quant_format)}


class DefaultWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Each number to the nearest code."""

    def __init__(self, block_size=128, is_symmetric=False, accuracy_level=None, quant_format=QuantFormat.QOperator,
                 op_types_to_quantize=None, quant_axes=None, bits=4, channel_wised_quantize=False):
        super().__init__("DEFAULT", quant_format, op_types_to_quantize, quant_axes)
        _refuse("accuracy_level", accuracy_level, (None, 0), "it is for the runtime, which computes in float unless its precision is 'fast'")
        _refuse("channel_wised_quantize", channel_wised_quantize, (False,), "block_size 0 gives every column one scale")
        self.block_size = block_size
        self.is_symmetric = is_symmetric
        self.accuracy_level = accuracy_level
        self.bits = bits
        self.channel_wised_quantize = channel_wised_quantize

    def _options(self) -> dict[str, Any]:
        _refuse("bits", self.bits, (4, 8), "weights get 4 or 8 bits")
        kind = f"int{self.bits}" if self.is_symmetric else f"uint{self.bits}"
        return {**super()._options(), "weights": kind, "symmetric_weights": self.is_symmetric, "block_size": self.block_size}


class RTNWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Each number to the nearest code; bits, blocks and symmetry are those of the quantizer."""

    def __init__(self, ratios=None, quant_format=QuantFormat.QOperator, op_types_to_quantize=None, customized_weight_config=None):
        super().__init__("RTN", quant_format, op_types_to_quantize, None, customized_weight_config)
        _refuse("ratios", ratios, (None, {}), "weights are not clipped")
        self.ratios = ratios or {}


class GPTQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """One column after the other, each making up for the errors of those before."""

    def __init__(self, calibration_data_reader: CalibrationDataReader | None = None, percdamp=0.01, block_size=128, actorder=False,
                 mse=False, perchannel=True, quant_format=QuantFormat.QOperator, op_types_to_quantize=None):
        super().__init__("GPTQ", quant_format, op_types_to_quantize)
        _refuse("percdamp", percdamp, (0.01,), "Tenon's GPTQ has this damping")
        _refuse("actorder", actorder, (False,), "columns are taken in their order")
        _refuse("mse", mse, (False,), "scales span the numbers of a block")
        _refuse("perchannel", perchannel, (True,), "every column has scales of its own")
        if calibration_data_reader is None:
            raise ArgumentError("calibration_data_reader is missing: GPTQ weighs errors by data")
        self.calibration_data_reader = calibration_data_reader
        self.percdamp = percdamp
        self.block_size = block_size
        self.actorder = actorder
        self.mse = mse
        self.perchannel = perchannel

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "weight_method": "gptq", "calibration": feeds(self.calibration_data_reader)}


class _Model:
    """What MatMulNBitsQuantizer.model is: onnxruntime's ONNXModel, as far as users of the quantizer touch it."""

    def __init__(self, source):
        self._source = source

    @property
    def model(self):
        """An onnx.ModelProto."""
        if isinstance(self._source, tenon.OnnxModel):
            import onnx
            return onnx.load_from_string(self._source.to_bytes())
        return self._source

    def save_model_to_file(self, output_path, use_external_data_format=False) -> None:
        tenon.read_onnx(self._source).save(output_path, external_data=True if use_external_data_format else None)


class MatMulNBitsQuantizer:
    """Makes codes of the constant matrices that MatMul multiplies by."""

    def __init__(self, model, bits=4, block_size=128, is_symmetric=False, accuracy_level=None, nodes_to_exclude=None,
                 nodes_to_include=None, quant_format=QuantFormat.QOperator, op_types_to_quantize=None, quant_axes=None,
                 channel_wised_quantize=False, algo_config: WeightOnlyQuantConfig | None = None):
        self.model = _Model(model)
        self.bits = bits
        self.block_size = block_size
        self.is_symmetric = is_symmetric
        self.accuracy_level = accuracy_level
        self.nodes_to_exclude = set(nodes_to_exclude or ())
        self.nodes_to_include = set(nodes_to_include or ())
        self._default = DefaultWeightOnlyQuantConfig(block_size, is_symmetric, accuracy_level, quant_format, op_types_to_quantize,
                                                     quant_axes, bits, channel_wised_quantize)
        self.algo_config = algo_config or self._default

    def process(self) -> None:
        """Quantizes; `model` is the result afterwards."""
        model = tenon.read_onnx(self.model._source)
        operators = () if self.nodes_to_include else sorted(self.algo_config.op_types_to_quantize)
        nodes = selection(model, operators, sorted(self.nodes_to_include), sorted(self.nodes_to_exclude))
        options = {**self._default._options(), **self.algo_config._options()}
        self.model = _Model(tenon.quantize(model, mode="weight-only", max_loss=None, measure=False, **nodes, **options).model)
