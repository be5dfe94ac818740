"""What onnxruntime has on CPU: which operator versions, and for which types."""
import collections

from onnxruntime.capi import onnxruntime_pybind11_state


def list_kernels():
    """{(domain, operator): [kernel]}."""
    result = collections.defaultdict(list)
    for kernel in onnxruntime_pybind11_state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider":
            result[kernel.domain, kernel.op_name].append(kernel)
    return result


KERNELS = list_kernels()
OPEN = 2**31 - 1


def kernels(schema):
    """A kernel without a last version is for the operator version that it starts with only."""
    since = schema.since_version
    return [k for k in KERNELS[schema.domain, schema.name]
            if since == k.version_range[0] or k.version_range[0] < since <= k.version_range[1] < OPEN]


def accepts(schema):
    """Whether onnxruntime has a kernel for a version, or runs it as a function or as a constant."""
    function = schema.has_function or schema.has_context_dependent_function
    return bool(kernels(schema)) or function or schema.name == "Constant"


def types(schema):
    """{type parameter: types that some kernel takes}."""
    result = collections.defaultdict(set)
    for kernel in kernels(schema):
        for name, allowed in kernel.type_constraints.items():
            result[name] |= set(allowed)
    return result
