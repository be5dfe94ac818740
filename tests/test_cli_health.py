"""tenon health: whether a model is fit to serve, for probes."""
import json

import numpy as np
import onnx
import pytest
from conftest import BAD_USAGE, BROKEN, CHECK_FAILED, FINE, MISSING
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture
def model(tmp_path):
    """y = log(x @ w)"""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], "product"), helper.make_node("Log", ["h"], ["y"], "log")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 3])],
                              [numpy_helper.from_array(np.ones((4, 3), np.float32), "w")])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def save(tmp_path):
    """Writes an array to a file and returns "NAME=FILE"."""
    def save(name, array, file=None):
        path = tmp_path / f"{file or name}.npy"
        np.save(path, np.asarray(array, np.float32))
        return f"{name}={path}"
    return save


def checks(report):
    return {check["name"]: check["passed"] for check in report["checks"]}


def test_healthy(call, model, save):
    arguments = ["health", model, "--input", save("x", np.ones((2, 4))), "--expect", save("y", np.full((2, 3), np.log(4))),
                 "--require-provider", "cpu", "--max-latency-ms", 60000, "--max-load-ms", 60000]
    text = call(*arguments).stdout
    assert text.startswith("healthy: ") and text.count("\n") == 1
    assert "cpu runs 100 % of the FLOPs (2 of 2 nodes)" in text and "1 output as expected" in text
    report = json.loads(call(*arguments, "--json").stdout)
    assert report["healthy"] and report["provider_share"] == 1 and "error" not in report
    assert checks(report) == dict.fromkeys(["load", "run", "finite", "expected", "provider", "latency"], True)
    assert report["latency_ms"]["runs"] == 5 and report["latency_ms"]["min"] <= report["latency_ms"]["median"]
    assert all(check["reason"] for check in report["checks"])


def test_outputs_that_are_not_finite(call, model, save):
    bad = save("x", np.zeros((1, 4)))
    text = call("health", model, "--input", bad, code=CHECK_FAILED).stdout
    assert text == "unhealthy: finite: output 'y' has 0 NaN and 3 infinite of 3 elements\n"
    assert call("health", model, "--input", bad, "--allow-infinite", code=FINE).stdout.startswith("healthy")
    # Random inputs are negative in places; their logarithm is none.
    report = json.loads(call("health", model, "--dim", "rows=8", "--samples", 2, "--json", code=CHECK_FAILED).stdout)
    assert checks(report) == {"load": True, "run": True, "finite": False, "latency": True}
    assert "2 random samples ran" in report["checks"][1]["reason"]


def test_outputs_that_are_not_as_expected(call, model, save):
    arguments = ["--input", save("x", np.ones((1, 4))), "--expect", save("y", np.full((1, 3), np.log(4) + 0.01))]
    text = call("health", model, *arguments, code=CHECK_FAILED).stdout
    assert text.startswith("unhealthy: expected: output 'y': 3 of 3 elements differ; max abs error 0.01")
    call("health", model, *arguments, "--rtol", 0.1)
    call("health", model, *arguments, "--rtol", 0, "--atol", 0.011)


def test_latency(call, model, save):
    arguments = ["--input", save("x", np.ones((1, 4)))]
    assert "are allowed" in call("health", model, *arguments, "--max-latency-ms", 1e-9, code=CHECK_FAILED).stdout
    assert "load: loaded in" in call("health", model, *arguments, "--max-load-ms", 1e-9, code=CHECK_FAILED).stdout


def test_what_cannot_be_loaded(call, tmp_path, model):
    assert call("health", tmp_path / "none.onnx", code=MISSING).stdout.startswith("unhealthy: load: missing-file")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    report = json.loads(call("health", broken, "--json", code=BROKEN).stdout)
    assert not report["healthy"] and checks(report) == {"load": False} and report["error"]["code"]
    report = json.loads(call("health", model, "--require-provider", "warp", "--json", code=MISSING).stdout)
    assert checks(report) == {"provider": False} and report["error"]["code"] == "provider-unavailable"


def test_a_run_that_fails(call, model, save):
    text = call("health", model, "--input", save("x", np.ones((1, 5))), code=CHECK_FAILED).stdout
    assert text.startswith("unhealthy: run: shape-mismatch") and text.count("\n") == 1


def test_wrong_usage(call, model, save):
    expected = save("y", np.ones((1, 3)))
    assert "given inputs only" in call("health", model, "--expect", expected, code=BAD_USAGE).stderr
    call("health", model, "--min-share", 2, code=BAD_USAGE)
    call("health", model, "--expect", "y", code=BAD_USAGE)
    x = save("x", np.ones((1, 4)))
    assert "no output 'z'" in call("health", model, "--input", x, "--expect", expected.replace("y=", "z="), code=BROKEN).stderr
    call("health", model, "--input", x, "--expect", "y=none.npy", code=MISSING)
