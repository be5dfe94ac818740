"""OrtValue, OrtDevice and what describes memory."""

from __future__ import annotations

import ctypes
from typing import Any, Iterable, Sequence

import numpy as np

from .._tenon import SparseTensor, Tensor, available_providers
from ..errors import ArgumentError, UnavailableError
from ._enums import OrtAllocatorType, OrtDeviceMemoryType, OrtDeviceVendorId, OrtMemType

#: ONNX's element types in the order of their numbers: the name in types, the name of the dtype.
_ELEMENTS = (
    ("undefined", ""), ("float", "float32"), ("uint8", "uint8"), ("int8", "int8"), ("uint16", "uint16"), ("int16", "int16"),
    ("int32", "int32"), ("int64", "int64"), ("string", "str"), ("bool", "bool"), ("float16", "float16"),
    ("double", "float64"), ("uint32", "uint32"), ("uint64", "uint64"), ("complex64", "complex64"),
    ("complex128", "complex128"), ("bfloat16", "bfloat16"), ("float8e4m3fn", "float8_e4m3fn"),
    ("float8e4m3fnuz", "float8_e4m3fnuz"), ("float8e5m2", "float8_e5m2"), ("float8e5m2fnuz", "float8_e5m2fnuz"),
    ("uint4", "uint4"), ("int4", "int4"), ("float4e2m1", "float4_e2m1fn"), ("float8e8m0", "float8_e8m0fnu"),
    ("uint2", "uint2"), ("int2", "int2"))
_NUMBERS = {dtype: number for number, (_, dtype) in enumerate(_ELEMENTS)}
_PACKED_BITS = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}


def dtype_named(element_type: Any) -> str:
    """The name of a dtype for what onnxruntime takes as one: an ONNX number, or something of NumPy's."""
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, bool):
        if not 0 < element_type < len(_ELEMENTS):
            raise ArgumentError(f"ONNX has no element type {element_type}", "invalid-argument")
        return _ELEMENTS[element_type][1]
    dtype = np.dtype(element_type)
    return "str" if dtype.kind in "OUST" else dtype.name


def memory_on(device_type: str, device_id: int = 0) -> str:
    """"cpu" or "cuda", if there is such memory here."""
    OrtDevice.make(device_type, device_id)
    name = device_type.lower()
    if name == "cpu" or (name == "cuda" and device_id == 0 and "cuda" in available_providers()):
        return name
    where = "the CPU and GPU 0" if "cuda" in available_providers() else "the CPU"
    raise UnavailableError(f"there is no memory on the device '{device_type}' {device_id}: values live on {where}",
                           "provider-unavailable")


def _bytes_of(dtype: str, shape: Sequence[int]) -> int:
    elements = int(np.prod(shape, dtype=np.int64))
    bits = _PACKED_BITS.get(dtype) or (16 if dtype == "bfloat16" else 8 if dtype.startswith("float8") else
                                       np.dtype(dtype).itemsize * 8)
    return (elements * bits + 7) // 8


def tensor_at(address: int, dtype: str, shape: Sequence[int], device: str) -> Tensor:
    """A tensor over memory of the caller's, who keeps it alive."""
    if device == "cuda":
        return Tensor.over_cuda(address, dtype, shape)
    size = _bytes_of(dtype, shape)
    memory = (ctypes.c_uint8 * size).from_address(address) if size else b""
    return Tensor.from_bits(np.frombuffer(memory, np.uint8), dtype, shape)


def zeros(kind: str, shape: Sequence[Any]) -> Any:
    """A tensor of a type such as "tensor(float)". Raises ValueError for another type, or where a size is no number."""
    number = next((number for number, (name, _) in enumerate(_ELEMENTS) if kind == f"tensor({name})"), None)
    if number is None or not all(isinstance(size, int) for size in shape):
        raise ValueError(f"an input is {kind} {list(shape)}")
    return OrtValue.ortvalue_from_shape_and_type(shape, number)._value


