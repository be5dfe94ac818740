"""Quantization, and products of quantized numbers."""
import numpy as np
from draw import DTYPES, element_type
from networks import window


def quantize(case):
    d, forwards = case.draw, case.schema.name == "QuantizeLinear"
    (x_name, scale, zero), low = [p.name for p in case.schema.inputs], -20 if forwards else None
    x = case.tensor(x_name, d.shape(low=1, empty=False), low, None if low is None else 20)
    axis, block, shape = 0, 0, ()
    if case.has("block_size") and d.chance(0.3):
        axis, block = d.axis(x.ndim), d.integer(1, 3)
        shape = tuple(-(-size // block) if a == axis % x.ndim else size for a, size in enumerate(x.shape))
        case.set("block_size", block)
    elif case.has("axis") and d.chance(0.5):
        axis = d.axis(x.ndim)
        shape = (x.shape[axis],)
    if shape:
        case.set("axis", axis)
    case.set(scale, d.tensor(case.type(scale, ("float", "float16", "bfloat16")), shape, 0.1, 1.5))
    kind = case.type(zero)
    if d.chance(0.7):
        exact = kind == "int32" or kind.startswith("float")  # these have no zero point but 0
        case.set(zero, np.zeros(shape, dtype=DTYPES[kind]) if exact else d.tensor(kind, shape, 0, 7))
    elif forwards and case.has("output_dtype"):
        case.set("output_dtype", element_type(kind))
    if kind.startswith("float8"):
        case.maybe("saturate", d.integer(0, 1))
    if forwards and case.has("precision"):
        case.maybe("precision", element_type(d.choice(["float", "float16"])), 0.2)
    if not forwards and case.has("output_dtype"):
        case.maybe("output_dtype", element_type(d.choice(["float", "float16", "bfloat16"])), 0.2)


def dynamic_quantize(case):
    case.tensor("x", case.draw.shape(low=1, empty=False), -4, 5)
    case.outputs = 3


def scale_and_zero(case, prefix, kind, shape=()):
    d = case.draw
    names = [p.name for p in case.schema.inputs]
    scale = next(n for n in names if n.startswith(prefix) and n.endswith("scale"))
    zero = next(n for n in names if n.startswith(prefix) and n.endswith("zero_point"))
    case.set(scale, d.rng.uniform(0.02, 0.3, shape).astype(np.float32))
    case.set(zero, d.tensor(kind, shape, 0, 4))


def qlinear_matmul(case):
    d = case.draw
    m, k, n = d.dim(), d.dim(), d.dim()
    batch = d.shape(high=2, empty=False)
    kinds = ("uint8", "int8")
    case.tensor("a", (*batch, m, k), 0, 30, only=kinds)
    case.tensor("b", (*batch, k, n), 0, 30, only=kinds)
    scale_and_zero(case, "a", case.type("a"))
    scale_and_zero(case, "b", case.type("b"))
    scale_and_zero(case, "y", case.type("y_zero_point", kinds))
    case.absolute = 1.0  # a tie may round either way


def qlinear_conv(case):
    d = case.draw
    spatial = d.choice([1, 2, 2, 2, 3])
    groups, per_group = d.choice([1, 1, 2]), d.integer(1, 3)
    outputs, kernel = groups * d.integer(1, 3), [d.integer(1, 3) for _ in range(spatial)]
    image = window(case, spatial, kernel, [d.integer(3, 6) for _ in range(spatial)])
    case.tensor("x", (d.integer(1, 2), groups * per_group, *image), 0, 30)
    case.tensor("w", (outputs, per_group, *kernel), 0, 30)
    scale_and_zero(case, "x", case.type("x"))
    scale_and_zero(case, "w", case.type("w"), (outputs,) if d.chance(0.3) else ())
    scale_and_zero(case, "y", case.type("y_zero_point"))
    if d.chance():
        case.set("B", d.tensor("int32", (outputs,), -50, 50))
    case.set("group", groups)
    case.maybe("kernel_shape", kernel)
    case.constants |= {1, 2, 3, 4, 5, 6, 7}
    case.absolute = 1.0


RECIPES = {"QuantizeLinear": quantize, "DequantizeLinear": quantize, "DynamicQuantizeLinear": dynamic_quantize,
           "QLinearMatMul": qlinear_matmul, "QLinearConv": qlinear_conv}
