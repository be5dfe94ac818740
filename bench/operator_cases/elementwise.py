"""Elementwise operators, comparisons, casts and quantization."""
import numpy as np
from onnx import TensorProto

from .case import BATCH, IMAGE, TOKENS, Case, Input, f, given, half, i8, i32, i64, scalar, truth, u8, weights

UNARY = {name: {} for name in
         ["Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "HardSwish",
          "Identity", "IsInf", "IsNaN", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
          "Softsign", "Sqrt", "Tan", "Tanh"]}
UNARY |= {"Elu": {"alpha": 0.5}, "Selu": {}, "Celu": {"alpha": 0.7}, "LeakyRelu": {"alpha": 0.1}, "HardSigmoid": {}, "ThresholdedRelu": {},
          "Shrink": {"lambd": 0.5}, "Gelu": {}}
RANGES = {"Acos": (-1, 1), "Asin": (-1, 1), "Acosh": (1, 4), "Atanh": (-0.9, 0.9), "Log": (0.1, 5), "Sqrt": (0, 5)}
ARITHMETIC = ["Add", "Sub", "Mul", "Div"]
COMPARISONS = ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]
FLOAT, FLOAT16, BFLOAT16, INT8, INT32, INT64, UINT8, BOOL, STRING = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8,
    TensorProto.BOOL, TensorProto.STRING)


def ranged(name, *shape):
    low, high = RANGES.get(name, (-2, 2))
    return f(*shape, low=low, high=high)


CASES = [Case(name, "", [ranged(name, *IMAGE)], attributes) for name, attributes in UNARY.items()]
CASES += [Case(name, "out of cache", [f(*BATCH)], UNARY[name]) for name in ["Relu", "Sigmoid", "Tanh", "Erf", "Gelu", "LeakyRelu", "Exp", "Neg"]]
CASES += [Case(name, "float16", [half(*IMAGE)], UNARY[name]) for name in ["Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Sqrt", "Gelu"]]
CASES += [Case(name, "int64", [i64(*TOKENS)]) for name in ["Abs", "Neg", "Sign"]]
CASES += [Case(name, "double", [f(*TOKENS, low=0.1, dtype=np.float64)]) for name in ["Exp", "Log", "Sin", "Sqrt"]]

