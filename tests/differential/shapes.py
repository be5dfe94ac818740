"""Operators that move elements about: indexing, joining, cutting, reordering."""
import numpy as np
from case import NoCase
from draw import DTYPES, element_type
from onnx import numpy_helper


def factors(d, count):
    """A random shape with `count` elements."""
    shape, rest = [], count
    for prime in (2, 3, 5, 7):
        while rest and rest % prime == 0 and d.chance(0.6):
            if shape and d.chance(0.5):
                shape[-1] *= prime
            else:
                shape.append(prime)
            rest //= prime
    shape.insert(d.integer(0, len(shape)), rest)
    if d.chance(0.2):
        shape.insert(d.integer(0, len(shape)), 1)
    return shape


def reshape(case):
    d = case.draw
    x = case.tensor("data", d.shape())
    shape = factors(d, x.size)
    case.maybe("allowzero", 0, 0.2)
    if x.size and d.chance(0.5):
        shape[d.integer(0, len(shape) - 1)] = -1
    elif x.size and x.ndim and d.chance(0.5):
        keep = d.integer(0, x.ndim)
        shape = [0] * keep + ([-1] if keep < x.ndim else [])
    elif x.size == 0 and case.has("allowzero"):
        case.set("allowzero", 1)
        shape = [d.dim() for _ in range(2)]
        shape[d.integer(0, 1)] = 0
    elif x.size == 0:
        raise NoCase("a size of 0 means the input's before version 14")
    case.set("shape", d.ints(shape))


def expand(case):
    d = case.draw
    shape = d.shape()
    case.tensor("input", d.broadcast(shape))
    case.set("shape", d.ints(d.broadcast(shape) if d.chance(0.3) else shape))


def squeeze(case):
    d = case.draw
    shape = list(d.shape(low=1))
    ones = [i for i, size in enumerate(shape) if size == 1]
    case.tensor("data", shape)
    if ones and d.chance(0.7):
        case.set("axes", d.ints([i - len(shape) if case.version >= 11 and d.chance() else i for i in ones]))


def unsqueeze(case):
    d = case.draw
    x = case.tensor("data", d.shape(high=3))
    count = d.integer(1, 2)
    rank = x.ndim + count
    axes = sorted(int(a) for a in d.rng.permutation(rank)[:count])
    case.set("axes", d.ints([a - rank if case.version >= 11 and d.chance(0.4) else a for a in axes]))


def flatten(case):
    d = case.draw
    x = case.tensor("input", d.shape(low=1))
    case.maybe("axis", d.integer(-x.ndim if case.version >= 11 else 0, x.ndim))


def transpose(case):
    d = case.draw
    x = case.tensor("data", d.shape())
    case.maybe("perm", [int(i) for i in d.rng.permutation(x.ndim)])


def concat(case):
    d = case.draw
    shape = list(d.shape(low=1))
    axis = d.axis(len(shape)) if case.version >= 11 else d.integer(0, len(shape) - 1)
    case.set("axis", axis)
    for i in range(d.integer(1, 4)):
        shape[axis] = d.dim(low=0)
        case.set("inputs", d.tensor(case.type("inputs"), shape), position=i)


def split(case):
    d = case.draw
    shape = list(d.shape(low=1, empty=False))
    axis = d.axis(len(shape)) if case.version >= 11 else d.integer(0, len(shape) - 1)
    parts = d.integer(1, 3)
    sizes = [d.dim(low=0 if case.version >= 13 else 1) for _ in range(parts)]
    even = d.chance(0.4)
    shape[axis] = parts * d.dim() if even else sum(sizes)
    if shape[axis] == 0:
        raise NoCase("nothing to split")
    case.tensor("input", shape)
    case.maybe("axis", axis, 1.0 if axis else 0.5)
    if not even:
        case.set("split", d.ints(sizes))
    elif case.has("num_outputs"):
        case.set("num_outputs", parts)
    case.outputs = parts


def slice_(case):
    d = case.draw
    x = case.tensor("data", d.shape(low=1))
    axes = d.axes(x.ndim) if case.version >= 10 else [a % x.ndim for a in d.axes(x.ndim)]
    name = "int64"
    if case.version >= 10:
        name = case.type("starts")
    starts = [d.integer(-7, 7) for _ in axes]
    ends = [d.choice([d.integer(-7, 7), 2**31 - 1, -(2**31)]) for _ in axes]
    case.set("starts", d.ints(starts, name))
    case.set("ends", d.ints(ends, name))
    if len(axes) < x.ndim or axes != list(range(x.ndim)) or d.chance(0.5):
        case.set("axes", d.ints(axes, name))
    if case.has("steps") and d.chance(0.6):
        if "axes" not in case.attributes and 3 not in case.inputs:
            case.set("axes", d.ints(axes, name))
        case.set("steps", d.ints([d.choice([1, 2, 3, -1, -2]) for _ in axes], name))


