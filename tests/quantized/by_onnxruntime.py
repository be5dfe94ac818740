"""The ways in which onnxruntime's tools quantize a model: {name: function of a network and an output path}.

They change the model that they are given: each gets a copy.
"""
import copy

from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

U8, S8, U16, S16, S4 = QuantType.QUInt8, QuantType.QInt8, QuantType.QUInt16, QuantType.QInt16, QuantType.QInt4


class Feeds(CalibrationDataReader):
    def __init__(self, feeds):
        self.left = iter(feeds)

    def get_next(self):
        return next(self.left, None)


def static(form, activations, weights, per_channel=False, **more):
    return lambda network, output: quantize_static(copy.deepcopy(network.model), output, Feeds(network.calibration), form, per_channel=per_channel,
                                                   activation_type=activations, weight_type=weights, **more)


def dynamic(weights, per_channel=False):
    return lambda network, output: quantize_dynamic(copy.deepcopy(network.model), output, per_channel=per_channel, weight_type=weights)


def blocks(form, bits, symmetric):
    def write(network, output):
        quantizer = MatMulNBitsQuantizer(copy.deepcopy(network.model), bits=bits, block_size=32, is_symmetric=symmetric, quant_format=form)
        quantizer.process()
        quantizer.model.save_model_to_file(str(output))
    return write


QDQ, CODES = QuantFormat.QDQ, QuantFormat.QOperator
WAYS = {
    "qdq_u8s8_per_channel": static(QDQ, U8, S8, per_channel=True),
    "qdq_s8s8": static(QDQ, S8, S8),
    "qdq_s8s8_symmetric": static(QDQ, S8, S8, per_channel=True, extra_options={"ActivationSymmetric": True}),
    "qdq_u8u8": static(QDQ, U8, U8),
    "qdq_entropy": static(QDQ, U8, S8, calibrate_method=CalibrationMethod.Entropy),
    "qdq_percentile": static(QDQ, U8, S8, calibrate_method=CalibrationMethod.Percentile),
    "qdq_u16s8": static(QDQ, U16, S8),
    "qdq_s16s8_microsoft": static(QDQ, S16, S8, extra_options={"UseQDQContribOps": True}),
    "qdq_u8s4": static(QDQ, U8, S4, per_channel=True),
    "codes_u8s8": static(CODES, U8, S8),
    "codes_u8s8_per_channel": static(CODES, U8, S8, per_channel=True),
    "codes_s8s8": static(CODES, S8, S8),
    "codes_u8u8": static(CODES, U8, U8),
    "dynamic_s8": dynamic(S8),
    "dynamic_u8": dynamic(U8),
    "dynamic_per_channel": dynamic(S8, per_channel=True),
    "blocks_4_symmetric": blocks(CODES, 4, True),
    "blocks_4": blocks(CODES, 4, False),
    "blocks_8": blocks(CODES, 8, False),
    "blocks_4_qdq_symmetric": blocks(QDQ, 4, True),
    "blocks_4_qdq": blocks(QDQ, 4, False),
}
