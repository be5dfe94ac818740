"""Between tensors and NumPy arrays, where the buffer protocol is not enough. The extension module calls this."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ._tenon import Tensor

_PACKED = ("uint4", "int4", "float4_e2m1fn", "uint2", "int2", "float6_e2m3fn", "float6_e3m2fn")
_BYTES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
_EXTENDED = ("bfloat16", *_BYTES, *_PACKED)


@functools.cache
def _extended_dtype(name: str):
    """The dtype that ml_dtypes has for a name; None without that package, or if it is too old to have it."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    kind = getattr(ml_dtypes, name, None)
    return None if kind is None else np.dtype(kind)


def to_numpy(tensor: Tensor) -> Any:
    """An array over the tensor's memory; the tensor itself if NumPy has no such elements and ml_dtypes is missing."""
    name = tensor.dtype
    tensor = tensor.to("cpu")
    if name == "str":
        return _object_array(tensor.strings(), tensor.shape)
    if name not in _EXTENDED:
        return np.asarray(tensor)
    dtype = _extended_dtype(name)
    if dtype is None:
        return tensor
    bits = tensor.unpacked() if name in _PACKED else tensor.bits()
    array = np.asarray(bits)
    if name in ("int4", "int2"):
        width = 8 - int(name[-1])
        array = (array.view(np.int8) << width) >> width
    return array.view(dtype)


def as_array(tensor: Tensor, dtype: Any, copy: bool | None) -> np.ndarray:
    """What ``numpy.asarray(tensor)`` is for types that the buffer protocol lacks, and for what is on a GPU."""
    if copy is False and tensor.device != "cpu":
        raise ValueError("what is on the GPU becomes an array only in a copy")
    array = to_numpy(tensor)
    if isinstance(array, Tensor):
        raise TypeError(f"NumPy has no elements of {tensor.dtype}: install the package ml_dtypes, or use tensor.bits()")
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"elements of {array.dtype} become {dtype} only in a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def to_dict(keys: Tensor, values: Tensor) -> dict:
    """A map of ONNX's as a dict of plain Python values."""
    return dict(zip(to_numpy(keys).tolist(), to_numpy(values).tolist()))


def to_tensor(value: Any, declared: str) -> Tensor:
    """A tensor of what has no buffer: strings, lists, numbers, arrays of ml_dtypes or of another byte order.

    Lists and numbers become ``declared`` if that is not empty; arrays keep their type.
    """
    if hasattr(value, "dtype") or hasattr(value, "__array__"):
        array = value
    elif declared == "str":
        array = _object_array_of(value)
    else:
        array = _numbers(value, declared)
    array = np.asarray(array)
    if array.dtype == object or array.dtype.kind in "UST":
        return Tensor.from_strings(array.ravel().tolist(), array.shape)
    name = array.dtype.name
    if name in _PACKED:
        return Tensor.packed(np.ascontiguousarray(array).view(np.uint8), name)
    if name in _EXTENDED:
        bits = np.ascontiguousarray(array).view(np.uint16 if name == "bfloat16" else np.uint8)
        return Tensor.from_bits(bits, name, array.shape)
    if array.dtype.kind in "biufc" and array.dtype.itemsize <= (16 if array.dtype.kind == "c" else 8):
        # Declared strings do not make numbers strings: the run will say that the types differ.
        native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        return Tensor.from_bits(native, native.dtype.name, array.shape)
    raise TypeError(f"ONNX has no elements of NumPy's type {array.dtype}")


_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _numbers(value: Any, declared: str) -> np.ndarray:
    """Lists and numbers of Python's as `declared`, unless they would lose what they are: fractions, texts."""
    array = np.asarray(value)
    if not declared or array.dtype.kind in "UST":
        return array
    wanted = _dtype_named(declared)
    kind = wanted.kind if wanted.kind in _KINDS else "i" if "int" in declared else "f"
    if array.size and _KINDS.get(array.dtype.kind, 0) > max(_KINDS[kind], 1):
        raise TypeError(f"{array.dtype} cannot become {declared} without losing digits")
    return np.asarray(value, dtype=wanted)


def _dtype_named(name: str):
    dtype = _extended_dtype(name) if name in _EXTENDED else np.dtype(name)
    if dtype is None:
        raise TypeError(f"making elements of {name} from Python values takes the package ml_dtypes")
    return dtype


def _object_array(items: list, shape: tuple) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def _object_array_of(value: Any) -> np.ndarray:
    if isinstance(value, (str, bytes)):
        array = np.empty((), dtype=object)
        array[()] = value
        return array
    return np.array(value, dtype=object)
