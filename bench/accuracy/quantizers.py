"""Who makes a smaller model, and how: each a name and a function of task and output path.

Tenon's are as by default, with what costs too much accuracy left in float; but not what is slower in integers, which depends on
the machine.
"""
import logging
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx
import tenon
from onnxruntime.quantization import CalibrationMethod, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.quantization.shape_inference import quant_pre_process
from task import Task

from by_onnxruntime import Feeds  # isort: skip

BLOCK_SIZE = 32
METHODS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy, "percentile": CalibrationMethod.Percentile}


@dataclass(frozen=True)
class Quantizer:
    maker: str
    method: str
    write: Callable[[Task, Path], None]


def prepared(task, folder):
    """The model after onnxruntime's own preparation for its quantizer; as it is, where that fails."""
    path = Path(folder) / "prepared.onnx"
    try:
        quant_pre_process(task.model, path, skip_symbolic_shape=True)
    except Exception as error:
        logging.warning("%s is quantized as it is: %s", task.name, error)
        shutil.copy(task.model, path)
    return path


def onnxruntime_static(method, operators=None):
    def write(task, output):
        with tempfile.TemporaryDirectory() as folder:
            quantize_static(prepared(task, folder), output, Feeds(task.calibration), calibrate_method=METHODS[method], op_types_to_quantize=operators, per_channel=task.onnxruntime_per_channel,
                            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return write


def onnxruntime_dynamic(task, output):
    with tempfile.TemporaryDirectory() as folder:
        quantize_dynamic(prepared(task, folder), output, per_channel=True, weight_type=QuantType.QInt8)


def onnxruntime_4_bits(task, output):
    quantizer = MatMulNBitsQuantizer(onnx.load(task.model), bits=4, block_size=BLOCK_SIZE, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(str(output))


def tenon_with(**options):
    def write(task, output):
        tenon.quantize(task.model, calibration=task.calibration, measure=False, **options).model.save(output)
    return write


def tenon_4_bits(**options):
    """4-bit integers came with opset 21."""
    def write(task, output):
        tenon.quantize(tenon.convert(task.model, opset=21), calibration=task.calibration, measure=False, mode="weight-only",
                       block_size=BLOCK_SIZE, **options).model.save(output)
    return write


QUANTIZERS = [
    *(Quantizer("onnxruntime", f"static, {method}", onnxruntime_static(method)) for method in METHODS),
    Quantizer("onnxruntime", "static, minmax, only Conv and MatMul", onnxruntime_static("minmax", ["Conv", "MatMul", "Gemm"])),
    Quantizer("onnxruntime", "dynamic", onnxruntime_dynamic),
    Quantizer("onnxruntime", "weights in 4 bits", onnxruntime_4_bits),
    *(Quantizer("Tenon", f"static, {method}", tenon_with(method=method)) for method in ("mse", *METHODS)),
    Quantizer("Tenon", "static, mse, no budget", tenon_with(max_loss=None)),
    Quantizer("Tenon", "dynamic", tenon_with(mode="dynamic")),
    Quantizer("Tenon", "weights in 4 bits", tenon_4_bits()),
    Quantizer("Tenon", "weights in 4 bits, GPTQ", tenon_4_bits(weight_method="gptq")),
]
