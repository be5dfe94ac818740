"""Random choices that a case is made of: shapes, tensors, axes. Everything comes from one seeded generator."""
import ml_dtypes
import numpy as np
import onnx

# ONNX's names of element types and numpy's.
DTYPES = {
    "float": np.dtype(np.float32), "double": np.dtype(np.float64), "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16), "int8": np.dtype(np.int8), "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32), "int64": np.dtype(np.int64), "uint8": np.dtype(np.uint8), "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32), "uint64": np.dtype(np.uint64), "bool": np.dtype(np.bool_), "string": np.dtype(object),
    "float8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn), "float8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "float8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz), "float8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "float8e8m0": np.dtype(ml_dtypes.float8_e8m0fnu), "float4e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
    "int4": np.dtype(ml_dtypes.int4), "uint4": np.dtype(ml_dtypes.uint4), "int2": np.dtype(ml_dtypes.int2), "uint2": np.dtype(ml_dtypes.uint2),
}
FLOATS = ("float", "double", "float16", "bfloat16")
WORDS = ["", "a", "b", "cat", "dog", "Dog", "two words", "ä", "0", "-1.5", "7"]


def type_name(dtype):
    return next(name for name, known in DTYPES.items() if known == dtype)


def is_packed(dtype):
    """Whether a byte holds several elements."""
    return dtype != object and type_name(dtype) in ("int4", "uint4", "int2", "uint2", "float4e2m1")


def element_type(name):
    return onnx.TensorProto.DataType.Value(name.upper())


class Draw:
    def __init__(self, seed, size=5):
        self.rng = np.random.default_rng(seed)
        self.size = size  # the largest dimension; smaller when a failing case is shrunk

    def chance(self, probability=0.5):
        return bool(self.rng.random() < probability)

    def integer(self, low, high):
        """Both ends included."""
        return int(self.rng.integers(low, high + 1))

    def choice(self, options):
        options = list(options)
        return options[self.integer(0, len(options) - 1)]

    def dim(self, low=1):
        return self.integer(low, max(low, self.size))

    def shape(self, low=0, high=4, empty=True):
        """Now and then with a size of zero or of high rank."""
        rank = self.integer(low, high + (2 if self.chance(0.05) and high == 4 else 0))
        shape = [self.dim() if self.chance(0.8) else 1 for _ in range(rank)]
        if empty and rank and self.chance(0.06):
            shape[self.integer(0, rank - 1)] = 0
        return tuple(shape)

    def axis(self, rank, low=0):
        """From the front or from the back."""
        axis = self.integer(low, rank - 1)
        return axis - rank if self.chance(0.4) else axis

    def axes(self, rank, most=None):
        count = self.integer(1 if rank else 0, rank if most is None else min(most, rank))
        chosen = self.rng.permutation(rank)[:count]
        return [int(a) - rank if self.chance(0.4) else int(a) for a in chosen]

    def broadcast(self, shape):
        """A shape that numpy broadcasts with the given one."""
        kept = shape[self.integer(0, len(shape)):] if self.chance(0.5) and shape else shape
        return tuple(1 if self.chance(0.25) else size for size in kept)

    def tensor(self, name, shape, low=None, high=None):
        """Of the type that ONNX calls `name`, in a range that suits it; special values only where no range is asked for."""
        dtype, shape = DTYPES[name], tuple(shape)
        if name == "string":
            return np.array([self.choice(WORDS) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape)
        if name == "bool":
            return np.asarray(self.rng.random(shape) < 0.5)
        if name == "float8e8m0":  # powers of two
            return np.exp2(self.rng.integers(-2, 3, shape)).astype(dtype)
        if name in FLOATS or name.startswith(("float8", "float4")):
            values = self.rng.uniform(-3 if low is None else low, 3 if high is None else high, shape)
            if low is None and self.chance(0.3):
                values = np.round(values)
            return np.asarray(values).astype(dtype)
        info = ml_dtypes.iinfo(dtype)
        low = max(int(info.min), -5 if low is None else low)
        high = min(int(info.max), 6 if high is None else high)
        return np.asarray(self.rng.integers(low, high, shape, endpoint=True)).astype(dtype)

    def ints(self, values, name="int64"):
        return np.array(values, dtype=DTYPES[name])
