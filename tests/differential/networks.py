"""Operators of neural networks: products, convolutions, pools, normalisations, recurrence, quantization."""
import numpy as np
from case import NoCase
from draw import DTYPES


def matmul(case):
    d = case.draw
    m, k, n = d.dim(), d.dim(low=0 if d.chance(0.05) else 1), d.dim()
    batch = d.shape(high=2)
    a, b = (*d.broadcast(batch), m, k), (*batch, k, n)
    if d.chance(0.15):
        a = (k,)
    elif d.chance(0.15):
        b = (k,)
    names = [p.name for p in case.schema.inputs]
    case.wide = True
    case.tensor(names[0], a)
    case.tensor(names[1], b)
    if case.schema.name == "MatMulInteger":
        if d.chance(0.6):
            case.set("a_zero_point", d.tensor(case.type("A"), (), 0, 3))
        if d.chance(0.6):
            case.set("b_zero_point", d.tensor(case.type("B"), (), 0, 3))


def gemm(case):
    d = case.draw
    case.wide = True
    m, k, n = d.dim(), d.dim(), d.dim()
    ta, tb = d.integer(0, 1), d.integer(0, 1)
    case.tensor("A", (k, m) if ta else (m, k))
    case.tensor("B", (n, k) if tb else (k, n))
    if case.version < 11 or d.chance(0.7):
        shape = d.choice([(m, n), (1, n), (m, 1), (n,), (1,), ()]) if case.version >= 7 else (m, n)
        case.tensor("C", shape)
    case.maybe("transA", ta, 1.0 if ta else 0.3)
    case.maybe("transB", tb, 1.0 if tb else 0.3)
    integral = case.type("A").startswith(("int", "uint"))
    for name in ("alpha", "beta"):
        case.maybe(name, float(d.integer(1, 3)) if integral else float(d.rng.uniform(-2, 2)), 0.4)


