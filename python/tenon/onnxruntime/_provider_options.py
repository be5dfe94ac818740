"""Options of onnxruntime's providers for NVIDIA's GPUs: what each does here, or why it does nothing.

Both providers are Tenon's CUDA provider. docs/gpu.md has the tables of this file.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field
from typing import Iterable, Mapping

from ._errors import InvalidArgument, status_error

CUDA, TENSORRT = "CUDAExecutionProvider", "TensorrtExecutionProvider"
KERNEL_CACHE = "TENON_KERNEL_CACHE"
PRECISION = "tenon.precision"

_ON, _OFF = ("1", "true", "True"), ("0", "false", "False")


@dataclass(frozen=True)
class Option:
    """What an option does here; without an effect, why."""

    text: str
    has_effect: bool = False
    #: Values that ask for what happens anyway.
    usual: tuple[str, ...] = ()
    is_flag: bool = False


def _works(text: str, is_flag: bool = False) -> Option:
    return Option(text, has_effect=True, is_flag=is_flag)


_DEVICE = _works("the GPU: `cuda:1` for 1")
_STREAM = _works("the stream that the session works in, by its address as a number; without it, one of its own. A run waits for its work, unless the "
                 "run option `disable_synchronize_execution_providers` is `1` and all inputs and outputs are bound to the GPU's memory")
_HAS_STREAM = Option("it has one if `user_compute_stream` is given", usual=(*_ON, *_OFF))
_ARENA = Option("the memory that a plan needs is one block, which stays for the next run")
_TUNED = Option("products and convolutions are always chosen by trial, once for each shape")
_SUMS = Option("normalisations always sum in fp32", usual=_ON)
_ENGINES = Option("there are no engines: kernels are compiled and kept one by one")
_PARTS = Option("every node that has a CUDA kernel runs there by itself: no subgraphs are built")
_SEARCH = Option("the ways that TensorRT would try are not there")
_BUILDER = Option("there is no builder: kernels are Tenon's own, cublasLt's and cuDNN's")
_DLA = Option("only the GPU computes", usual=_OFF)
_INTEGERS = Option("types are the model's: `tenon quantize` makes one of 8 bits", usual=_OFF)
_SHAPES = _works("a run with zeros of these shapes when the session is made: plans and kernels are ready then")


def _half(dtype: str) -> Option:
    return _works(f"`1`: precision `fast`: products and convolutions may round to TF32; `tenon convert --dtype {dtype}` makes a model that computes in that "
                  "type", is_flag=True)


#: What each provider's options do here.
OPTIONS: dict[str, dict[str, Option]] = {
    CUDA: {
        "device_id": _DEVICE,
        "use_tf32": _works("`1`: precision `fast`, which lets products and convolutions round to TF32, and those that the CPU runs "
                           "to bfloat16. Without it fp32 is computed in fp32, where onnxruntime takes TF32", is_flag=True),
        "enable_cuda_graph": Option("runs are one CUDA graph from the second one with the same shapes on", usual=_ON),
        "do_copy_in_default_stream": Option("copies go through pinned memory, large ones in streams of their own where they can overlap with kernels",
                                            usual=(*_ON, *_OFF)),
        "cudnn_conv_algo_search": Option("what cuDNN proposes is tried once for each shape, and the fastest is taken",
                                         usual=("EXHAUSTIVE", )),
        "cudnn_conv_use_max_workspace": Option("convolutions have 32 MiB to work in"),
        "cudnn_conv1d_pad_to_nc1d": _TUNED,
        "prefer_nhwc": Option("the optimiser decides on the layout"),
        "fuse_conv_bias": Option("the optimiser decides what is part of a convolution"),
        "gpu_mem_limit": Option("what a session takes of the GPU's memory has no limit"),
        "arena_extend_strategy": _ARENA,
        "gpu_external_alloc": _ARENA, "gpu_external_free": _ARENA, "gpu_external_empty_cache": _ARENA,
        "user_compute_stream": _STREAM, "has_user_compute_stream": _HAS_STREAM,
        "use_ep_level_unified_stream": Option("a session has one stream for kernels", usual=_ON),
        "tunable_op_enable": _TUNED, "tunable_op_tuning_enable": _TUNED, "tunable_op_max_tuning_duration_ms": _TUNED,
        "enable_skip_layer_norm_strict_mode": _SUMS,
        "sdpa_kernel": Option("the kernel of attention follows from types and sizes"),
    },
    TENSORRT: {
        "device_id": _DEVICE,
        "trt_engine_cache_enable": Option("kernels are always kept; with a path, there", usual=_ON),
        "trt_engine_cache_path": _works("with `trt_engine_cache_enable`: the folder of compiled kernels, for the whole process, "
                                        f"unless {KERNEL_CACHE} names one"),
        "trt_fp16_enable": _half("fp16"),
        "trt_bf16_enable": _half("bf16"),
        "trt_profile_min_shapes": _SHAPES, "trt_profile_opt_shapes": _SHAPES, "trt_profile_max_shapes": _SHAPES,
        "trt_cuda_graph_enable": Option("runs are one CUDA graph from the second one with the same shapes on", usual=_ON),
        "trt_int8_enable": _INTEGERS, "trt_int8_calibration_table_name": _INTEGERS,
        "trt_int8_use_native_calibration_table": _INTEGERS,
        "user_compute_stream": _STREAM, "has_user_compute_stream": _HAS_STREAM,
        "trt_auxiliary_streams": Option("a session has one stream for kernels"),
        "trt_context_memory_sharing_enable": _ARENA,
        "trt_max_workspace_size": Option("products and convolutions have 32 MiB to work in"),
        "trt_max_partition_iterations": _PARTS, "trt_min_subgraph_size": _PARTS, "trt_dump_subgraphs": _PARTS,
        "trt_op_types_to_exclude": _PARTS,
        "trt_layer_norm_fp32_fallback": _SUMS,
        "trt_sparsity_enable": Option("products are dense", usual=_OFF),
        "trt_dla_enable": _DLA, "trt_dla_core": _DLA,
        "trt_timing_cache_enable": _TUNED, "trt_timing_cache_path": _TUNED, "trt_force_timing_cache": _TUNED,
        "trt_tactic_sources": _SEARCH, "trt_builder_optimization_level": _BUILDER, "trt_build_heuristics_enable": _BUILDER,
        "trt_detailed_build_log": _BUILDER, "trt_force_sequential_engine_build": _BUILDER, "trt_preview_features": _BUILDER,
        "trt_extra_plugin_lib_paths": Option("plugins of TensorRT are not loaded; operators of your own: tenon/custom_operator.h"),
        "trt_engine_cache_prefix": _ENGINES, "trt_engine_hw_compatible": _ENGINES, "trt_engine_decryption_enable": _ENGINES,
        "trt_engine_decryption_lib_path": _ENGINES, "trt_weight_stripped_engine_enable": _ENGINES,
        "trt_onnx_model_folder_path": _ENGINES, "trt_onnx_bytestream": _ENGINES, "trt_onnx_bytestream_size": _ENGINES,
        "trt_external_data_bytestream": _ENGINES, "trt_external_data_bytestream_size": _ENGINES,
        "trt_load_user_initializer": _ENGINES, "trt_dump_ep_context_model": _ENGINES, "trt_ep_context_file_path": _ENGINES,
        "trt_ep_context_embed_mode": _ENGINES,
    },
}


@dataclass
class Gpu:
    """What the options of a session's providers come to."""

    device_id: int = 0
    is_fast: bool = False
    #: The caller's stream; 0: none.
    stream: int = 0
    #: Options without an effect, and those that mean something else here.
    notes: list[str] = field(default_factory=list)
    #: Shapes by input to prepare for.
    profiles: list[dict[str, tuple[int, ...]]] = field(default_factory=list)
    kernel_folder: str = ""

    @property
    def provider(self) -> str:
        return f"cuda:{self.device_id}" if self.device_id else CUDA

    def in_effect(self, config: Mapping[str, str]) -> dict[str, str]:
        """The options by which onnxruntime would do what is done here."""
        return {"device_id": str(self.device_id), "use_tf32": "1" if config.get(PRECISION) == "fast" else "0",
                "enable_cuda_graph": "1", "do_copy_in_default_stream": "0",
                **({"user_compute_stream": str(self.stream)} if self.stream else {})}

    def use_kernel_folder(self) -> None:
        if self.kernel_folder and os.environ.setdefault(KERNEL_CACHE, self.kernel_folder) != self.kernel_folder:
            self.notes.append(f"trt_engine_cache_path has no effect: {KERNEL_CACHE} is '{os.environ[KERNEL_CACHE]}'")


