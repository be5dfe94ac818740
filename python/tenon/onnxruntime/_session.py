"""InferenceSession."""

from __future__ import annotations

import logging
import os
import pathlib
import tempfile
import threading
import time
import warnings
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy as np

from .. import _tenon
from ..errors import Error
from . import _config, _environment, _provider_options, _providers
from ._binding import IOBinding
from ._enums import ExecutionMode, GraphOptimizationLevel, OrtAllocatorType, OrtMemType
from ._errors import Fail, ModelLoadCanceled, of_load, of_run, status_error
from ._nodes import OrtEpAssignedSubgraph
from ._options import RunOptions, SessionOptions
from ._profile import Recorder
from ._values import OrtMemoryInfo, OrtValue, OrtValueVector, zeros

_LEVELS = {GraphOptimizationLevel.ORT_DISABLE_ALL: "none", GraphOptimizationLevel.ORT_ENABLE_BASIC: "basic",
           GraphOptimizationLevel.ORT_ENABLE_EXTENDED: "extended", GraphOptimizationLevel.ORT_ENABLE_LAYOUT: "all",
           GraphOptimizationLevel.ORT_ENABLE_ALL: "all"}
_log = logging.getLogger("tenon.onnxruntime")


class NodeArg:
    """An input or output: its name, its type as ONNX writes it, and its sizes as numbers, names or None."""

    __slots__ = ("_name", "_type", "_shape")

    def __init__(self, info: _tenon.ValueInfo):
        self._name, self._type, self._shape = info.name, info.type.replace(", ", ","), list(info.shape or ())

    @property
    def name(self) -> str:
        return self._name

    @property
    def type(self) -> str:
        return self._type

    @property
    def shape(self) -> list[int | str | None]:
        return list(self._shape)

    def __str__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class ModelMetadata:
    """What a model says about itself."""

    def __init__(self, info: _tenon.ModelInfo):
        self.custom_metadata_map = dict(info.metadata)
        self.description, self.graph_description = info.doc_string, info.graph_doc_string
        self.domain, self.graph_name, self.producer_name = info.domain, info.graph_name, info.producer_name
        self.version = info.model_version