def window(case, spatial, kernel, inputs):
    """Attributes of something that slides over an image, such that at least one position is left."""
    d = case.draw
    if case.has("dilations"):
        dilations = [d.integer(1, 2) if d.chance(0.3) else 1 for _ in range(spatial)]
        case.maybe("dilations", dilations, 1.0 if any(x > 1 for x in dilations) else 0.2)
    else:
        dilations = [1] * spatial
    strides = [d.integer(1, 3) if d.chance(0.5) else 1 for _ in range(spatial)]
    case.maybe("strides", strides, 1.0 if any(x > 1 for x in strides) else 0.3)
    reach = [(k - 1) * x + 1 for k, x in zip(kernel, dilations)]
    if d.chance(0.2) and dilations == [1] * spatial:
        case.set("auto_pad", d.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    elif d.chance(0.5):
        case.set("pads", [d.integer(0, k - 1) for k in kernel * 2])
    return [max(size, r) for size, r in zip(inputs, reach)]


def conv(case):
    d = case.draw
    case.wide = True
    spatial = d.choice([1, 2, 2, 3])
    kernel = [d.integer(1, 3) for _ in range(spatial)]
    groups = d.choice([1, 1, 2, 3])
    per_group, outputs = d.integer(1, 3), groups * d.integer(1, 3)
    x_name, w_name = case.schema.inputs[0].name, case.schema.inputs[1].name
    image = window(case, spatial, kernel, [d.integer(1, 7) for _ in range(spatial)])
    case.tensor(x_name, (d.integer(1, 2), groups * per_group, *image))
    case.tensor(w_name, (outputs, per_group, *kernel))
    case.maybe("group", groups, 1.0 if groups > 1 else 0.2)
    case.maybe("kernel_shape", kernel)
    case.constants |= {1} if d.chance() else set()
    if case.schema.name == "ConvInteger":
        if d.chance(0.5):
            case.set("x_zero_point", d.tensor(case.type(x_name), (), 0, 3))
        if d.chance(0.5):
            case.set("w_zero_point", d.tensor(case.type(w_name), (), 0, 3))
    elif d.chance(0.5):
        case.tensor("B", (outputs,))


def conv_transpose(case):
    d = case.draw
    spatial = d.choice([1, 2, 2, 3])
    kernel = [d.integer(1, 3) for _ in range(spatial)]
    groups = d.choice([1, 1, 2])
    inputs, outputs = groups * d.integer(1, 3), d.integer(1, 3)
    case.tensor("X", (d.integer(1, 2), inputs, *[d.integer(1, 5) for _ in range(spatial)]))
    case.tensor("W", (inputs, outputs, *kernel))
    strides = [d.integer(1, 3) for _ in range(spatial)]
    case.maybe("strides", strides)
    if "strides" in case.attributes and d.chance(0.3):
        case.set("output_padding", [d.integer(0, s - 1) for s in strides])
    elif d.chance(0.3):
        case.set("dilations", [d.integer(1, 2) for _ in range(spatial)])
    if d.chance(0.4):
        case.set("pads", [d.integer(0, k - 1) // 2 for k in kernel * 2])
    case.maybe("group", groups, 1.0 if groups > 1 else 0.2)
    case.maybe("kernel_shape", kernel)
    if d.chance(0.5):
        case.tensor("B", (groups * outputs,))


def pool(case):
    d = case.draw
    spatial = d.choice([1, 2, 2, 3])
    kernel = [d.integer(1, 3) for _ in range(spatial)]
    image = window(case, spatial, kernel, [d.integer(1, 7) for _ in range(spatial)])
    case.set("kernel_shape", kernel)
    if "auto_pad" not in case.attributes:
        case.maybe("ceil_mode", d.integer(0, 1), 0.3)
    case.maybe("count_include_pad", d.integer(0, 1), 0.4)
    if case.schema.name == "LpPool":
        case.maybe("p", d.integer(1, 3))
    case.tensor("X", (d.integer(1, 2), d.integer(1, 3), *image))
    case.attributes = {k: v for k, v in case.attributes.items() if k in case.schema.attributes}
    if case.schema.name == "MaxPool" and case.version >= 8 and d.chance(0.3):
        case.outputs = 2


def global_pool(case):
    d = case.draw
    case.tensor("X", (d.dim(), d.dim(), *[d.dim() for _ in range(d.integer(1, 3))]))
    case.maybe("p", d.integer(1, 3))
    case.attributes = {k: v for k, v in case.attributes.items() if k in case.schema.attributes}


def batch_norm(case):
    d = case.draw
    x = case.tensor("X", d.shape(low=2, empty=False))
    names = [p.name for p in case.schema.inputs[1:5]]
    for name in names[:3]:
        case.set(name, d.tensor(case.type(name), (x.shape[1],)))
    case.set(names[3], d.tensor(case.type(names[3]), (x.shape[1],), 0.3, 2))
    case.maybe("epsilon", 1e-3)
    case.outputs = 1


def instance_norm(case):
    d = case.draw
    x = case.tensor("input", (d.dim(), d.dim(), *[d.dim() + 1 for _ in range(d.integer(1, 3))]))
    case.tensor("scale", (x.shape[1],))
    case.tensor("B", (x.shape[1],))
    case.maybe("epsilon", 1e-3)


def layer_norm(case):
    d = case.draw
    x = case.tensor("X", d.shape(low=1, empty=False))
    axis = d.axis(x.ndim)
    case.maybe("axis", axis, 1.0 if axis not in (-1, x.ndim - 1) else 0.5)
    names = [p.name for p in case.schema.inputs]
    rest = x.shape[axis % x.ndim:]
    case.tensor(names[1], rest)
    if len(names) > 2 and d.chance(0.6):
        case.tensor(names[2], rest)
    case.maybe("epsilon", 1e-3)
    case.outputs = 1
    case.wide = True


def group_norm(case):
    d, groups = case.draw, case.draw.integer(1, 3)
    channels = groups * d.integer(1, 3)
    case.tensor("X", (d.dim(), channels, *[d.dim() + 1 for _ in range(d.integer(1, 3))]))
    count = channels if case.version >= 21 else groups
    case.tensor("scale", (count,))
    case.tensor("bias", (count,))
    case.set("num_groups", groups)
    case.wide = True


def lrn(case):
    d = case.draw
    case.tensor("X", (d.dim(), d.dim(), d.dim(), d.dim()))
    case.set("size", d.choice([1, 3, 5]))
    case.maybe("alpha", 0.01)
    case.maybe("beta", 0.6)
    case.maybe("bias", 1.5)


def lp_norm(case):
    d = case.draw
    x = case.tensor("input", d.shape(low=1, empty=False), 0.5, 3)
    case.maybe("axis", d.axis(x.ndim))
    case.maybe("p", d.integer(1, 2))


def mean_variance(case):
    case.tensor("X", [case.draw.dim() + 1 for _ in range(4)])
    case.wide = True


def recurrent(case):
    d = case.draw
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[case.schema.name]
    steps, batch, size, hidden = d.dim(), d.dim(), d.dim(), d.dim()
    direction = d.choice(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    layout = 0
    case.maybe("direction", direction, 1.0 if direction != "forward" else 0.3)
    case.set("hidden_size", hidden)
    case.tensor("X", (batch, steps, size) if layout else (steps, batch, size))
    case.set("W", d.tensor(case.type("X"), (ways, gates * hidden, size), -0.5, 0.5))
    case.set("R", d.tensor(case.type("X"), (ways, gates * hidden, hidden), -0.5, 0.5))
    if d.chance(0.6):
        case.tensor("B", (ways, 2 * gates * hidden))
    if d.chance(0.4):
        case.set("sequence_lens", d.ints([d.integer(1, steps) for _ in range(batch)], "int32"))
    if d.chance(0.5):
        case.tensor("initial_h", (ways, batch, hidden))
    if case.schema.name == "LSTM":
        if d.chance(0.5):
            case.tensor("initial_c", (ways, batch, hidden))
        if d.chance(0.3):
            case.tensor("P", (ways, 3 * hidden))
    if case.schema.name == "GRU" and d.chance(0.5) and case.has("linear_before_reset"):
        case.set("linear_before_reset", 1)
    if d.chance(0.3):
        case.set("clip", 1.5)
    case.outputs = 3 if case.schema.name == "LSTM" else 2


def quantize(case):
    d = case.draw
    name = case.schema.inputs[0].name
    x = case.tensor(name, d.shape(low=1, empty=False), -20 if case.schema.name == "QuantizeLinear" else None,
                    20 if case.schema.name == "QuantizeLinear" else None)
    per_axis = case.has("axis") and d.chance(0.5)
    axis = d.axis(x.ndim) if per_axis else 0
    shape = (x.shape[axis],) if per_axis else ()
    scale = case.schema.inputs[1].name
    case.set(scale, d.tensor(case.type(scale, ("float", "float16")), shape, 0.1, 1.5))
    zero = case.schema.inputs[2].name
    if d.chance(0.7):
        if case.type(zero) == "int32" or case.type(zero).startswith("float8"):
            case.set(zero, np.zeros(shape, dtype=DTYPES[case.type(zero)]))
        else:
            case.tensor(zero, shape, 0, 7)
    elif case.schema.name == "DequantizeLinear":
        case.type(zero)
    if per_axis:
        case.set("axis", axis)


def dynamic_quantize(case):
    case.tensor("x", case.draw.shape(low=1, empty=False), -4, 5)
    case.outputs = 3


def resize(case):
    d = case.draw
    if case.version < 11:
        raise NoCase("version 10 has no attributes that say how positions map")
    rank = d.choice([2, 3, 4])
    shape = (1, 1) * (rank > 2) + tuple(d.integer(2, 5) for _ in range(2 if rank > 2 else rank))
    shape = shape[:rank] if rank != 3 else (1, d.integer(2, 5), d.integer(2, 5))
    x = case.tensor("X", shape)
    mode = d.choice(["nearest", "linear", "cubic"] if rank == 4 and case.type("X") == "float" else ["nearest", "linear"])
    case.set("mode", mode)
    mapping = d.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    case.set("coordinate_transformation_mode", mapping)
    if mode == "nearest":
        case.maybe("nearest_mode", d.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if case.version < 13:
        case.set("roi", np.zeros(0, dtype=DTYPES[case.type("roi")]))
        case.set("scales", np.zeros(0, dtype=np.float32))
    lead = x.ndim - 2
    if d.chance(0.5):
        case.set("sizes", d.ints([*x.shape[:lead], d.integer(1, 9), d.integer(1, 9)]))
    else:
        case.set("scales", np.array([1.0] * lead + [d.choice([0.5, 1.0, 1.5, 2.0, 3.0]) for _ in range(2)], dtype=np.float32))
    case.wide = True
    if case.type("X") in ("int8", "uint8", "int32"):
        case.absolute = 1.0  # the fraction is cut off


def grid_sample(case):
    d = case.draw
    n, c, h, w = d.integer(1, 2), d.integer(1, 2), d.integer(2, 5), d.integer(2, 5)
    case.tensor("X", (n, c, h, w))
    grid = case.schema.inputs[1].name
    case.set(grid, d.tensor(case.type(grid), (n, d.dim(), d.dim(), 2), -1.3, 1.3))
    linear, cubic = ("bilinear", "bicubic") if case.version < 20 else ("linear", "cubic")
    case.maybe("mode", d.choice([linear, "nearest", cubic]))
    case.maybe("padding_mode", d.choice(["zeros", "border", "reflection"]))
    case.maybe("align_corners", d.integer(0, 1))
    case.wide = True


def einsum(case):
    d = case.draw
    sizes = {letter: d.dim() for letter in "ijkl"}
    equation = d.choice(["ij,jk->ik", "ij->ji", "ii->i", "ij,ij->", "ijk,ikl->ijl", "i,j->ij", "ij,kj->ik", "ijk->kj", "ij,j->i",
                         "...i,...i->...", "ij->", "ijk,jk->i"])
    left = equation.split("->")[0].split(",")
    case.set("equation", equation)
    for i, term in enumerate(left):
        shape = [sizes[letter] for letter in term.replace("...", "l")]
        case.set("Inputs", d.tensor(case.type("Inputs"), shape), position=i)


def det(case):
    d, n = case.draw, case.draw.dim()
    case.tensor("X", (*d.shape(high=2, empty=False), n, n))
    case.wide = True


RECIPES = {
    "MatMul": matmul, "MatMulInteger": matmul, "Gemm": gemm, "Conv": conv, "ConvInteger": conv, "ConvTranspose": conv_transpose,
    "MaxPool": pool, "AveragePool": pool, "LpPool": pool, "GlobalAveragePool": global_pool, "GlobalMaxPool": global_pool,
    "GlobalLpPool": global_pool, "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm,
    "LayerNormalization": layer_norm, "RMSNormalization": layer_norm, "GroupNormalization": group_norm, "LRN": lrn,
    "LpNormalization": lp_norm, "MeanVarianceNormalization": mean_variance, "RNN": recurrent, "GRU": recurrent, "LSTM": recurrent,
    "QuantizeLinear": quantize, "DequantizeLinear": quantize, "DynamicQuantizeLinear": dynamic_quantize, "Resize": resize,
    "GridSample": grid_sample, "Einsum": einsum, "Det": det,
}
