"""Operators that work element by element, reductions, and others whose inputs have any shape."""
import numpy as np
from draw import FLOATS, element_type

# Where the operator is defined, or where runtimes agree.
RANGES = {
    "Acos": (-1, 1), "Acosh": (1, 5), "Asin": (-1, 1), "Atanh": (-0.9, 0.9), "Log": (0.05, 5), "Sqrt": (0, 9),
    "Reciprocal": (0.3, 3), "Exp": (-4, 4), "Sinh": (-3, 3), "Cosh": (-3, 3), "Tan": (-1.2, 1.2),
}

# Attributes with what to draw them from: a range of floats, or a list.
ATTRIBUTES = {
    "Elu": {"alpha": (0.1, 2.0)}, "Selu": {"alpha": (0.5, 2.0), "gamma": (0.5, 2.0)}, "Celu": {"alpha": (0.3, 2.0)},
    "LeakyRelu": {"alpha": (-0.5, 1.5)}, "HardSigmoid": {"alpha": (0.1, 0.6), "beta": (0.1, 0.8)},
    "ThresholdedRelu": {"alpha": (-1.0, 2.0)}, "Shrink": {"lambd": (0.1, 1.0), "bias": (-0.5, 0.5)},
    "Gelu": {"approximate": ["none", "tanh"]}, "Swish": {"alpha": (0.3, 2.0)},
    "IsInf": {"detect_negative": [0, 1], "detect_positive": [0, 1]},
}

UNARY = ["Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp",
         "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "NonZero",
         "Not", "Reciprocal", "Relu", "Round", "Selu", "Shape", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Size", "Softplus",
         "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu"]
BINARY = ["Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
          "LessOrEqual", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Xor"]
VARIADIC = ["Max", "Mean", "Min", "Sum"]
REDUCE = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
          "ReduceSum", "ReduceSumSquare"]


def attributes(case):
    for name, options in ATTRIBUTES.get(case.schema.name, {}).items():
        value = float(case.draw.rng.uniform(*options)) if isinstance(options, tuple) else case.draw.choice(options)
        case.maybe(name, value)


def unary(case):
    name, d = case.schema.inputs[0].name, case.draw
    low, high = RANGES.get(case.schema.name, (None, None))
    if case.type(name).startswith("uint") and low is not None:
        low = max(low, 0)
    x = case.tensor(name, d.shape(), low, high)
    if case.schema.name in ("IsInf", "IsNaN") and x.size:
        x.flat[0] = d.choice([float("nan"), float("inf"), float("-inf")])
    if case.schema.name == "Shape" and case.has("start"):
        case.maybe("start", d.integer(-5, 5))
        case.maybe("end", d.integer(-5, 5))
    attributes(case)


def one_sided(case, shape):
    """Before version 7: a shape that occurs in the other, which `broadcast` allows and `axis` finds."""
    d = case.draw
    if not shape or d.chance(0.4):
        case.maybe("broadcast", 0)
        return shape
    case.set("broadcast", 1)
    first = d.integer(0, len(shape) - 1)
    last = len(shape)
    if d.chance():
        last = d.integer(first + 1, len(shape))
        case.set("axis", first)
    return shape[first:last]


def binary(case):
    d, names = case.draw, [p.name for p in case.schema.inputs]
    op = case.schema.name
    shape = d.shape()
    other = d.broadcast(shape)
    if "broadcast" in case.schema.attributes:
        other = one_sided(case, shape)
    elif op != "PRelu" and d.chance(0.3):
        shape, other = other, shape
    first = case.type(names[0])
    low, high = (None, None)
    if op == "Pow":
        low, high = 0.2, 3
    if op == "BitShift":
        low, high = 0, 100
        case.set("direction", d.choice(["LEFT", "RIGHT"]))
    case.tensor(names[0], shape, low, high)
    second = case.type(names[1])
    ranges = {"Pow": (0, 3), "BitShift": (0, 7)}
    low, high = ranges.get(op, (None, None))
    if op in ("Div", "Mod"):  # never by zero: runtimes differ
        low, high = 1, 6
    y = case.tensor(names[1], other, low, high)
    if op in ("Div", "Mod") and not second.startswith("uint") and d.chance(0.4):
        case.set(names[1], -y)
    if op == "Mod":
        case.maybe("fmod", 1 if first in FLOATS else d.integer(0, 1), 1.0 if first in FLOATS else 0.4)


