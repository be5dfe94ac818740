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


def kernels(schema, last):
    return [k for k in KERNELS[schema.domain, schema.name] if k.version_range[0] <= last and k.version_range[1] >= schema.since_version]


def accepts(schema, last):
    """Whether onnxruntime has a kernel for a version, which holds up to opset `last`, or runs it as a function or as a constant."""
    function = schema.has_function or schema.has_context_dependent_function
    return bool(kernels(schema, last)) or function or schema.name == "Constant"


def types(schema, last):
    """{type parameter: types that some kernel takes}."""
    result = collections.defaultdict(set)
    for kernel in kernels(schema, last):
        for name, allowed in kernel.type_constraints.items():
            result[name] |= set(allowed)
    return result
