"""Models as onnxruntime quantizes them, per channel: static, with QuantizeLinear and DequantizeLinear around what they quantize, or
dynamic, where each run finds the scales of what MatMulInteger multiplies with weights."""
import shutil
from pathlib import Path

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

SAMPLES = 4


class Samples(CalibrationDataReader):
    """Random numbers in place of the floats; integers, which are mostly indices, as they are."""

    def __init__(self, inputs):
        rng = np.random.default_rng(0)
        self.left = [{name: rng.standard_normal(array.shape, np.float32) if array.dtype == np.float32 else array
                      for name, array in inputs.items()} for _ in range(SAMPLES)]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantize(path, inputs, mode="static"):
    """The file of the quantized model, which is made where it is missing."""
    result = Path(path).with_name(f"{Path(path).stem}_{'int8' if mode == 'static' else mode}.onnx")
    if result.exists():
        return str(result)
    made = result.with_suffix(".unfinished")
    if mode == "dynamic":
        quantize_dynamic(path, made, per_channel=True, weight_type=QuantType.QInt8)
    else:
        make_static(path, inputs, made)
    made.rename(result)
    return str(result)


def make_static(path, inputs, made):
    prepared = made.with_suffix(".prepared")
    try:
        quant_pre_process(path, prepared, skip_symbolic_shape=True)
    except Exception as error:
        print(f"{path} is quantized as it is: {error}")
        shutil.copy(path, prepared)
    quantize_static(prepared, made, Samples(inputs), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    prepared.unlink()