def variadic(case):
    d, name = case.draw, case.schema.inputs[0].name
    shape = d.shape()
    for i in range(d.integer(1, 4)):
        other = shape if case.version < 8 else d.broadcast(shape)
        case.set(name, d.tensor(case.type(name), other), position=i)


def reduce(case):
    d = case.draw
    # Sums above 0 have logarithms, and products of these do not overflow.
    ranges = {"ReduceLogSum": (0.2, 3), "ReduceProd": (1, 1)}
    x = case.tensor("data", d.shape(empty=False), *ranges.get(case.schema.name, (None, None)))
    if case.schema.name == "ReduceProd":
        for _ in range(8):
            x.flat[d.integer(0, x.size - 1)] = d.integer(1, 4)
    if d.chance(0.8) and x.ndim:
        case.set("axes", d.ints(sorted(a % x.ndim for a in d.axes(x.ndim))) if case.version < 11 else d.ints(d.axes(x.ndim)))
    case.maybe("keepdims", d.integer(0, 1))
    case.maybe("noop_with_empty_axes", d.integer(0, 1), 0.3)


def arg_reduce(case):
    d = case.draw
    x = case.tensor("data", d.shape(low=1, empty=False))
    case.maybe("axis", d.axis(x.ndim) if case.version >= 11 else d.integer(0, x.ndim - 1))
    case.maybe("keepdims", d.integer(0, 1))
    case.maybe("select_last_index", d.integer(0, 1))


def softmax(case):
    d = case.draw
    x = case.tensor("input", d.shape(low=1, empty=False))
    if case.version < 13 and x.ndim == 1:
        return case.set("axis", 0)
    case.maybe("axis", d.axis(x.ndim) if case.version >= 11 else d.integer(0, x.ndim - 1))
    if case.version < 13 and "axis" not in case.attributes and x.ndim < 2:
        case.set("axis", 0)


def clip(case):
    d, name = case.draw, case.schema.inputs[0].name
    case.tensor(name, d.shape())
    kind = case.type(name)
    for bound, low, high in (("min", 0 if kind.startswith("uint") else -2, 1), ("max", 1, 3)):
        if d.chance(0.6):
            value = d.tensor(kind, (), low, high)
            case.set(bound, float(value) if bound in case.schema.attributes else value)


def where(case):
    d = case.draw
    shape = d.shape()
    case.tensor("condition", d.broadcast(shape))
    case.tensor("X", d.broadcast(shape))
    case.tensor("Y", shape)


def cast(case):
    d = case.draw
    to = d.choice(["float", "double", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                   "uint64", "bool", "string", "float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz", "int4", "uint4", "float4e2m1",
                   "float8e8m0", "int2", "uint2"])
    source = case.type("input")
    if source == "string":
        texts = ["1", "0", "12", "3"] if to.startswith(("int", "uint", "bool")) else ["1.5", "-2", "1e3", "NaN", "INF", "-INF", "0.25"]
        x = d.ints([d.integer(0, len(texts) - 1) for _ in range(d.dim())])
        case.set("input", np.array([texts[i] for i in x], dtype=object))
    else:
        case.tensor("input", d.shape(), *((0, 6) if to.startswith("u") else (None, None)))
    case.set("to", element_type(to) if case.version >= 6 else to.upper())
    case.maybe("saturate", d.integer(0, 1), 0.3)
    case.maybe("round_mode", d.choice(["up", "down", "nearest"]), 0.3)


def cumulative(case):
    d = case.draw
    x = case.tensor("x", d.shape(low=1, empty=False))
    case.set("axis", d.ints(d.axis(x.ndim)))
    case.maybe("exclusive", d.integer(0, 1))
    case.maybe("reverse", d.integer(0, 1))


RECIPES = {**dict.fromkeys(UNARY, unary), **dict.fromkeys(BINARY, binary), **dict.fromkeys(VARIADIC, variadic),
           **dict.fromkeys(REDUCE, reduce), **dict.fromkeys(["ArgMax", "ArgMin"], arg_reduce),
           **dict.fromkeys(["Softmax", "LogSoftmax", "Hardmax"], softmax), "Clip": clip, "Where": where, "Cast": cast,
           "CumSum": cumulative, "CumProd": cumulative}