def _error(text: str) -> Exception:
    return status_error(InvalidArgument, text, code="invalid-argument")


def _flag(name: str, value: str) -> bool:
    if value not in (*_ON, *_OFF):
        raise _error(f"the provider option '{name}' is 0 or 1, not '{value}'")
    return value in _ON


def _check(provider: str, name: str) -> Option:
    known = OPTIONS[provider]
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean '{near[0]}'?" if near else "docs/gpu.md lists them"
    raise _error(f"{provider} has no option '{name}'; {hint}")


def _shapes(name: str, value: str) -> list[dict[str, tuple[int, ...]]]:
    """Profiles of "x:1x3,y:1,x:2x3,y:2": what is named again begins the next one."""
    profiles: list[dict[str, tuple[int, ...]]] = []
    for part in filter(None, value.split(",")):
        tensor, _, sizes = part.rpartition(":")
        try:
            shape = tuple(int(size) for size in sizes.split("x"))
        except ValueError:
            shape = ()
        if not tensor or not shape or min(shape) < 0:
            raise _error(f"the provider option '{name}' is a list such as 'x:1x3x224x224,y:1x8', not '{value}'")
        profile = next((one for one in profiles if tensor not in one), None)
        if profile is None:
            profiles.append(profile := {})
        profile[tensor] = shape
    return profiles


