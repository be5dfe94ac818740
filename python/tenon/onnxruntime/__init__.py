"""onnxruntime's API on Tenon: ``import tenon.onnxruntime as ort`` is the one line to change.

docs/migration.md says what differs on purpose. ``install()`` is for code that cannot be edited.
"""

from __future__ import annotations

from . import _install, _not_here, capi
from ._binding import IOBinding, SessionIOBinding
from ._enums import (
    ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtDeviceMemoryType, OrtDeviceVendorId,
    OrtMemoryInfoDeviceType, OrtMemType, OrtSparseFormat)
from ._environment import API_VERSION as __version__
from ._environment import (
    create_and_register_allocator, create_and_register_allocator_v2, disable_telemetry_events, enable_telemetry_events,
    get_build_info, get_version_string, has_collective_ops, preload_dlls, print_debug_info, set_default_logger_severity,
    set_default_logger_verbosity, set_global_thread_pool_sizes, set_seed)
from ._install import install, uninstall
from ._nodes import OrtEpAssignedNode, OrtEpAssignedSubgraph
from ._options import RunOptions, SessionOptions
from ._providers import get_all_providers, get_available_providers, get_device
from ._session import InferenceSession, ModelMetadata, NodeArg
from ._values import OrtArenaCfg, OrtDevice, OrtMemoryInfo, OrtValue, copy_tensors

package_name, version, cuda_version = "onnxruntime", __version__, ""

__all__ = [
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata",
    "NodeArg", "OrtAllocatorType", "OrtArenaCfg", "OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId",
    "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtMemType", "OrtMemoryInfo", "OrtMemoryInfoDeviceType",
    "OrtSparseFormat", "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions", "capi", "copy_tensors",
    "create_and_register_allocator", "create_and_register_allocator_v2", "cuda_version", "disable_telemetry_events",
    "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
    "get_version_string", "has_collective_ops", "install", "package_name", "preload_dlls", "print_debug_info",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed",
    "uninstall", "version",
]


def __getattr__(name: str):
    if tool := _install.find_tool(name):
        return tool
    reason = _not_here.REASONS.get(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}" + (f": {reason}" if reason else ""))
