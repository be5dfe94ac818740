"""SessionOptions and RunOptions."""

from __future__ import annotations

import operator
import os
from typing import Any, Iterable

from .._tenon import Cancellation
from . import _config
from ._enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from ._errors import Fail, status_error
from ._values import OrtValue


class _Option:
    """An attribute of one type; another one is a TypeError."""

    def __init__(self, default: Any, doc: str):
        self.default, self.kind, self.__doc__ = default, type(default), doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else instance._values.get(self.name, self.default)

    def __set__(self, instance: Any, value: Any) -> None:
        if self.kind is bool:
            fits = hasattr(type(value), "__bool__")
            value = bool(value) if fits else value
        elif self.kind is int:
            fits = hasattr(type(value), "__index__")
            value = operator.index(value) if fits else value
        else:
            value = value.decode() if self.kind is str and isinstance(value, bytes) else value
            fits = isinstance(value, self.kind)
        if not fits:
            raise TypeError(f"{self.name} is a {self.kind.__name__}, got {type(value).__name__} {value!r}")
        instance._values[self.name] = value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is a str, got {type(value).__name__} {value!r}")
    return value


def _add_entry(config: dict[str, str], key: str, value: str) -> None:
    _text(key, "a config key"), _text(value, "a config value")
    if not 0 < len(key) <= 1024:
        raise RuntimeError("a config key has 1 to 1024 characters")
    config[key] = value


