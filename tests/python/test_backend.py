"""onnx's own runner of backend tests, with tenon.backend: every case that needs no download."""
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest
import tenon.backend
from onnx import helper
from small_models import add, linear, linear_reference

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import onnx_suite  # noqa: E402

# Where the runner puts inputs that it makes.
os.environ.setdefault("ONNX_MODELS", str(onnx_suite.ROOT / "build/onnx-models"))

#: Cases that cannot be compared by the runner, with the reason.
EXCLUDED = {}
TOLERANCES = {}
for line in onnx_suite.COMPARISONS.read_text().splitlines():
    if not line or line.startswith("#"):
        continue
    case, settings, reason = line.split(": ", 2)
    name = case.split("/")[1]
    if settings.startswith("nonzero"):
        EXCLUDED[name] = reason
    else:
        TOLERANCES[name] = {key: json.loads(value) for key, value in (one.split("=") for one in settings.split())}


# In a sequence of scalars, the runner asks for the length of one.
EXCLUDED["test_loop16_seq_none"] = "the runner cannot compare a sequence of scalars"


class _Backend(tenon.backend.TenonBackend):
    """The runner hands tolerances to the backend too."""

    @classmethod
    def prepare(cls, model, device="CPU", rtol=None, atol=None, **options):
        return super().prepare(model, device, **options)

    @classmethod
    def is_compatible(cls, model, device="CPU", **options):
        return True  # what does not load fails


def _comparable(value):
    """Types of 8 bits and less as float32, which holds them exactly: NumPy 1 compares no others than its own."""
    if isinstance(value, np.ndarray) and value.dtype.name.startswith(("float8", "float4")):
        return value.astype(np.float32)
    return value


class _Runner(onnx.backend.test.BackendTest):
    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        for reference, output in zip(ref_outputs, outputs):
            assert getattr(reference, "dtype", None) == getattr(output, "dtype", None)
        reference, output = ([_comparable(value) for value in values] for values in (ref_outputs, outputs))
        super().assert_similar_outputs(reference, output, rtol, atol, model_dir=model_dir)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _runner = _Runner(_Backend, __name__, test_kwargs=TOLERANCES)
for _name in EXCLUDED:
    _runner.exclude(f"^{_name}_cpu$")
_cases = _runner.test_cases
globals().update(_cases)
for _kind in _cases.values():
    for _name in [name for name in vars(_kind) if name.endswith("_cuda")]:
        delattr(_kind, _name)


def test_most_cases_are_there():
    names = {name for kind in _cases.values() for name in dir(kind) if name.startswith("test_")}
    assert len(names) > 1800 and len(EXCLUDED) <= 11


def test_outputs_come_in_order_and_by_name():
    x = np.ones((1, 3), np.float32)
    for model in (onnx.load_from_string(linear()), linear()):
        outputs = tenon.backend.prepare(model).run({"x": x})
        for one, other, name in zip(outputs, linear_reference(x), ("y", "z")):
            np.testing.assert_array_equal(one, other)
            assert outputs[name] is one
    np.testing.assert_array_equal(tenon.backend.run_model(onnx.load_from_string(linear()), x)[0], linear_reference(x)[0])
    assert tenon.backend.prepare(add()).run([x, x])[0].tolist() == [[2, 2, 2]]
    with pytest.raises(ValueError, match="the model has 2 inputs, 3 were given"):
        tenon.backend.prepare(add()).run([x, x, x])


def test_one_node_runs():
    x = np.array([-1, 2], np.float32)
    node = helper.make_node("Relu", ["x"], ["y"])
    assert tenon.backend.run_node(node, [x])[0].tolist() == [0, 2]
    assert tenon.backend.run_node(node, {"x": x}, opset_version=13)["y"].tolist() == [0, 2]


def test_devices_and_models_that_cannot_run():
    assert tenon.backend.supports_device("CPU") and not tenon.backend.supports_device("CUDA:0")
    with pytest.raises(ValueError, match="no device 'CUDA'"):
        tenon.backend.prepare(linear(), "CUDA")
    nonsense = helper.make_model(helper.make_graph([helper.make_node("Nonsense", ["x"], ["y"])], "g", [], []))
    assert not tenon.backend.is_compatible(nonsense) and tenon.backend.is_compatible(onnx.load_from_string(linear()))
