"""Operators with inputs of their own kind: conversions, constants, losses, dropout."""
import numpy as np
import onnx
from case import NoCase
from draw import DTYPES, WORDS, element_type, type_name
from onnx import numpy_helper


def cast_like(case):
    d = case.draw
    target = case.type("target_type")
    if "string" in (target, case.type("input")):
        raise NoCase("Cast is where text is tried")
    case.tensor("input", d.shape(), *((0, 6) if target.startswith("u") else (None, None)))
    case.tensor("target_type", (1,))
    case.maybe("saturate", d.integer(0, 1), 0.3)
    case.maybe("round_mode", d.choice(["up", "down", "nearest"]), 0.3)


def bit_cast(case):
    d = case.draw
    x = case.tensor("input", d.shape())
    bits = {name: dtype.itemsize * 8 for name, dtype in DTYPES.items() if name not in ("string", "bool")}
    bits |= {"bool": 8, "int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}
    kind = type_name(x.dtype)
    if kind == "string":
        raise NoCase("text has no bits")
    case.set("to", element_type(d.choice([name for name, size in bits.items() if size == bits[kind] and name != "bool"])))


def constant(case):
    d, floats = case.draw, lambda count: [float(x) for x in np.round(d.rng.uniform(-2, 2, count), 3)]
    kinds = ["float", "double", "float16", "int32", "int64", "bool", "string", "uint8"]
    ways = {
        "value": lambda: numpy_helper.from_array(d.tensor(d.choice(kinds), d.shape())),
        "value_float": lambda: floats(1)[0], "value_floats": lambda: floats(d.integer(0, 4)),
        "value_int": lambda: d.integer(-9, 9), "value_ints": lambda: [d.integer(-9, 9) for _ in range(d.integer(0, 4))],
        "value_string": lambda: d.choice(WORDS), "value_strings": lambda: [d.choice(WORDS) for _ in range(d.integer(0, 4))],
        "sparse_value": lambda: sparse(d),
    }
    name = d.choice([name for name in ways if name in case.schema.attributes])
    case.set(name, ways[name]())


def sparse(d):
    shape = d.shape(low=1, high=3, empty=False)
    total = int(np.prod(shape))
    places = np.sort(d.rng.permutation(total)[:d.integer(1, total)])
    indices = places if d.chance() else np.stack(np.unravel_index(places, shape), axis=-1)
    values = d.tensor(d.choice(["float", "double", "int64", "int32"]), places.shape)
    return onnx.helper.make_sparse_tensor(numpy_helper.from_array(values, "values"),
                                          numpy_helper.from_array(indices.astype(np.int64), "indices"), shape)


def dropout(case):
    """Where nothing is dropped: what is dropped in training is a matter of chance."""
    d = case.draw
    case.tensor("data", d.shape())
    case.outputs = d.integer(1, 2)
    case.set("is_test", 1)
    training, ratio = d.chance(0.3), d.choice([0.0, 0.3])
    if "ratio" in case.schema.attributes:
        case.maybe("ratio", ratio)
    elif case.version >= 12:
        if training or d.chance():
            case.set("ratio", np.array(0.0 if training else ratio, dtype=DTYPES[case.type("ratio")]))
        if training or d.chance():
            case.set("training_mode", np.array(training))
        case.maybe("seed", d.integer(0, 9), 0.3)


def loss(case):
    d = case.draw
    classes, batch, rest = d.integer(2, 5), d.dim(), d.shape(high=2, empty=False)
    names = [p.name for p in case.schema.inputs]
    case.tensor(names[0], (batch, classes, *rest))
    labels = d.tensor(case.type(names[1]), (batch, *rest), 0, classes - 1)
    case.set(names[1], labels)
    if d.chance(0.4):
        case.set(names[2], d.tensor(case.type(names[0]), (classes,), 0.2, 2))
    case.maybe("reduction", d.choice(["none", "sum", "mean"]))
    if d.chance(0.3):
        case.set("ignore_index", d.choice([-1, d.integer(0, classes - 1)]))
        if case.attributes["ignore_index"] < 0:
            labels[d.rng.random(labels.shape) < 0.3] = -1
    if len(case.schema.outputs) > 1:
        case.outputs = d.integer(1, 2)
    case.wide = True


RECIPES = {"CastLike": cast_like, "BitCast": bit_cast, "Constant": constant, "Dropout": dropout, "NegativeLogLikelihoodLoss": loss,
           "SoftmaxCrossEntropyLoss": loss}
