"""The names of onnxruntime's extension module: its exceptions, and the classes that sessions are made of."""

from .._binding import SessionIOBinding
from .._enums import (
    ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtDeviceMemoryType, OrtMemoryInfoDeviceType,
    OrtMemType, OrtSparseFormat)
from .._environment import (
    create_and_register_allocator, create_and_register_allocator_v2, disable_telemetry_events, enable_telemetry_events,
    get_build_info, get_version_string, has_collective_ops, set_default_logger_severity, set_default_logger_verbosity,
    set_global_thread_pool_sizes, set_seed)
from .._errors import (
    DeviceReset, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled, ModelLoaded,
    ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented, RuntimeException)
from .._nodes import OrtEpAssignedNode, OrtEpAssignedSubgraph
from .._options import RunOptions, SessionOptions
from .._providers import get_all_providers, get_available_providers, get_device
from .._session import InferenceSession, ModelMetadata, NodeArg
from .._values import OrtArenaCfg, OrtDevice, OrtMemoryInfo, OrtValue, OrtValueVector

__all__ = [name for name in dir() if not name.startswith("_")]
