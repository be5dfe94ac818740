"""Tenon runs ONNX models and says what it does.

>>> import tenon
>>> model = tenon.load("model.onnx")
>>> outputs = model.run({"x": x})          # or model.run(x=x), or model(x)
"""

from __future__ import annotations

from . import _tenon
from ._tenon import (
    BenchResult, Cancellation, CheckReport, CompiledModelInfo, ConversionBlocker, Finding, Latency, Memory, Model, ModelInfo, ModelSummary, NodePlacement, OnnxModel, OperatorChange,
    OperatorInfo, OperatorUse, OptimizationPass, OptimizedModel, PlacementReport, Profile, ProfileTotals, ProfiledRun,
    ProviderTotals, Rewrite, SparseTensor, StepProfile, Tensor, ValueCopy, ValueInfo, VerifyFailure,
    available_providers, check, check_compiled, compile, config_keys, conversion_blockers, convert, difference, doctor, inspect, load, model_text, operators, optimization_passes,
    optimize, read_onnx, report, verify_optimization, wait_for_cuda)
from ._tenon import (
    ChangedModel, DtypeConversion, DynamicBlocker, DynamicModel, KeptNode, ModelChange, StrippedModel, StrippedTensor,
    convert_dtype, extract, fix, make_dynamic, merge, prune, rename, restore, strip)
from ._tenon import (
    DumpReport, DumpedValue, HealthCheck, HealthReport, MachineRates, MachineSpeed, NanFinding, NanReport, TensorStats,
    ValueSummary, dump, find_nan, health, measure_machine)
from ._tenon import (
    ComparedTensor, Comparison, ErrorStatistics, NodeBisection, OutputErrors, ReducedModel, RewriteBisection, bisect, bisect_nodes, compare, reduce)
from ._tenon import QuantizeReport, QuantizedNode, QuantizedOutput, QuantizedRange, quantize
from .errors import (
    ArgumentError, DeviceLostError, Error, FileError, InputError, InternalError, ModelError, RunError, UnavailableError)

__all__ = [
    "ArgumentError", "BenchResult", "Cancellation", "CheckReport", "CompiledModelInfo", "ConversionBlocker", "DeviceLostError", "Error", "FileError", "Finding", "InputError", "InternalError", "Latency",
    "Memory", "Mismatch", "Model", "ModelError", "ModelInfo", "ModelSummary", "NodePlacement", "OnnxModel", "OperatorChange",
    "OperatorInfo", "OperatorUse", "OptimizationPass", "OptimizedModel", "PlacementReport", "Profile",
    "ProfileTotals", "ProfiledRun", "ProviderTotals", "Rewrite", "RunError", "SparseTensor", "StepProfile", "Tensor",
    "UnavailableError", "ValueCopy", "ValueInfo", "Verification", "VerifyFailure", "__version__",
    "available_providers", "check", "check_compiled", "compile", "config_keys", "conversion_blockers", "convert", "difference", "doctor", "inspect", "load", "model_text", "operators",
    "optimization_passes", "optimize", "read_onnx", "report", "verify", "verify_optimization", "wait_for_cuda",
]

__all__ += [
    "ChangedModel", "DtypeConversion", "DynamicBlocker", "DynamicModel", "KeptNode", "ModelChange", "StrippedModel",
    "StrippedTensor", "convert_dtype", "extract", "fix", "make_dynamic", "merge", "prune", "rename", "restore", "strip",
]

__all__ += [
    "DumpReport", "DumpedValue", "HealthCheck", "HealthReport", "MachineRates", "MachineSpeed", "NanFinding", "NanReport",
    "TensorStats", "ValueSummary", "dump", "find_nan", "health", "measure_machine",
    "ComparedTensor", "Comparison", "ErrorStatistics", "NodeBisection", "OutputErrors", "ReducedModel", "RewriteBisection", "bisect", "bisect_nodes", "compare",
    "reduce", "QuantizeReport", "QuantizedNode", "QuantizedOutput", "QuantizedRange", "quantize",
]

__version__ = _tenon.version

for _name in __all__:
    if isinstance(globals().get(_name), type) and globals()[_name].__module__ == _tenon.__name__:
        globals()[_name].__module__ = __name__

TYPE_CHECKING = False  # as type checkers know it: importing typing takes longer than the rest
if TYPE_CHECKING:
    from . import testing
    from ._verify import Mismatch, Verification, verify


def __getattr__(name: str):
    # Needs NumPy and more, which takes longer to import than all of the above.
    if name in ("Mismatch", "Verification", "verify"):
        from . import _verify
        return getattr(_verify, name)
    if name == "testing":
        from importlib import import_module
        return import_module(".testing", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
