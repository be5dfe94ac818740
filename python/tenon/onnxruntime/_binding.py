"""Inputs and outputs that are bound to memory before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from .._tenon import Tensor, wait_for_cuda
from ..errors import Error, RunError
from . import _config
from ._errors import of_bound_run
from ._values import OrtValue, OrtValueVector, dtype_named, memory_on, tensor_at

if TYPE_CHECKING:
    from ._options import RunOptions
    from ._session import InferenceSession


class IOBinding:
    """What a session reads from and writes to. InferenceSession.io_binding makes one."""

    def __init__(self, session: InferenceSession):
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}  # in the order of binding, with what the last run made
        self._given: set[str] = set()  # outputs whose memory is the caller's
        self._into: dict[str, Tensor] = {}  # memory that the next run writes to
        self._on: dict[str, str] = {}  # devices of outputs that runs allocate elsewhere than on the CPU
        self._returned_early = False  # the last run, perhaps

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        if not isinstance(arr_on_cpu, np.ndarray):
            raise RuntimeError(f"an input is bound to a NumPy array, got {type(arr_on_cpu).__name__}")
        self._bind(name, Tensor(arr_on_cpu))

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """What writes memory of a GPU must be done, or in the session's ``user_compute_stream``."""
        device = memory_on(device_type, device_id)
        self._bind(name, tensor_at(buffer_ptr, dtype_named(element_type), shape, device))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._bind(name, ortvalue._value)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Without memory, the run allocates it; later runs write to the same, as long as sizes stay."""
        device = memory_on(device_type, device_id)
        self._on.pop(name, None)
        if buffer_ptr is None:
            self._outputs[name] = None
            if device != "cpu":
                self._on[name] = device
            self._given.discard(name)
            self._into.pop(name, None)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._bind_destination(name, tensor_at(buffer_ptr, dtype_named(element_type), shape, device))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._on.pop(name, None)
        self._bind_destination(name, ortvalue._tensor())

    def _bind(self, name: str, value: Any) -> None:
        if name not in self._session._types:
            raise RunError(f"the model has no input '{name}'; it has {list(self._session._types)}", "unknown-name")
        if getattr(value, "shape", None) != getattr(self._inputs.get(name), "shape", None):
            self._forget_memory()
        self._inputs[name] = value

    def _bind_destination(self, name: str, tensor: Tensor) -> None:
        self._outputs[name] = OrtValue._of(tensor)
        self._given.add(name)
        self._into[name] = tensor

    def _forget_memory(self) -> None:
        """Of outputs that runs allocated: those of the next run may have other sizes."""
        self._into = {name: tensor for name, tensor in self._into.items() if name in self._given}

    def synchronize_inputs(self) -> None:
        """Waits for all work on the GPU, if an input is there."""
        if any(isinstance(value, Tensor) and value.device == "cuda" for value in self._inputs.values()):
            wait_for_cuda()

    def synchronize_outputs(self) -> None:
        """A run has ended when it returns, on a GPU too, unless its options say otherwise: then all work there is waited for."""
        if self._returned_early:
            self._returned_early = False
            wait_for_cuda()

    def get_outputs(self) -> list[OrtValue]:
        """What the last run made, in the order in which outputs were bound."""
        return [OrtValue._of(None) if value is None else value for value in self._outputs.values()]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        return OrtValueVector(self.get_outputs())

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [np.array(value._value) if value.is_tensor() and value.device_name() == "cpu" else value.numpy()
                for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._given.clear()
        self._into.clear()
        self._on.clear()

    def _run(self, run_options: RunOptions | None) -> None:
        if not self._outputs:
            raise RunError("Error in execution: no output is bound", "invalid-argument")
        names = list(self._outputs)
        self._returned_early = run_options is not None and run_options._config.get(_config.NO_WAIT) == "1"
        try:
            try:
                results = self._session._run_model(names, self._inputs, run_options, self._into, self._on)
            except Error as error:
                if error.code != "shape-mismatch" or error.tensor not in self._into or error.tensor in self._given:
                    raise
                # Its size follows from the content of the inputs.
                self._forget_memory()
                results = self._session._run_model(names, self._inputs, run_options, self._into, self._on)
        except Error as error:
            raise of_bound_run(error) from None
        for name in names:
            if name in self._into:
                continue
            made = self._outputs[name] = OrtValue._of(results[name])
            if made.is_tensor() and made.data_type() != "tensor(string)":
                self._into[name] = made._value


class SessionIOBinding(IOBinding):
    """The class below IOBinding in onnxruntime; the same here."""