def pad(case):
    d = case.draw
    x = case.tensor("data", d.shape(low=1, empty=False))
    mode = d.choice(["constant", "edge", "reflect"] + (["wrap"] if case.version >= 19 else []))
    rank = x.ndim
    axes = None
    if case.has("axes") and d.chance(0.4):
        axes = d.axes(rank)
        case.set("axes", d.ints(axes))
        sizes = [x.shape[a] for a in axes]
    else:
        sizes = list(x.shape)
    most = [size - 1 if mode == "reflect" else 3 for size in sizes] * 2
    low = -1 if mode == "constant" and d.chance(0.3) else 0
    case.set("pads" if case.has("pads") else "paddings", d.ints([d.integer(low, min(3, m)) if m >= low else 0 for m in most]))
    case.maybe("mode", mode, 1.0 if mode != "constant" else 0.5)
    if d.chance(0.5) and mode == "constant":
        if case.has("constant_value"):
            case.set("constant_value", d.tensor(case.type("data"), ()))
        else:
            case.set("value", float(d.integer(-3, 3)))


def gather(case):
    d = case.draw
    x = case.tensor("data", d.shape(low=1, empty=False))
    axis = d.axis(x.ndim) if case.version >= 11 else d.integer(0, x.ndim - 1)
    case.maybe("axis", axis, 1.0 if axis else 0.5)
    size = x.shape[axis]
    case.tensor("indices", d.shape(high=2), -size if case.version >= 11 else 0, size - 1)


def gather_elements(case):
    d = case.draw
    x = case.tensor("data", d.shape(low=1, empty=False))
    axis = d.axis(x.ndim)
    shape = [d.integer(1, size) for size in x.shape]
    shape[axis] = d.dim()
    case.maybe("axis", axis, 1.0 if axis else 0.5)
    case.tensor("indices", shape, -x.shape[axis], x.shape[axis] - 1)


def gather_nd(case):
    d = case.draw
    x = case.tensor("data", d.shape(low=1, empty=False))
    batch = d.integer(0, x.ndim - 1) if case.has("batch_dims") and d.chance(0.4) else 0
    depth = d.integer(1, x.ndim - batch)
    outer = list(x.shape[:batch]) + [d.dim() for _ in range(d.integer(0 if batch else 1, 2))]
    indices = np.stack([d.rng.integers(-s, s, outer) for s in x.shape[batch:batch + depth]], axis=-1)
    case.set("indices", indices.astype(np.int64))
    if batch:
        case.set("batch_dims", batch)


