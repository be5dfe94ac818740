"""Operators of com.microsoft that quantized models carry."""
import numpy as np

from .case import IMAGE, TOKENS, Case, Input, f, i8, scalar, u8

LAST = (1, 56, 56, 64)  # an image whose channels come last
BYTE = np.uint8


def case(operator, what, inputs, attributes=None, outputs=1):
    return Case(operator, f"com.microsoft {what}".strip(), inputs, attributes or {}, outputs, opset=1, domain="com.microsoft")


def codes(*shape, scale=0.02, zero=128):
    """A tensor, its scale and its zero point."""
    return [u8(*shape), scalar(scale), scalar(zero, BYTE)]


def to(scale=0.03, zero=120):
    return [scalar(scale), scalar(zero, BYTE)]


def conv(x, w, **attributes):
    weights = [i8(*w, constant=True), scalar(0.01), scalar(0, np.int8)]
    return case("QLinearConv", "depthwise" if "group" in attributes else "", [*codes(*x), *weights, *to(0.4)],
                {"channels_last": 1, **attributes})


def right(rows, columns):
    return i8(rows, columns, constant=True)


def few_bits(rows, n, k, block=32, level=0):
    weights = [Input(n, k // block, block // 2, low=0, high=255, dtype=BYTE, constant=True), Input(n, k // block, low=0.01, high=0.1, constant=True)]
    return case("MatMulNBits", f"{rows} rows, blocks of {block}, level {level}", [f(rows, k), *weights],
                {"N": n, "K": k, "bits": 4, "block_size": block, "accuracy_level": level})


def table(*shape):
    return u8(*shape, constant=True)


ids = Input(1, 128, low=0, high=999, dtype=np.int32)
signed_zero = Input(1, values=[0], dtype=np.int8, constant=True)
lstm_scale = Input(1, values=[0.003], constant=True)

CASES = [
    case("QAttention", "", [u8(1, 128, 768), right(768, 2304), f(2304, constant=True), scalar(0.01), scalar(0.01), None, scalar(128, BYTE), scalar(0, np.int8)],
         {"num_heads": 12}),
    case("DynamicQuantizeLSTM", "", [f(32, 1, 256), i8(1, 256, 1024, constant=True), i8(1, 256, 1024, constant=True), None, None, None, None, None,
                                     lstm_scale, signed_zero, lstm_scale, signed_zero], {"hidden_size": 256}),
    case("QEmbedLayerNormalization", "", [ids, None, table(1000, 768), table(512, 768), None, table(768), table(768), None,
                                          *[scalar(0.01), scalar(0.01), None, scalar(0.01), scalar(0.01)],
                                          *[scalar(128, BYTE), scalar(128, BYTE), None, scalar(128, BYTE), scalar(128, BYTE)]], outputs=2),
    few_bits(1, 4096, 4096),
    few_bits(1, 4096, 4096, level=4),
    few_bits(1, 4096, 4096, block=128, level=4),
    few_bits(128, 1024, 1024),
    few_bits(128, 1024, 1024, level=4),
    case("GatherBlockQuantized", "", [Input(4096, 512, low=0, high=255, dtype=BYTE, constant=True), Input(1, 128, low=0, high=4095, dtype=np.int64),
                                      Input(4096, 32, low=0.01, high=0.1, constant=True)], {"bits": 4, "block_size": 32}),
    case("QLinearAdd", "", [*codes(*IMAGE), *codes(*IMAGE, scale=0.03), *to()]),
    case("QLinearMul", "", [*codes(*IMAGE), *codes(*IMAGE, scale=0.03), *to()]),
    case("QLinearMul", "by channel", [*codes(*LAST), *codes(1, 1, 1, 64, scale=0.03), *to()]),
    case("QLinearSigmoid", "", [*codes(*IMAGE), *to(1 / 256, 0)]),
    case("QLinearLeakyRelu", "", [*codes(*IMAGE), *to()], {"alpha": 0.1}),
    case("QLinearWhere", "", [Input(*IMAGE, dtype=np.bool_), *codes(*IMAGE), *codes(*IMAGE, scale=0.03), *to()]),
    case("QLinearSoftmax", "", [*codes(1, 12, 128, 128), *to(1 / 256, 0)], {"axis": -1, "opset": 13}),
    case("QLinearConcat", "", [*to(), *codes(*IMAGE), *codes(*IMAGE, scale=0.03)], {"axis": 1}),
    case("QLinearAveragePool", "", [*codes(*IMAGE), *to()], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    case("QLinearGlobalAveragePool", "", [*codes(*LAST), *to()], {"channels_last": 1}),
    conv(LAST, (64, 64, 3, 3), pads=[1, 1, 1, 1]),
    conv((1, 56, 56, 96), (96, 1, 3, 3), pads=[1, 1, 1, 1], group=96),
    case("NhwcMaxPool", "", [u8(*LAST)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    case("QGemm", "", [*codes(128, 768), right(768, 768), scalar(0.01), scalar(0, np.int8), Input(768, low=-900, high=900, dtype=np.int32, constant=True), *to(0.5)]),
    case("MatMulIntegerToFloat", "", [u8(128, 768), right(768, 768), scalar(0.02), scalar(0.01), scalar(128, BYTE)]),
    case("DynamicQuantizeMatMul", "", [f(128, 768), right(768, 768), scalar(0.01)]),
    case("QuantizeLinear", "uint16", [f(*TOKENS), scalar(0.0002), scalar(32768, np.uint16)]),
    case("DequantizeLinear", "uint16", [Input(*TOKENS, low=0, high=65535, dtype=np.uint16), scalar(0.0002), scalar(32768, np.uint16)]),
]