def read(asked: Mapping[str, Mapping[str, str]]) -> Gpu | None:
    """What the options of these providers come to; None where none is for a GPU. Raises for options that nobody knows."""
    if TENSORRT not in asked and CUDA not in asked:
        return None
    gpu, devices = Gpu(), set()
    if TENSORRT in asked:
        gpu.notes.append(f"{TENSORRT} is Tenon's CUDA provider here: TensorRT is not used")
    for provider in (TENSORRT, CUDA):
        options = asked.get(provider, {})
        for name, value in options.items():
            option = _check(provider, name)
            if not option.has_effect and value not in option.usual:
                gpu.notes.append(f"the provider option {name}={value} has no effect: {option.text}")
            if name == "device_id":
                if not value.isdecimal():
                    raise _error(f"the provider option 'device_id' is the number of a GPU, not '{value}'")
                devices.add(int(value))
            if name == "user_compute_stream":
                try:
                    gpu.stream = int(value or "0", 0)
                except ValueError:
                    raise _error(f"the provider option 'user_compute_stream' is the address of a stream as a number, not '{value}'") from None
            if option.is_flag and _flag(name, value):
                gpu.is_fast = True
                if provider == TENSORRT:
                    gpu.notes.append(f"the provider option {name}=1 means here: {option.text.removeprefix('`1`: ')}")
            if name.startswith("trt_profile_"):
                gpu.profiles += [one for one in _shapes(name, value) if one not in gpu.profiles]
        if options.get("trt_engine_cache_enable") in _ON:
            gpu.kernel_folder = options.get("trt_engine_cache_path", "")
        elif "trt_engine_cache_path" in options:
            gpu.notes.append("the provider option trt_engine_cache_path has no effect without trt_engine_cache_enable=1")
    if len(devices) > 1:
        raise _error(f"a session computes on one GPU, and the options have device_id {' and '.join(map(str, sorted(devices)))}")
    gpu.device_id = next(iter(devices), 0)
    return gpu


def names_for(asked: Iterable[str], gpu: Gpu | None) -> list[str]:
    """The providers to ask the library for: the GPU once, whatever it is called."""
    names = [gpu.provider if gpu and name in OPTIONS else name for name in asked]
    return list(dict.fromkeys(names))
