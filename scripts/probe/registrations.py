"""Prints the kernels that the onnxruntime first on PYTHONPATH has registered, as JSON; [] where it cannot say (before 1.16)."""
import json

from onnxruntime.capi import onnxruntime_pybind11_state as state

kernels = state.get_all_opkernel_def() if hasattr(state, "get_all_opkernel_def") else []
print(json.dumps([[k.provider, k.domain, k.op_name, *k.version_range, k.type_constraints] for k in kernels]))