class InferenceSession:
    """A model that is ready to run, with onnxruntime's methods.

    ``session.tenon`` is the :class:`tenon.Model` behind it, for what onnxruntime has no method for.
    """

    def __init__(self, path_or_bytes: str | bytes | os.PathLike, sess_options: SessionOptions | None = None,
                 providers: Sequence[str | tuple[str, dict]] | None = None,
                 provider_options: Sequence[dict] | None = None, **kwargs: Any):
        if not isinstance(path_or_bytes, (str, bytes, os.PathLike)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if not isinstance(sess_options, (SessionOptions, type(None))):
            raise TypeError(f"sess_options are SessionOptions, got {type(sess_options).__name__}")
        if isinstance(path_or_bytes, bytes):
            self._model_bytes, self._model_path = path_or_bytes, None
        else:
            self._model_bytes, self._model_path = None, os.fspath(path_or_bytes)
        self._sess_options = sess_options._copy() if sess_options else SessionOptions()
        self._disabled = list(kwargs.get("disabled_optimizers") or ())
        self._recorder = Recorder(self._sess_options.profile_file_prefix) if self._sess_options.enable_profiling else None
        asked = _providers.normalized(providers, provider_options)
        self._load(asked or dict(self._sess_options._providers))

    # Loading

    def _load(self, asked: dict[str, dict[str, str]]) -> None:
        if self._sess_options._is_cancelled:
            raise status_error(ModelLoadCanceled, "the options say that loading is cancelled", code="cancelled")
        start = time.monotonic_ns()
        gpu = _provider_options.read(asked)
        if gpu:
            gpu.use_kernel_folder()
        options = self._load_options(_provider_options.names_for(asked, gpu), gpu or _provider_options.Gpu())
        try:
            self.tenon = self._load_model(options)
            self._save_optimized(options)
        except Error as error:
            if error.code == "provider-unavailable":
                advice = "to go on without it, leave it out of 'providers' or set TENON_ORT_FALLBACK=warn"
                raise of_load(type(error)(f"{error}\n  {advice}", error.code, error.message, error.node, error.tensor,
                                          f"{error.hint}; {advice}")) from None
            raise of_load(error) from None
        self._inputs, self._outputs = self.tenon.inputs, self.tenon.outputs
        self._loaded_with = options
        usable = _providers.get_available_providers()
        names = dict.fromkeys(_provider_options.CUDA if name in _provider_options.OPTIONS else name for name in asked)
        self._providers = [name for name in names if name in usable and name != _providers.CPU] + [_providers.CPU]
        self._provider_options = {name: gpu.in_effect(options["config"]) if gpu and name == _provider_options.CUDA else {}
                                  for name in self._providers}
        self._tell([*names, *options["providers"]], gpu.notes if gpu else [])
        if gpu and _provider_options.CUDA in self._providers:
            self._prepare(gpu.profiles)
        self._types = {info.name: info.type for info in [*self.tenon.inputs, *self.tenon.overridable_initializers]}
        self._text_inputs = frozenset(name for name, kind in self._types.items() if kind == "tensor(string)")
        if self._recorder:
            kind = "array" if self._model_bytes is not None else "uri"
            self._recorder.session_event(f"model_loading_{kind}", start, start)
            self._recorder.session_event("session_initialization", start, time.monotonic_ns())

    def _prepare(self, profiles: Sequence[Mapping[str, Sequence[int]]]) -> None:
        """Runs with zeros of these shapes, so that plans and kernels are ready."""
        inputs = [info.name for info in self._inputs]
        for profile in profiles:
            for name in profile:
                if name not in inputs:
                    self._note(f"the shape of '{name}' has no effect: the model's inputs are {', '.join(inputs)}")
            try:
                feed = {info.name: zeros(info.type, profile.get(info.name, info.shape)) for info in self.get_inputs()}
                self.tenon.run(feed)
            except (Error, ValueError) as error:
                self._note(f"nothing is prepared for the shapes {dict(profile)}: {error}")

    def _load_options(self, asked: list[str], gpu: _provider_options.Gpu) -> dict[str, Any]:
        options = self._sess_options
        config = _config.options_of(options._config, self._disabled, stacklevel=4)
        if options.execution_mode == ExecutionMode.ORT_PARALLEL:
            config.setdefault("tenon.parallel_branches", "1")
        if gpu.is_fast:
            config.setdefault(_provider_options.PRECISION, "fast")
        threads = options.intra_op_num_threads if options.use_per_session_threads else 0
        return {"level": _LEVELS[options.graph_optimization_level], "threads": max(threads, 0),
                "providers": [name for name in asked if name != _providers.CPU] + [_providers.CPU],
                "allow_fallback": _providers.goes_on(), "config": config, "sizes": options._sizes,
                "denoted_sizes": options._denoted_sizes, "custom_operator_libraries": options._libraries,
                "folder": options._config.get(_config.FOLDER), "stream": gpu.stream}

    def _load_model(self, options: dict[str, Any]) -> _tenon.Model:
        source = self._model_path if self._model_bytes is None else self._model_bytes
        if files := self._sess_options._files:
            with tempfile.TemporaryDirectory() as folder:
                for name, data in files.items():
                    path = pathlib.Path(folder, name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
                source = pathlib.Path(source).read_bytes() if self._model_bytes is None else source
                return self._load_with_initializers(source, {**options, "folder": folder})
        return self._load_with_initializers(source, options)

    def _load_with_initializers(self, source: str | bytes, options: dict[str, Any]) -> _tenon.Model:
        shared = {name: value._tensor() for name, value in self._sess_options._initializers.items()}
        external = {name: value._tensor() for name, value in self._sess_options._external.items()}
        while True:
            try:
                return _tenon.load(source, **options, initializers={**shared, **external})
            except Error as error:
                # Models may share initializers that not every one of them has.
                if error.code != "unknown-name" or error.tensor not in shared or error.tensor in external:
                    raise
                del shared[error.tensor]

    def _save_optimized(self, options: dict[str, Any]) -> None:
        target = self._sess_options.optimized_model_filepath
        if not target:
            return
        # Level "all" chooses layouts for this processor, which ONNX has no operators for.
        level = "extended" if options["level"] == "all" else options["level"]
        passes = [name for name in options["config"].get(_config.DISABLED_PASSES, "").split(";") if name]
        how = {"level": level, "disabled_passes": passes, "custom_operator_libraries": options["custom_operator_libraries"]}
        if self._model_bytes is None:
            _tenon.optimize(self._model_path, **how).save(target)
            return
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(self._model_bytes)
            _tenon.optimize(path, **how).save(target)

    def _tell(self, asked: Iterable[str], notes: Iterable[str]) -> None:
        """Warns about providers that are not used, and logs the other notes."""
        for note in [*notes, *self.tenon.notes]:
            if any(note.startswith(f"provider '{name}' is not used") for name in asked):
                usable = ", ".join(_providers.get_available_providers())
                warnings.warn(f"{note}; available providers: {usable}", UserWarning, stacklevel=4)
            else:
                self._note(note)

    def _note(self, note: str) -> None:
        severity = self._sess_options.log_severity_level
        if (_environment.severity if severity < 0 else severity) <= 2:
            _log.warning("%s", f"{self._sess_options.logid}: {note}" if self._sess_options.logid else note)

    # What the session says about itself

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(info) for info in self._inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(info) for info in self._outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        return [NodeArg(info) for info in self.tenon.overridable_initializers]

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self.tenon.info)

    def get_session_options(self) -> SessionOptions:
        return self._sess_options

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: dict(options) for name, options in self._provider_options.items()}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Loads the model again with other providers."""
        self._load(_providers.normalized(providers, provider_options))

    def placement(self) -> list[_tenon.NodePlacement]:
        """Where every node runs, and which providers declined it with what reason. onnxruntime has no such method."""
        return self.tenon.placement()

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        if self._sess_options._config.get(_config.RECORD_ASSIGNMENT) != "1":
            raise status_error(Fail, f"'{_config.RECORD_ASSIGNMENT}' must be \"1\" for this; placement() needs no option")
        return [OrtEpAssignedSubgraph(node) for node in self.tenon.placement()]

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        return [_cpu_memory() for _ in self.tenon.inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        return [_cpu_memory() for _ in self.tenon.outputs]

    def get_tuning_results(self) -> list:
        return []

    def set_tuning_results(self, results: Any, *, error_on_invalid: bool = False) -> None:
        """Nothing is tuned here."""

    def disable_fallback(self) -> None:
        """Nothing falls back after a failed run here."""

    def enable_fallback(self) -> None:
        """Nothing falls back after a failed run here."""

    # Running

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: RunOptions | None = None) -> list[Any]:
        """The outputs of these names, or all of them, in order."""
        names = [] if output_names is None else _names(output_names)
        try:
            outputs = self._run_model(names, self._feed(input_feed), run_options)
        except Error as error:
            raise of_run(error, self._required(), input_feed) from None
        return [outputs[name] for name in names] if names else list(outputs.values())

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        return self._run_with_values(output_names, input_dict_ort_values, run_options, {})

    def _run_with_values(self, output_names: Sequence[str] | None, values: Mapping[str, OrtValue],
                         run_options: RunOptions | None, outputs_on: Mapping[str, str]) -> list[OrtValue]:
        names = _names(output_names)
        try:
            outputs = self._run_model(names, {name: value._get_c_value()._value for name, value in values.items()},
                                      run_options, None, outputs_on)
        except Error as error:
            raise of_run(error, self._required(), values) from None
        return [OrtValue._of(outputs[name]) for name in names or outputs]

    def run_with_ortvaluevector(self, run_options: RunOptions | None, feed_names: Sequence[str], feeds: Sequence[OrtValue],
                                fetch_names: Sequence[str], fetches: OrtValueVector, fetch_devices: Any) -> None:
        on = {name: "cuda" for name, device in zip(fetch_names, fetch_devices or ()) if device.device_type() == 1}
        fetches[:] = self._run_with_values(fetch_names, dict(zip(feed_names, feeds)), run_options, on)

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
                  callback: Callable[[list[Any], Any, str], None], user_data: Any,
                  run_options: RunOptions | None = None) -> None:
        """Runs in a thread of its own, which then calls ``callback(outputs, user_data, error)``."""
        missing = [name for name in self._required() if name not in input_feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")

        def work() -> None:
            outputs, problem = [], ""
            try:
                outputs = self.run(output_names, input_feed, run_options)
            except Exception as error:
                problem = str(error)
            callback(outputs, user_data, problem)

        threading.Thread(target=work, name="tenon-run-async", daemon=True).start()

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        iobinding._run(run_options)

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, device_type: str,
                                            device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def _run_model(self, names: Sequence[str], feed: Mapping[str, Any], run_options: RunOptions | None,
                   into: Mapping[str, Any] | None = None, outputs_on: Mapping[str, str] | None = None) -> dict[str, Any]:
        if run_options is not None and not isinstance(run_options, RunOptions):
            raise TypeError(f"run_options are RunOptions, got {type(run_options).__name__}")
        try:
            if run_options is None and not into and not outputs_on and self._recorder is None:
                return self.tenon.run(feed, outputs=names) if names else self.tenon.run(feed)
            return self._run_once(names, feed, run_options, into, outputs_on)
        except Error as error:
            if not (_providers.goes_on() and error.message.endswith("it must be the same everywhere")):
                raise
            warnings.warn(f"{error.tensor}: {error.message}, by ONNX's rules; the model is loaded again without them, and may "
                          "run slower", UserWarning, stacklevel=4)
        self._sess_options.add_session_config_entry(_config.TRUST_SIZE_NAMES, "0")
        self._loaded_with["config"][_config.TRUST_SIZE_NAMES] = "0"
        self.tenon = self._load_model(self._loaded_with)
        return self._run_once(names, feed, run_options, into, outputs_on)

    def _run_once(self, names: Sequence[str], feed: Mapping[str, Any], run_options: RunOptions | None,
                  into: Mapping[str, Any] | None, outputs_on: Mapping[str, str] | None) -> dict[str, Any]:
        profile = self._recorder.runs if self._recorder else None
        where = {"outputs": names, "into": into or None, "outputs_on": outputs_on or None}
        if run_options is None:
            return self.tenon.run(feed, **where, profile=profile)
        waits = run_options._config.get(_config.NO_WAIT) != "1" or not self._loaded_with["stream"]
        outputs = self.tenon.run(feed, **where, cancel=run_options._cancellation, profile=profile, wait=waits)
        if _config.SHRINK in run_options._config:
            self.tenon.trim()
        return outputs

    def _feed(self, feed: Mapping[str, Any]) -> Mapping[str, Any]:
        if OrtValue in map(type, feed.values()):
            feed = {name: value._value if isinstance(value, OrtValue) else value for name, value in feed.items()}
        texts = {}
        for name in self._text_inputs:
            if name in feed and (text := _texts(feed[name])) is not feed[name]:
                texts[name] = text
        return {**feed, **texts} if texts else feed

    def _required(self) -> list[str]:
        return [info.name for info in self.tenon.inputs]

    # Profiling

    def end_profiling(self) -> str:
        """Writes what was measured as a Chrome trace and returns its path; "" where nothing was."""
        if not self._recorder:
            return ""
        recorder, self._recorder = self._recorder, None
        return recorder.write()

    def get_profiling_start_time_ns(self) -> int:
        return self._recorder.wall_start if self._recorder else 0


def _cpu_memory() -> OrtMemoryInfo:
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)


def _names(names: Sequence[str] | None) -> list[str]:
    if isinstance(names, str):
        raise TypeError(f"output_names is a list of names, got the str {names!r}")
    return [] if names is None else list(names)


_TEXTS = frozenset((str, bytes))


def _texts(value: Any) -> Any:
    """Objects as strings: onnxruntime takes what they print as."""
    if isinstance(value, _tenon.Tensor):
        return value
    array = value if isinstance(value, np.ndarray) else np.array(value, dtype=object)
    if array.dtype.kind != "O" or _TEXTS.issuperset(map(type, array.flat)):
        return value
    texts = np.empty(array.shape, dtype=object)
    texts[...] = np.vectorize(str, otypes=[object])(array) if array.size else array
    return texts
