"""onnxruntime's exceptions, and which of Tenon's errors becomes which of them."""

from __future__ import annotations

from typing import Iterable

from ..errors import Error, InputError, RunError


class StatusError(Error):
    """What onnxruntime's exceptions are here: each is one of Tenon's errors too, with its code, node, tensor and hint."""

    status: tuple[int, str]


class Fail(StatusError):
    status = (1, "FAIL")


class InvalidArgument(StatusError):
    status = (2, "INVALID_ARGUMENT")


class NoSuchFile(StatusError):
    status = (3, "NO_SUCHFILE")


class NoModel(StatusError):
    status = (4, "NO_MODEL")


class EngineError(StatusError):
    status = (5, "ENGINE_ERROR")


class RuntimeException(StatusError):
    status = (6, "RUNTIME_EXCEPTION")


class InvalidProtobuf(StatusError):
    status = (7, "INVALID_PROTOBUF")


class ModelLoaded(StatusError):
    status = (8, "MODEL_LOADED")


class NotImplemented(StatusError):  # noqa: A001: its name is onnxruntime's
    status = (9, "NOT_IMPLEMENTED")


class InvalidGraph(StatusError):
    status = (10, "INVALID_GRAPH")


class EPFail(StatusError):
    status = (11, "EP_FAIL")


class ModelLoadCanceled(StatusError):
    status = (12, "MODEL_LOAD_CANCELED")


class ModelRequiresCompilation(StatusError):
    status = (13, "MODEL_REQUIRES_COMPILATION")


class NotFound(StatusError):
    status = (14, "NOT_FOUND")


class DeviceReset(StatusError):
    status = (15, "DEVICE_RESET")


_OF_LOAD: dict[str, type[StatusError]] = {
    "missing-file": NoSuchFile,
    "missing-external-data": Fail,
    "not-onnx": InvalidProtobuf,
    "truncated": InvalidProtobuf,
    "write-failed": Fail,
    "stale-file": Fail,
    "damaged-file": InvalidProtobuf,
    "invalid-model": InvalidGraph,
    "cyclic-graph": Fail,
    "undefined-name": InvalidArgument,
    "duplicate-name": Fail,
    "unknown-operator": InvalidGraph,
    "invalid-attribute": InvalidGraph,
    "type-mismatch": Fail,
    "shape-mismatch": Fail,
    "missing-input": InvalidGraph,
    "unknown-name": Fail,
    "invalid-value": InvalidArgument,
    "overflow": RuntimeException,
    "out-of-memory": RuntimeException,
    "cancelled": ModelLoadCanceled,
    "custom-operator": Fail,
    "unsupported": NotImplemented,
    "provider-unavailable": EPFail,
    "device-lost": EPFail,
    "invalid-library": Fail,
    "invalid-argument": InvalidArgument,
    "internal": EngineError,
}

_OF_RUN: dict[str, type[StatusError]] = {
    **_OF_LOAD,
    "missing-input": InvalidArgument,
    "unknown-name": InvalidArgument,
    "cancelled": Fail,
    "not-onnx": Fail,
    "truncated": Fail,
}


def status_error(kind: type[StatusError], text: str, **parts: str) -> StatusError:
    number, word = kind.status
    return kind(f"[ONNXRuntimeError] : {number} : {word} : {text}", message=text, **parts)


def _translated(error: Error, kind: type[StatusError]) -> StatusError:
    number, word = kind.status
    return kind(f"[ONNXRuntimeError] : {number} : {word} : {error}", error.code, error.message, error.node, error.tensor,
                error.hint)


def of_load(error: Error) -> Error:
    """What onnxruntime raises where loading a model failed like this."""
    return error if isinstance(error, StatusError) else _translated(error, _OF_LOAD.get(error.code, EngineError))


def of_run(error: Error, required: Iterable[str] = (), fed: Iterable[str] = ()) -> Error:
    """What onnxruntime raises where a run failed like this. Inputs that are missing are a ValueError there."""
    fed = list(fed)
    missing = [name for name in required if name not in fed]
    if missing and error.code in ("missing-input", "unknown-name"):
        return InputError(f"Required inputs ({missing}) are missing from input feed ({fed}).", error.code, error.message,
                          error.node, error.tensor, error.hint)
    kind = _OF_RUN.get(error.code, EngineError)
    if error.code in ("type-mismatch", "shape-mismatch") and not error.node:
        kind = InvalidArgument
    return _translated(error, kind)


def of_bound_run(error: Error) -> Error:
    """What onnxruntime raises where a run of bound values failed like this: a RuntimeError."""
    return RunError(f"Error in execution: {error}", error.code, error.message, error.node, error.tensor, error.hint)