class SessionOptions:
    """onnxruntime's. docs/migration.md says what every one does here."""

    __slots__ = ("_values", "_config", "_sizes", "_denoted_sizes", "_initializers", "_external", "_libraries", "_providers",
                 "_files", "_is_cancelled", "__weakref__")

    graph_optimization_level = _Option(GraphOptimizationLevel.ORT_ENABLE_ALL, "How much the model is rewritten.")
    intra_op_num_threads = _Option(0, "Threads to compute with. 0: the pool that all sessions share.")
    inter_op_num_threads = _Option(0, "No meaning here: one pool of threads does everything.")
    execution_mode = _Option(ExecutionMode.ORT_SEQUENTIAL, "ORT_PARALLEL: independent branches run at the same time.")
    execution_order = _Option(ExecutionOrder.DEFAULT, "No meaning here.")
    optimized_model_filepath = _Option("", "Where the optimised model is written to.")
    enable_profiling = _Option(False, "Measures every node; InferenceSession.end_profiling writes what was measured.")
    profile_file_prefix = _Option("onnxruntime_profile_", "What the name of that file begins with.")
    log_severity_level = _Option(-1, "0 verbose to 4 fatal; warnings are logged up to 2. -1: the default one.")
    log_verbosity_level = _Option(0, "No meaning here.")
    logid = _Option("", "What logged lines begin with.")
    enable_mem_pattern = _Option(True, "No meaning here: memory is always planned.")
    enable_cpu_mem_arena = _Option(True, "No meaning here: memory is always pooled.")
    enable_mem_reuse = _Option(True, "No meaning here: memory is always reused.")
    use_deterministic_compute = _Option(False, "No meaning here: results are the same for any number of threads.")
    use_per_session_threads = _Option(True, "False: the pool that all sessions share, whatever intra_op_num_threads is.")

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._config: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._denoted_sizes: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}
        self._external: dict[str, OrtValue] = {}
        self._libraries: list[str] = []
        self._providers: list[tuple[str, dict[str, str]]] = []
        self._files: dict[str, bytes] = {}
        self._is_cancelled = False

    def _copy(self) -> SessionOptions:
        copy = SessionOptions()
        for name in self.__slots__[:-1]:
            value = getattr(self, name)
            setattr(copy, name, value if isinstance(value, bool) else value.copy())
        return copy

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an option by name. Keys that nobody knows are ignored with a warning that has the nearest one."""
        _add_entry(self._config, key, value)
        _config.check_key(key, stacklevel=2)

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._config:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self._sizes[_text(name, "the name of a dimension")] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        self._denoted_sizes[_text(denotation, "a denotation")] = operator.index(size)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """A tensor in place of the initializer of this name, whose memory sessions share. Unknown names are ignored."""
        if not isinstance(value, OrtValue):
            raise RuntimeError(f"an initializer is an OrtValue, got {type(value).__name__}")
        if name in self._initializers:
            raise RuntimeError(f"an OrtValue for this name has already been added: {name}")
        self._initializers[_text(name, "the name of an initializer")] = value

    def add_external_initializers(self, names: Iterable[str], values: Iterable[OrtValue]) -> None:
        """The same for several; a name that the model does not have is then an error."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise RuntimeError(f"{len(names)} names and {len(values)} values of external initializers were given")
        for name, value in zip(names, values):
            if not isinstance(value, OrtValue):
                raise RuntimeError(f"an initializer is an OrtValue, got {type(value).__name__}")
            self._external[name] = value

    def add_external_initializers_from_files_in_memory(self, names: Iterable[str], buffers: Iterable[Any],
                                                       lengths: Iterable[int]) -> None:
        """The contents of the files that hold the model's external data."""
        names, buffers, lengths = list(names), list(buffers), list(lengths)
        if not len(names) == len(buffers) == len(lengths):
            raise RuntimeError(f"{len(names)} names, {len(buffers)} buffers and {len(lengths)} lengths were given")
        for name, buffer, length in zip(names, buffers, lengths):
            if os.path.isabs(name) or ".." in name.split("/"):
                raise RuntimeError(f"external data is in the model's folder, not in '{name}'")
            self._files[name] = bytes(memoryview(buffer).cast("B")[:length])

    def set_load_cancellation_flag(self, value: bool) -> None:
        """True: sessions are not loaded. A load that goes on ends all the same."""
        self._is_cancelled = bool(value)

    def register_custom_ops_library(self, path: str | os.PathLike) -> None:
        """A library of Tenon's custom operators. One for onnxruntime is refused, as it calls onnxruntime."""
        path = os.fspath(path)
        if not os.path.isfile(path):
            raise status_error(Fail, f"the library '{path}' of custom operators is not there", code="missing-file")
        with open(path, "rb") as file:
            data = file.read()
        if b"tenon_custom_operators" not in data:
            reason = ("has custom operators for onnxruntime, which call onnxruntime's own library"
                      if b"RegisterCustomOps" in data else "is no library of custom operators")
            raise status_error(Fail, f"'{path}' {reason}; Tenon takes libraries that are written with "
                               "tenon/custom_operator.h (docs/recipes/add-your-own-operator.md)", code="invalid-library")
        self._libraries.append(path)

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        self._providers.append((_text(name, "the name of a provider"), dict(options)))

    def has_providers(self) -> bool:
        return bool(self._providers)

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")


class RunOptions:
    """onnxruntime's."""

    __slots__ = ("_values", "_config", "_cancellation", "__weakref__")

    log_severity_level = _Option(-1, "No meaning here: runs log nothing.")
    log_verbosity_level = _Option(0, "No meaning here.")
    logid = _Option("", "No meaning here.")
    only_execute_path_to_fetches = _Option(False, "No meaning here: only what the outputs need is run.")

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._config: dict[str, str] = {}
        self._cancellation = Cancellation()

    @property
    def terminate(self) -> bool:
        """True ends the runs that have these options, between two nodes, and those that begin with them."""
        return self._cancellation.cancelled

    @terminate.setter
    def terminate(self, value: bool) -> None:
        if not hasattr(type(value), "__bool__"):
            raise TypeError(f"terminate is a bool, got {type(value).__name__} {value!r}")
        if value:
            self._cancellation.cancel()
        elif self._cancellation.cancelled:
            self._cancellation = Cancellation()

    def add_run_config_entry(self, key: str, value: str) -> None:
        _add_entry(self._config, key, value)

    def get_run_config_entry(self, key: str) -> str:
        if key not in self._config:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._config[key]

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")
