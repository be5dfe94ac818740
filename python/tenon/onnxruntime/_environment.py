"""What onnxruntime has for the whole process: versions, logging, seeds, telemetry."""

from __future__ import annotations

import platform
import sys
import warnings
from typing import Any

from .. import __version__, _tenon

#: The version of onnxruntime whose API this is; tenon.__version__ is Tenon's own.
API_VERSION = "1.31.1"

severity = 2


def get_version_string() -> str:
    return API_VERSION


def get_build_info() -> str:
    return f"Tenon Build Info: version={__version__}, onnxruntime API={API_VERSION}"


def has_collective_ops() -> bool:
    return False


def set_default_logger_severity(level: int) -> None:
    """What sessions log: warnings up to 2, nothing above. They go to Python's logger ``tenon.onnxruntime``."""
    global severity
    if not 0 <= level <= 4:
        raise RuntimeError(f"a severity is 0 (verbose), 1 (info), 2 (warning), 3 (error) or 4 (fatal), got {level}")
    severity = level


def set_default_logger_verbosity(level: int) -> None:
    """No meaning here."""


def set_seed(seed: int) -> None:
    """Has no effect, and says so: nodes draw the same numbers in every run if they have an attribute ``seed``."""
    warnings.warn("set_seed has no effect in Tenon: give the model's random nodes a seed", UserWarning, stacklevel=2)


def enable_telemetry_events() -> None:
    """There is no telemetry."""


def disable_telemetry_events() -> None:
    """There is no telemetry."""


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """No meaning here: the environment variable TENON_THREADS sizes the pool that sessions share."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: Any = None) -> None:
    """Nothing needs to be loaded early."""


def create_and_register_allocator(*arguments: Any) -> None:
    """No meaning here: memory is pooled per session."""


create_and_register_allocator_v2 = create_and_register_allocator


def print_debug_info() -> None:
    """What belongs into a bug report."""
    print(f"tenon version: {__version__} (API of onnxruntime {API_VERSION})")
    print(f"platform: {platform.platform()}\npython: {sys.version}")
    for title, lines in _tenon.doctor(measure=False).items():
        print(f"{title}: {lines}")
