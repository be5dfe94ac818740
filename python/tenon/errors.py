"""The exceptions that Tenon raises. Each has a stable code; docs/errors.md lists them and says what to do."""

from __future__ import annotations


class Error(Exception):
    """The one that all others are. ``str(error)`` is the whole text."""

    #: The stable word for what went wrong, such as ``"shape-mismatch"``.
    code: str
    #: What happened, with what was expected and what came.
    message: str
    #: The node: operator, name and position; outer nodes first when it sits in a subgraph. May be empty.
    node: str
    #: The tensor that it is about. May be empty.
    tensor: str
    #: What to do about it. May be empty.
    hint: str

    def __init__(self, text: str, code: str = "internal", message: str = "", node: str = "", tensor: str = "",
                 hint: str = ""):
        super().__init__(text)
        self.code, self.message, self.node, self.tensor, self.hint = code, message or text, node, tensor, hint

    def __reduce__(self):
        return type(self), (self.args[0], self.code, self.message, self.node, self.tensor, self.hint)


class FileError(Error, OSError):
    """A file is missing, incomplete, something else than ONNX, or cannot be written."""


class ModelError(Error, ValueError):
    """The model breaks ONNX's rules, or its parts do not fit each other."""


class InputError(Error, ValueError):
    """An input of a run is missing, unknown, or of a type or shape that the model does not take."""


class RunError(Error, RuntimeError):
    """A node failed, memory ran out, or the run was cancelled."""


class UnavailableError(Error, RuntimeError):
    """Something that was asked for is not there: a provider, an operator's kernel, a library."""


class DeviceLostError(UnavailableError):
    """A GPU that was in use cannot be used by this process any more, which must be started again."""


class ArgumentError(Error, ValueError):
    """A call or an option makes no sense."""


class InternalError(Error, RuntimeError):
    """A bug in Tenon. Please report it."""


#: The class of every code.
CLASSES: dict[str, type[Error]] = {
    "missing-file": FileError,
    "missing-external-data": FileError,
    "not-onnx": FileError,
    "truncated": FileError,
    "write-failed": FileError,
    "stale-file": FileError,
    "damaged-file": FileError,
    "invalid-model": ModelError,
    "cyclic-graph": ModelError,
    "undefined-name": ModelError,
    "duplicate-name": ModelError,
    "unknown-operator": ModelError,
    "invalid-attribute": ModelError,
    "type-mismatch": ModelError,
    "shape-mismatch": ModelError,
    "missing-input": InputError,
    "unknown-name": InputError,
    "invalid-value": RunError,
    "overflow": RunError,
    "out-of-memory": RunError,
    "cancelled": RunError,
    "custom-operator": RunError,
    "unsupported": UnavailableError,
    "provider-unavailable": UnavailableError,
    "device-lost": DeviceLostError,
    "invalid-library": UnavailableError,
    "invalid-argument": ArgumentError,
    "internal": InternalError,
}


def from_parts(code: str, text: str, message: str, node: str, tensor: str, hint: str, of_run: bool) -> Error:
    """The exception for what the library threw. Types and shapes that do not fit are the inputs' if no node found that."""
    kind = CLASSES.get(code, InternalError)
    if of_run and kind is ModelError and not node:
        kind = InputError
    return kind(text, code, message, node, tensor, hint)