def scatter_elements(case):
    d = case.draw
    x = case.tensor("data", d.shape(low=1, empty=False))
    axis = d.axis(x.ndim)
    shape = [d.integer(1, size) for size in x.shape]
    case.maybe("axis", axis, 1.0 if axis else 0.5)
    size = x.shape[axis]
    if case.has("reduction") and d.chance(0.6):
        case.set("reduction", d.choice(["add", "mul"] + (["min", "max"] if case.version >= 18 else [])))
        indices = d.rng.integers(-size, size, shape)
    else:  # each target once: the order is not defined
        line = np.stack([d.rng.permutation(size)[:shape[axis]] for _ in range(int(np.prod(shape)) // shape[axis])])
        moved = [n for i, n in enumerate(shape) if i != axis % x.ndim]
        indices = np.moveaxis(line.reshape(moved + [shape[axis]]), -1, axis)
    case.set("indices", np.ascontiguousarray(indices).astype(DTYPES[case.type("indices")]))
    case.tensor("updates", shape)


def scatter_nd(case):
    d = case.draw
    x = case.tensor("data", d.shape(low=1, empty=False))
    depth = d.integer(1, x.ndim)
    cells = int(np.prod(x.shape[:depth]))
    if case.has("reduction") and d.chance(0.6):
        case.set("reduction", d.choice(["add", "mul"] + (["min", "max"] if case.version >= 18 else [])))
        flat = d.rng.integers(0, cells, d.dim())
    else:
        flat = d.rng.permutation(cells)[:d.dim()]
    indices = np.stack(np.unravel_index(flat, x.shape[:depth]), axis=-1).astype(np.int64)
    case.set("indices", indices)
    case.tensor("updates", (len(flat),) + x.shape[depth:])


def one_hot(case):
    d = case.draw
    indices = case.tensor("indices", d.shape(high=3), 0 if case.type("indices").startswith("u") else -4, 4)
    case.set("depth", d.tensor(case.type("depth"), () if d.chance() else (1,), 2, 6))
    case.tensor("values", (2,))
    case.maybe("axis", d.integer(-indices.ndim - 1 if case.version >= 11 else -1, indices.ndim))


def top_k(case):
    d = case.draw
    x = case.tensor("X", d.shape(low=1, empty=False))
    # No two values alike: which of equals comes first is not the point here.
    x[...] = (d.rng.permutation(x.size) - x.size // 3).reshape(x.shape).astype(x.dtype) if x.size < 120 else x
    axis = d.axis(x.ndim) if case.version >= 11 else d.integer(0, x.ndim - 1)
    case.set("axis", axis)
    k = d.integer(1, x.shape[axis])
    case.set("K" if case.version >= 10 else "k", d.ints([k]) if case.version >= 10 else k)
    case.maybe("largest", d.integer(0, 1))
    case.maybe("sorted", 1 if k > 1 else d.integer(0, 1), 0.4)  # without order, results of several are not to be compared
    case.outputs = 2


def tile(case):
    d = case.draw
    if case.version < 6:
        x = case.tensor("input", d.shape(low=1, high=3))
        case.set("tiles", np.array(d.integer(1, 3), dtype=x.dtype))
        return case.set("axis", np.array(d.integer(0, x.ndim - 1), dtype=x.dtype))
    x = case.tensor("input", d.shape(high=3))
    case.set("repeats", d.ints([d.integer(0 if d.chance(0.1) else 1, 3) for _ in range(x.ndim)]))


def depth_to_space(case):
    d, block = case.draw, case.draw.integer(1, 3)
    n, c, h, w = (d.dim() for _ in range(4))
    if case.schema.name == "DepthToSpace":
        shape = (n, c * block * block, h, w)
        case.maybe("mode", d.choice(["DCR", "CRD"]))
    else:
        shape = (n, c, h * block, w * block)
    case.tensor("input", shape)
    case.set("blocksize", block)


def trilu(case):
    d = case.draw
    case.tensor("input", d.shape(low=2))
    if d.chance(0.6):
        case.set("k", np.array(d.integer(-4, 4), dtype=np.int64))
    case.maybe("upper", d.integer(0, 1))


def reverse_sequence(case):
    d = case.draw
    x = case.tensor("input", d.shape(low=2, empty=False))
    batch = d.integer(0, 1)
    case.set("batch_axis", batch)
    case.set("time_axis", 1 - batch)
    case.set("sequence_lens", d.ints([d.integer(1, x.shape[1 - batch]) for _ in range(x.shape[batch])]))


def eye_like(case):
    d = case.draw
    case.tensor("input", (d.dim(), d.dim()))
    case.maybe("k", d.integer(-3, 3))
    case.maybe("dtype", element_type(d.choice(["float", "double", "int32", "int64", "bool", "float16", "uint8"])))


def constant_of_shape(case):
    d = case.draw
    case.set("input", d.ints([d.dim(low=0) for _ in range(d.integer(0, 4))]))
    if d.chance(0.7):
        kind = d.choice(["float", "double", "float16", "int8", "int32", "int64", "uint8", "bool"])
        case.set("value", numpy_helper.from_array(d.tensor(kind, (1,))))


def range_(case):
    d = case.draw
    kind = case.type("start")
    start, delta = d.integer(-5, 5), d.choice([1, 2, 3, -1, -2])
    limit = start + delta * d.integer(-1, 6) + d.integer(0, 1)
    for name, value in (("start", start), ("limit", limit), ("delta", delta)):
        case.set(name, np.array(value, dtype=DTYPES[kind]))


def unique(case):
    d = case.draw
    x = case.tensor("X", d.shape(low=1, empty=False))
    if d.chance(0.5):
        case.set("axis", d.axis(x.ndim))
    case.maybe("sorted", d.integer(0, 1))
    case.outputs = d.integer(1, 4)


def compress(case):
    d = case.draw
    x = case.tensor("input", d.shape(low=1, empty=False))
    length = x.size
    if d.chance(0.6):
        axis = d.axis(x.ndim) if case.version >= 11 else d.integer(0, x.ndim - 1)
        case.set("axis", axis)
        length = x.shape[axis]
    case.set("condition", d.rng.random(d.integer(1, length)) < 0.5)


RECIPES = {
    "Reshape": reshape, "Expand": expand, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Flatten": flatten, "Transpose": transpose,
    "Concat": concat, "Split": split, "Slice": slice_, "Pad": pad, "Gather": gather, "GatherElements": gather_elements,
    "GatherND": gather_nd, "ScatterElements": scatter_elements, "Scatter": scatter_elements, "ScatterND": scatter_nd,
    "OneHot": one_hot, "TopK": top_k, "Tile": tile, "DepthToSpace": depth_to_space, "SpaceToDepth": depth_to_space,
    "Trilu": trilu, "ReverseSequence": reverse_sequence, "EyeLike": eye_like, "ConstantOfShape": constant_of_shape,
    "Range": range_, "Unique": unique, "Compress": compress,
}
