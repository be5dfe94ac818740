"""Every node case of the ONNX suite through Python: all types, sequences and optionals go in and come out right.

tests/conformance.py runs them through the command; here it is the way through Python that is tested.
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import tenon
from onnx import numpy_helper
from tenon._compare import distance

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from onnx_suite import DEFAULT_TOLERANCE, write_suite  # noqa: E402


def read(path, info):
    kind = info.type.WhichOneof("value")
    message, decode = {"sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
                       "optional_type": (onnx.OptionalProto, numpy_helper.to_optional)}.get(
                           kind, (onnx.TensorProto, numpy_helper.to_array))
    return decode(message.FromString(path.read_bytes()))


def numbers(value):
    """Types of ml_dtypes as ones that NumPy computes with."""
    if isinstance(value, list):
        return [numbers(item) for item in value]
    return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype.kind == "V" else value


def dtypes(value):
    if isinstance(value, list):
        return [dtypes(item) for item in value]
    return None if value is None else np.asarray(value).dtype


def problems(folder):
    """What is wrong with the outputs of a case."""
    graph = onnx.load(folder / "model.onnx").graph
    model = tenon.load(folder / "model.onnx")
    settings = folder / "tolerance.json"
    tolerance = json.loads(settings.read_text()) if settings.exists() else DEFAULT_TOLERANCE
    for data in sorted(folder.glob("test_data_set_*")):
        files = [data / f"input_{i}.pb" for i in range(len(graph.input))]
        outputs = model.run({info.name: read(file, info) for info, file in zip(graph.input, files) if file.exists()})
        for i, info in enumerate(graph.output):
            expected, actual = read(data / f"output_{i}.pb", info), outputs[info.name]
            if dtypes(actual) != dtypes(expected):
                yield f"{info.name} is {dtypes(actual)} instead of {dtypes(expected)}"
            elif "nonzero" in tolerance:  # random numbers
                if actual.shape != expected.shape:
                    yield f"{info.name} has shape {actual.shape} instead of {expected.shape}"
            elif found := distance(numbers(actual), numbers(expected), tolerance["rtol"], tolerance["atol"]):
                yield f"{info.name}: {found.reason}"


def test_every_node_case():
    cases = sorted((write_suite() / "node").iterdir())
    assert len(cases) > 1500
    wrong = [f"{folder.name}: {problem}" for folder in cases for problem in problems(folder)]
    assert not wrong, "\n".join(wrong)
