"""Libraries of custom operators on the command line, with those of examples/custom_operator."""
import json
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import ROOT
from onnx import helper, numpy_helper

EXAMPLE = ROOT / "examples" / "custom_operator"
BROKEN, MISSING = 3, 4


@pytest.fixture
def library(tenon):
    return tenon.parent / "libexample_operators.so"


@pytest.fixture
def call(tenon, library):
    def call(*arguments, code=0, library=library):
        custom = ["--custom-operators", library] if library else []
        run = subprocess.run([tenon, *map(str, [*arguments, *custom])], capture_output=True, text=True)
        assert run.returncode == code, run.stdout + run.stderr
        return run
    return call


def expected(x):
    return np.clip((x - np.float32([1, 2, 3])) / np.float32([2, 4, 8]), -2, 2)


@pytest.fixture
def x():
    return (10 * np.random.default_rng(0).standard_normal((50, 3))).astype(np.float32)


def test_run(call, tmp_path, x):
    np.save(tmp_path / "x.npy", x)
    run = call("run", EXAMPLE / "model.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path, "--placement")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected(x), rtol=1e-6)
    line = next(line for line in run.stdout.splitlines() if "'clamp'" in line)
    assert line.split()[:2] == ["cpu", "com.example.Clamp"]


def test_the_option_takes_one_library_and_may_be_repeated(call, tenon, library, tmp_path):
    other = tenon.parent / "custom_operators" / "libcustom_operators.so"
    call("run", "--custom-operators", other, "--custom-operators", library, EXAMPLE / "model.onnx", library=None)
    twice = call("run", "--custom-operators", library, EXAMPLE / "model.onnx", code=2).stderr
    assert "com.example.Clamp of version 1 is defined twice" in twice


def test_inspect(call):
    summary = json.loads(call("inspect", EXAMPLE / "model.onnx", "--json", "--placement").stdout)
    assert all(use["known"] for use in summary["operators"]) and len(summary["placement"]["nodes"]) == 2
    assert summary["outputs"] == [{"name": "y", "type": "tensor(float)", "shape": ["rows", 3]}]
    text = call("inspect", EXAMPLE / "model.onnx", "--text", "--inferred").stdout
    assert "standard = com.example.Standardize(x, mean, deviation)" in text


def test_optimize_writes_and_verifies(call, tmp_path, x):
    """What depends on constants only is computed; the rest stays what it was."""
    model = onnx.load(EXAMPLE / "model.onnx")
    model.graph.node.append(helper.make_node("Clamp", ["mean"], ["small"], domain="com.example", limit=2.5))
    model.graph.node.append(helper.make_node("Add", ["y", "small"], ["sum"]))
    model.graph.output[0].name = "sum"
    onnx.save(model, tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", x)
    call("optimize", tmp_path / "model.onnx", "-o", tmp_path / "less.onnx", "--verify", "--input", f"x={tmp_path / 'x.npy'}")
    less = onnx.load(tmp_path / "less.onnx")
    assert [node.op_type for node in less.graph.node] == ["Standardize", "Clamp", "Add"]
    assert {opset.domain: opset.version for opset in less.opset_import} == {"": 18, "com.example": 1}
    call("run", tmp_path / "less.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "sum.npy"), expected(x) + np.float32([1, 2, 2.5]), rtol=1e-6)


def test_test_cases(call, tmp_path, x):
    data = tmp_path / "case" / "test_data_set_0"
    data.mkdir(parents=True)
    shutil.copy(EXAMPLE / "model.onnx", tmp_path / "case")
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(expected(x), "y").SerializeToString())
    for option in [], ["--lift-steps"]:
        assert call("test", tmp_path / "case", *option).stdout == "1 passed, 0 failed, 0 skipped\n"


def test_errors(call, tmp_path):
    model = EXAMPLE / "model.onnx"
    assert "--custom-operators" in call("run", model, code=BROKEN, library=None).stderr
    assert "missing-file" in call("run", model, code=MISSING, library=tmp_path / "nothing.so").stderr
    (tmp_path / "text.so").write_text("no library")
    for command in "run", "inspect":
        assert "invalid-library" in call(command, model, code=MISSING, library=tmp_path / "text.so").stderr
    broken = onnx.load(model)
    broken.graph.node[1].attribute[0].CopyFrom(helper.make_attribute("limit", "much"))
    onnx.save(broken, tmp_path / "broken.onnx")
    error = json.loads(call("run", tmp_path / "broken.onnx", "--json", code=BROKEN).stdout)["error"]
    assert error["code"] == "invalid-attribute" and error["node"] == "com.example.Clamp 'clamp' (node 1)"
    broken = onnx.load(model)
    broken.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.zeros(3, np.float32), "deviation"))
    onnx.save(broken, tmp_path / "broken.onnx")
    assert "a deviation must be above 0" in call("run", tmp_path / "broken.onnx", code=BROKEN).stderr


def test_the_example_is_up_to_date(tmp_path):
    """Its script writes its model, and a project of its own finds what it needs."""
    shutil.copy(EXAMPLE / "make_model.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "make_model.py"], check=True)
    assert onnx.load(tmp_path / "model.onnx") == onnx.load(EXAMPLE / "model.onnx")
    run = subprocess.run(["cmake", "-G", "Ninja", "-S", EXAMPLE, "-B", tmp_path / "build"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    targets = subprocess.run(["ninja", "-C", tmp_path / "build", "-t", "targets", "all"], capture_output=True, text=True).stdout
    assert "libexample_operators.so" in targets and "run_custom_operators:" in targets
