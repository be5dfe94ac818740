"""`tenon compile`, and what the other commands do with its files."""
import json
import shutil

import numpy as np
import onnx
import pytest
from conftest import BAD_USAGE, BROKEN, MISSING, ROOT
from onnx import TensorProto, helper, numpy_helper


def save_model(path, factor=1.0):
    """y = relu(x @ w)"""
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["p"], "product"),
                               helper.make_node("Relu", ["p"], ["y"], "rectify")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 32])],
                              [numpy_helper.from_array(np.full((64, 32), factor, np.float32), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def model(tmp_path):
    return save_model(tmp_path / "m.onnx")


@pytest.fixture
def compiled(call, model):
    path = model.with_suffix(".tenon")
    call("compile", model, "-o", path)
    return path


def test_says_what_it_stored(call, model):
    output = model.with_suffix(".tenon")
    run = call("compile", model, "-o", output)
    lines = {line.split()[0]: line for line in run.stdout.splitlines() if not line.startswith(" ")}
    assert lines["wrote"].endswith(str(output)) and lines["graph"].endswith(" 1 node")
    assert lines["packed"].endswith(" kB  1 that kernels made of constants")
    assert "before" in lines["load"] and "now" in lines["load"]
    printed = json.loads(call("compile", model, "-o", output, "--json", "--level", "basic").stdout)
    assert printed["bytes"] == output.stat().st_size and printed["packed_bytes"] >= 64 * 32 * 4
    assert printed["options"] == {"level": "basic"} and printed["model"] == str(model)
    assert set(printed["load_seconds"]) == {"model", "compiled"}


def test_every_command_that_runs_models_takes_it(call, compiled, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 64), np.float32))
    run = call("run", compiled, "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "out")
    assert run.stderr == ""
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), np.full((2, 32), 64, np.float32))
    assert "MatMul 'product' (node 0)" in call("inspect", compiled, "--placement", "--dim", "rows=2").stdout
    assert "x: tensor(float) [rows, 64]" in call("inspect", compiled).stdout
    assert "initializer w: tensor(float) [64, 32]" in call("inspect", compiled, "--text").stdout
    call("bench", compiled, "--runs", 2, "--dim", "rows=2")
    call("profile", compiled, "-o", tmp_path / "trace.json", "--runs", 1, "--dim", "rows=2")


def test_commands_that_need_an_onnx_model_say_so(call, compiled, tmp_path):
    error = call("optimize", compiled, "-o", tmp_path / "o.onnx", code=BROKEN).stderr
    assert "not-onnx" in error and "it looks like a model compiled by 'tenon compile'" in error
    error = call("compile", compiled, "-o", tmp_path / "again.tenon", code=BAD_USAGE).stderr
    assert "is compiled already" in error and "give the ONNX model" in error


def test_stale_and_damaged_files(call, model, compiled, tmp_path):
    call("compile", "--check", compiled)
    save_model(model, 2.0)
    assert f"stale-file: '{model}' has changed since it was compiled" in \
        call("compile", "--check", compiled, code=BROKEN).stderr
    run = call("run", compiled, "--dim", "rows=1")
    assert f"'{compiled}' cannot be used: '{model}' has changed since it was compiled; loaded '{model}' instead" in \
        run.stderr
    other = shutil.copy(compiled, tmp_path / "other.tenon")
    model.unlink()
    assert "cannot be used" not in call("run", other, "--dim", "rows=1").stderr  # there is nothing to be older than
    content = bytearray(compiled.read_bytes())
    compiled.write_bytes(content[:-10])
    assert "damaged-file" in call("run", compiled, code=BROKEN).stderr
    content[5000] ^= 1
    compiled.write_bytes(content)
    assert "damaged-file: bytes " in call("compile", "--check", compiled, code=BROKEN).stderr


def test_other_options_take_the_model(call, model, compiled):
    run = call("run", compiled, "--level", "none", "--dim", "rows=1")
    assert "it was compiled with level 'all', the session asks for 'none'; loaded" in run.stderr
    model.unlink()
    assert "stale-file" in call("run", compiled, "--level", "none", code=BROKEN).stderr


def test_usage(call, model, tmp_path):
    assert "give -o model.tenon, or --check" in call("compile", model, code=BAD_USAGE).stderr
    assert "is the model itself" in call("compile", model, "-o", model, code=BAD_USAGE).stderr
    assert "missing-file" in call("compile", tmp_path / "none.onnx", "-o", tmp_path / "n.tenon", code=MISSING).stderr
    assert "a compiled file cannot hold custom operators" in call(
        "compile", ROOT / "examples/custom_operator/model.onnx", "-o", tmp_path / "n.tenon", "--custom-operators",
        ROOT / "build/libexample_operators.so", code=BROKEN).stderr
    assert not (tmp_path / "n.tenon").exists()