class OrtDevice:
    """Where memory is."""

    _TYPES = {"cpu": (0, OrtDeviceVendorId.NONE), "cuda": (1, OrtDeviceVendorId.NVIDIA), "gpu": (1, OrtDeviceVendorId.NONE),
              "dml": (1, OrtDeviceVendorId.MICROSOFT), "webgpu": (1, OrtDeviceVendorId.NONE),
              "npu": (3, OrtDeviceVendorId.NONE), "cann": (3, OrtDeviceVendorId.HUAWEI)}

    def __init__(self, device: OrtDevice):
        if not isinstance(device, OrtDevice):
            raise ValueError(f"an OrtDevice is made with OrtDevice.make, not of {type(device).__name__}")
        self._parts = device._parts

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        name = ort_device_name.lower()
        if name not in OrtDevice._TYPES:
            raise ArgumentError(f"Unsupported device type: {ort_device_name}", "invalid-argument")
        kind, vendor = OrtDevice._TYPES[name]
        device = OrtDevice.__new__(OrtDevice)
        device._parts = (kind, int(device_id), int(vendor if vendor_id == -1 else vendor_id), 0)
        return device

    def device_type(self) -> int:
        return self._parts[0]

    def device_id(self) -> int:
        return self._parts[1]

    def device_vendor_id(self) -> int:
        return self._parts[2]

    def device_mem_type(self) -> int:
        return self._parts[3]

    def _get_c_device(self) -> OrtDevice:
        return self


class OrtMemoryInfo:
    """A name for a kind of memory. There is one kind here: the CPU's."""

    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType):
        self.name, self.allocator_type, self.device_id, self.mem_type = name, allocator_type, device_id, mem_type
        self.device_mem_type, self.device_vendor_id = OrtDeviceMemoryType.DEFAULT, 0


class OrtArenaCfg:
    """Accepted where onnxruntime takes one; memory is pooled per session here."""

    def __init__(self, *values: Any):
        names = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk")
        settings = values[0] if len(values) == 1 and isinstance(values[0], dict) else dict(zip(names, values))
        for name in (*names, "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes"):
            setattr(self, name, settings.get(name, -1))


