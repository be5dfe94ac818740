"""Tenon as a backend of the package ``onnx``: ``tenon.backend.prepare(model).run(inputs)``."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from ._tenon import Model, load
from .errors import Error

__all__ = ["TenonBackend", "TenonBackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class TenonBackendRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: Model):
        self.model = model
        self._make = namedtupledict("Outputs", [info.name for info in model.outputs])

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Outputs in order, also by name. Inputs are a mapping, values in the order of the model's inputs, or one value."""
        if not isinstance(inputs, Mapping):
            values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            names = [info.name for info in self.model.inputs]
            if len(values) > len(names):
                raise ValueError(f"the model has {len(names)} inputs, {len(values)} were given")
            inputs = dict(zip(names, values))
        return self._make(*self.model.run(inputs).values())


class TenonBackend(Backend):
    """What ``onnx.backend.base.Backend`` asks for."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        try:
            cls.prepare(model, device, **kwargs)
        except Error:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TenonBackendRep:
        """Options are those of :func:`tenon.load`. Raises what that raises."""
        if not cls.supports_device(device):
            raise ValueError(f"Tenon has no device '{device}'")
        return TenonBackendRep(load(model, **kwargs))

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Sequence[Any] | Mapping[str, Any], device: str = "CPU",
                 outputs_info: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """Runs a model of this one node. ``opset_version`` is its opset; the newest by default."""
        import numpy as np

        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        named = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(filter(None, node.input), inputs))
        arrays = {name: np.asarray(value) for name, value in named.items()}
        given = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                 for name, array in arrays.items()]
        made = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", given, made)
        imports = [helper.make_opsetid(node.domain, opset)]
        return cls.prepare(helper.make_model(graph, opset_imports=imports), device, **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return Device(device).type == DeviceType.CPU


is_compatible = TenonBackend.is_compatible
prepare = TenonBackend.prepare
run_model = TenonBackend.run_model
run_node = TenonBackend.run_node
supports_device = TenonBackend.supports_device