CASES += [Case(name, "", [f(*IMAGE, low=0.5), f(*IMAGE, low=0.5)]) for name in ARITHMETIC + COMPARISONS + ["PRelu"]]
CASES += [Case(name, "by channel", [f(*IMAGE, low=0.5), f(64, 1, 1, low=0.5)]) for name in [*ARITHMETIC, "PRelu"]]
CASES += [Case(name, "by last axis", [f(*TOKENS, low=0.5), weights(768)]) for name in ["Add", "Mul"]]
CASES += [Case(name, "by row", [f(*TOKENS, low=0.5), f(1, 128, 1, low=0.5)]) for name in ["Sub", "Div"]]
CASES += [Case(name, "scalar", [f(*TOKENS), scalar(0.125)]) for name in ARITHMETIC]
CASES += [Case(name, "out of cache", [f(*BATCH), f(*BATCH)]) for name in ["Add", "Mul"]]
CASES += [Case(name, "outer", [f(1, 512, 1), f(1, 1, 512)]) for name in ["Add", "Less"]]
CASES += [Case(name, "float16", [half(*IMAGE, low=0.5), half(*IMAGE, low=0.5)]) for name in ["Add", "Mul", "Div"]]
CASES += [Case(name, "int64", [i64(*TOKENS, low=1), i64(*TOKENS, low=1)]) for name in [*ARITHMETIC, "Equal", "Less"]]
CASES += [Case(name, "int32", [i32(*TOKENS, low=1), i32(*TOKENS, low=1)]) for name in ["Add", "Mul", "Equal"]]
CASES += [Case(name, "double", [f(*TOKENS, dtype=np.float64)] * 2) for name in ["Add", "Mul"]]
CASES += [Case(name, "", [truth(*IMAGE), truth(*IMAGE)]) for name in ["And", "Or", "Xor"]]
CASES += [Case(name, "mask", [truth(1, 1, 512, 512), truth(1, 1, 1, 512)]) for name in ["And"]]
CASES += [Case(name, "", [i32(*IMAGE), i32(*IMAGE)]) for name in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]]
CASES += [
    Case("Pow", "square", [f(*IMAGE), scalar(2)]),
    Case("Pow", "2.5", [f(*IMAGE, low=0.1), scalar(2.5)]),
    Case("Pow", "half", [f(*IMAGE, low=0.1), scalar(0.5)]),
    Case("Pow", "of a scalar", [scalar(10000.0), f(*TOKENS)]),
    Case("Pow", "two tensors", [f(*TOKENS, low=0.1), f(*TOKENS)]),
    Case("Mod", "int64", [i64(*IMAGE), i64(*IMAGE, low=1, high=7)]),
    Case("Mod", "int64 by one number", [i64(*TOKENS), scalar(7, np.int64)]),
    Case("Mod", "fmod", [f(*IMAGE), f(*IMAGE, low=0.5)], {"fmod": 1}),
    Case("BitShift", "", [Input(*IMAGE, low=0, high=100, dtype=np.uint32), Input(*IMAGE, low=0, high=7, dtype=np.uint32)], {"direction": "LEFT"}),
    Case("BitwiseNot", "", [i32(*IMAGE)]),
    Case("Not", "", [truth(*IMAGE)]),
    Case("Max", "", [f(*IMAGE), f(*IMAGE)]), Case("Min", "", [f(*IMAGE), f(*IMAGE)]),
    Case("Max", "scalar", [f(*IMAGE), scalar(0)]), Case("Min", "int64", [i64(*TOKENS), i64(*TOKENS)]),
    Case("Max", "three", [f(*IMAGE), f(*IMAGE), f(*IMAGE)]),
    Case("Sum", "", [f(*IMAGE), f(*IMAGE), f(*IMAGE)]), Case("Mean", "", [f(*IMAGE), f(*IMAGE), f(*IMAGE)]),
    Case("Clip", "", [f(*IMAGE), scalar(0), scalar(1)]), Case("Clip", "out of cache", [f(*BATCH), scalar(0), scalar(6)]),
    Case("Clip", "int64", [i64(*TOKENS), scalar(0, np.int64), scalar(500, np.int64)]),
    Case("Clip", "uint8", [u8(*IMAGE), scalar(16, np.uint8), scalar(235, np.uint8)]),
    Case("Where", "", [truth(*IMAGE), f(*IMAGE), f(*IMAGE)]),
    Case("Where", "mask", [truth(1, 1, 128, 128), f(1, 12, 128, 128), scalar(-1e9)]),
    Case("Where", "scalars", [truth(1, 1, 512, 512), scalar(0), scalar(-1e9)]),
    Case("Where", "int64", [truth(*TOKENS), i64(*TOKENS), i64(*TOKENS)]),
    Case("Where", "by row", [truth(1, 128, 1), f(*TOKENS), f(768)]),
    Case("Where", "out of cache", [truth(*BATCH), f(*BATCH), f(*BATCH)]),
    Case("Where", "float16", [truth(1, 1, 128, 128), half(1, 12, 128, 128), scalar(-1e4, np.float16)]),
    Case("Dropout", "", [f(*IMAGE)]), Case("Dropout", "training", [f(*IMAGE), scalar(0.5), scalar(True, np.bool_)]),
    Case("CastLike", "", [f(*IMAGE), half(1)]), Case("BitCast", "", [f(*IMAGE)], {"to": INT32}, opset=26),
    Case("Swish", "", [f(*IMAGE)], opset=24),
]
CASES += [Case("Cast", what, [source], {"to": to}) for what, source, to in [
    ("float to float16", f(*IMAGE), FLOAT16), ("float16 to float", half(*IMAGE), FLOAT), ("float to bfloat16", f(*IMAGE), BFLOAT16),
    ("float to int64", f(*IMAGE), INT64), ("float to int32", f(*IMAGE), INT32), ("float to uint8", f(*IMAGE, low=0, high=255), UINT8),
    ("float to bool", f(*IMAGE), BOOL), ("float to double", f(*IMAGE), TensorProto.DOUBLE), ("uint8 to float", u8(*IMAGE), FLOAT),
    ("int8 to float", i8(*IMAGE), FLOAT), ("int64 to float", i64(*TOKENS), FLOAT), ("int32 to float", i32(*TOKENS), FLOAT),
    ("int64 to int32", i64(*TOKENS), INT32), ("int32 to int64", i32(*TOKENS), INT64), ("int64 to bool", i64(*TOKENS), BOOL),
    ("bool to float", truth(*IMAGE), FLOAT), ("bool to int64", truth(*IMAGE), INT64), ("double to float", f(*TOKENS, dtype=np.float64), FLOAT),
    ("uint8 to float, out of cache", u8(*BATCH), FLOAT), ("float to float16, out of cache", f(*BATCH), FLOAT16),
    ("float to string", f(5000), STRING), ("int64 to string", i64(5000), STRING),
    ("string to float", given([f"{i / 7:.4f}" for i in range(5000)], object), FLOAT), ("string to int64", given([str(i) for i in range(5000)], object), INT64),
]]
CASES += [
    Case("QuantizeLinear", "", [f(*IMAGE), scalar(0.02), scalar(128, np.uint8)]),
    Case("QuantizeLinear", "int8", [f(*TOKENS), scalar(0.02), scalar(0, np.int8)]),
    Case("QuantizeLinear", "by channel", [f(256, 64, 3, 3), Input(256, low=0.01, high=0.1, constant=True), Input(256, low=0, high=0, dtype=np.int8, constant=True)], {"axis": 0}),
    Case("QuantizeLinear", "uint16", [f(*IMAGE), scalar(0.0002), scalar(32768, np.uint16)]),
    Case("DequantizeLinear", "", [u8(*IMAGE), scalar(0.02), scalar(128, np.uint8)]),
    Case("DequantizeLinear", "by channel", [i8(768, 768), weights(768)], {"axis": 0}),
    Case("DequantizeLinear", "by column", [i8(768, 768), weights(768)], {"axis": 1}),
    Case("DequantizeLinear", "blocks of 32", [i8(768, 768), f(768, 24)], {"axis": 1, "block_size": 32}),
    Case("DequantizeLinear", "int32", [i32(*TOKENS), scalar(0.002)]),
    Case("DynamicQuantizeLinear", "", [f(*IMAGE)], outputs=3), Case("DynamicQuantizeLinear", "tokens", [f(*TOKENS)], outputs=3),
]