class OrtValue:
    """A tensor, sequence, map or optional that runs take and make."""

    __slots__ = ("_value", "__weakref__")

    def __init__(self, ortvalue: OrtValue, numpy_obj: np.ndarray | None = None):
        if not isinstance(ortvalue, OrtValue):
            raise ValueError(f"an OrtValue is made with its class methods, not of {type(ortvalue).__name__}")
        self._value = ortvalue._value

    @classmethod
    def _of(cls, value: Any) -> OrtValue:
        """Of what a run made: arrays become tensors over the same memory."""
        made = cls.__new__(cls)
        made._value = Tensor(value) if isinstance(value, np.ndarray) else value
        return made

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, /, device_type: str = "cpu", device_id: int = 0,
                            vendor_id: int = -1) -> OrtValue:
        """Over the array's own memory, if it is contiguous; on the GPU a copy."""
        device = memory_on(device_type, device_id)
        if not isinstance(numpy_obj, np.ndarray):
            raise RuntimeError(f"an OrtValue is made of a NumPy array, got {type(numpy_obj).__name__}")
        return cls._of(numpy_obj if device == "cpu" else Tensor(numpy_obj).to(device))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """The array's bits as elements of another type of the same size, such as uint16 as bfloat16.

        Elements below 8 bits come packed, as ONNX has them; the shape is then the array's.
        """
        dtype, bits = dtype_named(onnx_element_type), np.ascontiguousarray(data)
        size = _bytes_of(dtype, data.shape)
        if dtype in _PACKED_BITS:
            bits = bits.reshape(-1).view(np.uint8)[:size]
        if bits.nbytes != size:
            raise RuntimeError(f"elements of the array have {data.itemsize} bytes, those of {dtype} another size")
        return cls._of(Tensor.from_bits(bits, dtype, data.shape))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0, vendor_id: int = -1,
                                     memory_info: OrtMemoryInfo | None = None) -> OrtValue:
        device, dtype = memory_on(device_type, device_id), dtype_named(element_type)
        if device != "cpu":
            return cls._of(Tensor.empty(shape, dtype, device))
        if dtype == "str":
            return cls._of(np.full(shape, "", dtype=object))
        return cls._of(Tensor.from_bits(np.zeros(_bytes_of(dtype, shape), np.uint8), dtype, shape))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        return cls._of(Tensor(data))

    def _get_c_value(self) -> OrtValue:
        return self

    def _tensor(self) -> Tensor:
        if not isinstance(self._value, Tensor):
            raise RuntimeError(f"the value is no tensor but {self.data_type()}")
        return self._value

    def data_ptr(self) -> int:
        return self._tensor().address

    def device_name(self) -> str:
        return self._value.device if isinstance(self._value, Tensor) else "cpu"

    def shape(self) -> list[int]:
        return list(self._tensor().shape)

    def data_type(self) -> str:
        return _type_of(self._value)

    def element_type(self) -> int:
        value = self._value[0] if isinstance(self._value, list) and self._value else self._value
        if isinstance(value, np.ndarray):
            value = Tensor(value)
        if not isinstance(value, Tensor):
            raise RuntimeError(f"the value has no element type: it is {self.data_type()}")
        return _NUMBERS[value.dtype]

    def tensor_size_in_bytes(self) -> int:
        return self._tensor().nbytes

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, Tensor)

    def is_sparse_tensor(self) -> bool:
        return isinstance(self._value, SparseTensor)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def numpy(self) -> Any:
        """An array over the same memory, a copy of what is on the GPU; a list for a sequence, a dict for a map."""
        return self._value.numpy() if isinstance(self._value, Tensor) else self._value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._tensor().__array__(dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor().__dlpack_device__()

    def update_inplace(self, data: Any) -> None:
        """Writes other numbers of the same type and count into the value's memory."""
        target = self._tensor()
        if target.device != "cpu" or (isinstance(data, OrtValue) and data.device_name() != "cpu"):
            source = data._tensor() if isinstance(data, OrtValue) else Tensor(data)
            if source.dtype != target.dtype or source.nbytes != target.nbytes:
                raise RuntimeError(f"the array is of {source.dtype} {list(source.shape)}, the OrtValue of {target.dtype} "
                                   f"{list(target.shape)}")
            target.copy_from(source)
            return
        source = data.numpy() if isinstance(data, OrtValue) else data
        if not isinstance(source, np.ndarray):
            raise TypeError(f"an OrtValue is updated from an array or an OrtValue, got {type(data).__name__}")
        target = target.numpy()
        if source.size != target.size:
            raise RuntimeError(f"the array has {source.size} elements, the OrtValue {target.size}")
        if source.dtype != target.dtype:
            raise RuntimeError(f"the array is of {source.dtype}, the OrtValue of {target.dtype}")
        target[...] = source.reshape(target.shape)


def _type_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = Tensor(value)
    if isinstance(value, Tensor):
        return f"tensor({_ELEMENTS[_NUMBERS[value.dtype]][0]})"
    if isinstance(value, SparseTensor):
        return "sparse_tensor"
    if isinstance(value, list):
        return f"seq({_type_of(value[0])})" if value else "seq"
    if isinstance(value, dict):
        key = next(iter(value), "")
        return f"map({'string' if isinstance(key, str) else 'int64'},tensor(float))"
    return "optional"


class OrtValueVector(list):
    """A list of OrtValues."""

    def push_back(self, value: OrtValue) -> None:
        self.append(value)

    def reserve(self, size: int) -> None:
        pass

    def shrink_to_fit(self) -> None:
        pass

    def element_type_at(self, idx: int) -> int:
        return self[idx].element_type()

    def dlpack_at(self, idx: int) -> Any:
        return self[idx].__dlpack__()

    def bool_tensor_indices(self) -> list[int]:
        return [i for i, value in enumerate(self) if value.is_tensor() and value.data_type() == "tensor(bool)"]


def copy_tensors(src: Iterable[OrtValue], dst: Iterable[OrtValue], stream: Any = None) -> None:
    """Copies the elements of tensors into others of the same type and size."""
    src, dst = list(src), list(dst)
    if len(src) != len(dst):
        raise ValueError(f"{len(src)} tensors are to be copied into {len(dst)}")
    for one, other in zip(src, dst):
        other.update_inplace(one)
