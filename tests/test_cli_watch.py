"""tenon run --watch-nan and --dump: looking into a run."""
import json

import numpy as np
import onnx
import pytest
from conftest import BAD_USAGE, CHECK_FAILED, FINE, MISSING
from onnx import TensorProto, helper, numpy_helper


def save_model(path, nodes, inputs, outputs, weights=(), type=TensorProto.FLOAT):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, type, shape) for name, shape in inputs.items()],
                              [helper.make_tensor_value_info(name, type, None) for name in outputs],
                              [numpy_helper.from_array(array, name) for name, array in dict(weights).items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def norm(tmp_path):
    """y = softmax(x / sqrt(mean(x * x)))"""
    nodes = [helper.make_node("Mul", ["x", "x"], ["sq"], "square"),
             helper.make_node("ReduceMean", ["sq"], ["mean"], "average", axes=[1], keepdims=1),
             helper.make_node("Sqrt", ["mean"], ["root"], "root"), helper.make_node("Div", ["x", "root"], ["n"], "divide"),
             helper.make_node("Softmax", ["n"], ["y"], "softmax", axis=1)]
    return save_model(tmp_path / "norm.onnx", nodes, {"x": ["rows", 4]}, ["y"])


@pytest.fixture
def rows(tmp_path):
    def rows(array, name="x"):
        path = tmp_path / f"{name}.npy"
        np.save(path, array)
        return f"{name}={path}"
    return rows


def test_watch_nan_names_the_node(call, norm, rows):
    x = np.ones((2, 4), np.float32)
    x[1] = 0
    run = call("run", norm, "--input", rows(x), "--watch-nan", "--level", "none", code=CHECK_FAILED)
    lines = run.stdout.splitlines()
    assert lines[0] == "Div 'divide' (node 3) makes 4 NaN of 8 numbers"
    assert lines[1] == "  input x: float [2, 4], an input of the model"
    assert lines[2] == "    min 0, max 1, mean 0.5, std 0.5, 4 zeros"
    assert lines[4] == "  input root: float [2, 1], made by Sqrt 'root' (node 2)"
    assert "y =" not in run.stdout
    seen = json.loads(call("run", norm, "--input", rows(x), "--watch-nan", "--level", "none", "--json", code=CHECK_FAILED).stdout)
    assert seen["nan"]["node"] == "Div 'divide' (node 3)" and seen["outputs"] == [] and seen["run_ms"] is None
    assert [value["name"] for value in seen["nan"]["inputs"]] == ["x", "root"]
    assert seen["nan"]["inputs"][1]["statistics"]["zeros"] == 1
    assert seen["nan"]["outputs"][0]["statistics"]["nan"] == 4


@pytest.mark.parametrize("level", ["exact", "all"])
def test_watch_nan_finds_it_at_every_level(call, norm, rows, level):
    call("run", norm, "--input", rows(np.zeros((1, 4), np.float32)), "--watch-nan", "--level", level, code=CHECK_FAILED)
    run = call("run", norm, "--input", rows(np.ones((1, 4), np.float32)), "--watch-nan", "--level", level)
    assert run.stdout.startswith("no node made NaN or infinite numbers\n") and "y = float [1, 4]" in run.stdout


def test_watch_nan_in_half_precision(call, tmp_path, rows):
    nodes = [helper.make_node("Mul", ["x", "x"], ["s"], "square"), helper.make_node("Neg", ["s"], ["y"], "negate")]
    path = save_model(tmp_path / "half.onnx", nodes, {"x": [2]}, ["y"], type=TensorProto.FLOAT16)
    run = call("run", path, "--input", rows(np.array([1, 300], np.float16)), "--watch-nan", "--level", "none", code=CHECK_FAILED)
    assert run.stdout.startswith("Mul 'square' (node 0) makes 1 infinite of 2 numbers\n")
    call("run", path, "--input", rows(np.array([1, 300], np.float16)), "--watch-nan", "--allow-infinite", code=FINE)


def test_watch_nan_shows_attributes_and_constants(call, tmp_path, rows):
    nodes = [helper.make_node("Gemm", ["x", "w"], ["h"], "dense", alpha=3e38, transB=1), helper.make_node("Neg", ["h"], ["y"], "neg")]
    path = save_model(tmp_path / "gemm.onnx", nodes, {"x": [1, 2]}, ["y"], {"w": np.ones((3, 2), np.float32)})
    text = call("run", path, "--input", rows(np.ones((1, 2), np.float32)), "--watch-nan", "--level", "none", code=CHECK_FAILED).stdout
    assert "attributes " in text and "transB=1" in text and "input w: float [3, 2], a constant\n    min 1, max 1" in text


def test_watch_nan_blames_the_source(call, norm, rows):
    run = call("run", norm, "--input", rows(np.array([[1, 2, np.nan, 3]], np.float32)), "--watch-nan")
    assert "no node made NaN\n" in run.stdout
    assert "not finite to begin with: x: float [1, 4], an input of the model" in run.stdout


@pytest.mark.parametrize("level", ["none", "all"])
def test_watch_nan_blames_the_weights(call, tmp_path, rows, level):
    """Also where only a kernel still has them, rearranged."""
    weights = np.ones((4, 3), np.float32)
    weights[1, 2] = np.nan
    path = save_model(tmp_path / "dense.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"], "dense")], {"x": ["rows", 4]}, ["y"],
                      {"w": weights})
    run = call("run", path, "--input", rows(np.ones((2, 4), np.float32)), "--watch-nan", "--level", level)
    assert "no node made NaN\n" in run.stdout and "not finite to begin with: w: float [4, 3], a constant\n" in run.stdout


def test_dump(call, norm, rows, tmp_path):
    x = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    run = call("run", norm, "--input", rows(x), "--dump", tmp_path / "d", "--level", "none")
    assert f"dumped 6 values to {tmp_path / 'd'}, listed in index.json" in run.stdout and "y = float [2, 4]" in run.stdout
    index = json.loads((tmp_path / "d" / "index.json").read_text())
    values = {value["name"]: value for value in index["values"]}
    assert sorted(values) == ["mean", "n", "root", "sq", "x", "y"] and index["not_there"] == []
    loaded = {name: np.load(tmp_path / "d" / value["file"]) for name, value in values.items()}
    np.testing.assert_array_equal(loaded["x"], x)
    np.testing.assert_allclose(loaded["sq"], x * x)
    np.testing.assert_allclose(loaded["n"], x / np.sqrt((x * x).mean(1, keepdims=True)), rtol=1e-6)
    assert values["root"]["node"] == "Sqrt 'root' (node 2)" and values["x"]["node"] == ""
    assert values["sq"]["shape"] == [2, 4] and values["sq"]["type"] == "float"
    assert values["sq"]["statistics"]["max"] == 64 and values["sq"]["statistics"]["mean"] == pytest.approx((x * x).mean())


def test_dump_with_a_filter(call, norm, rows, tmp_path):
    x = rows(np.ones((1, 4), np.float32))
    call("run", norm, "--input", x, "--dump", tmp_path / "d", "--level", "none", "--filter", "r*", "--filter", "y")
    assert sorted(p.name for p in (tmp_path / "d").iterdir()) == ["index.json", "root.npy", "y.npy"]


def test_dump_says_what_fusion_took_away(call, rows, tmp_path):
    """Nothing is silent: each value is saved under its own name, with what it is at level none, or listed as not there."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"], "product"), helper.make_node("Add", ["product", "b"], ["sum"], "bias"),
             helper.make_node("Identity", ["sum"], ["same"], "same"), helper.make_node("Relu", ["same"], ["r"], "relu"),
             helper.make_node("Sigmoid", ["r"], ["s"], "sigmoid"), helper.make_node("MatMul", ["s", "v"], ["y"], "second")]
    weights = {name: np.random.default_rng(0).normal(size=size).astype(np.float32)
               for name, size in {"w": (4, 3), "b": 3, "v": (3, 2)}.items()}
    path = save_model(tmp_path / "dense.onnx", nodes, {"x": ["rows", 4]}, ["y"], weights)
    x = rows(np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4))
    found, missing = {}, {}
    for level in ("none", "exact", "basic", "all"):
        folder = tmp_path / level
        missing[level] = json.loads(call("run", path, "--input", x, "--dump", folder, "--level", level, "--json").stdout)["dump"]["not_there"]
        index = json.loads((folder / "index.json").read_text())
        found[level] = {value["name"]: np.load(folder / value["file"]) for value in index["values"]}
        assert sorted([*found[level], *missing[level]]) == ["product", "r", "s", "same", "sum", "x", "y"]
        for name, array in found[level].items():
            np.testing.assert_allclose(array, found["none"][name], rtol=1e-4, atol=1e-6)
    assert missing["none"] == [] and "product" in missing["all"]
    text = call("run", path, "--input", x, "--dump", tmp_path / "again").stdout
    assert "--level none, --keep NAME" in text and "  product\n" in text
    call("run", path, "--input", x, "--dump", tmp_path / "kept", "--keep", "product")
    index = json.loads((tmp_path / "kept" / "index.json").read_text())
    assert "product" in {value["name"] for value in index["values"]}


def test_dump_of_a_loop(call, tmp_path, rows):
    body = helper.make_graph([helper.make_node("Add", ["state", "state"], ["next"], "double"),
                              helper.make_node("Identity", ["go"], ["still"], "go_on")], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("state", TensorProto.FLOAT, [1])],
                             [helper.make_tensor_value_info("still", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("next", TensorProto.FLOAT, [1])])
    path = save_model(tmp_path / "loop.onnx", [helper.make_node("Loop", ["times", "", "x"], ["y"], "loop", body=body)], {"x": [1]},
                      ["y"], {"times": np.array(3, np.int64)})
    call("run", path, "--input", rows(np.ones(1, np.float32)), "--dump", tmp_path / "d", "--level", "none", "--filter", "next")
    index = json.loads((tmp_path / "d" / "index.json").read_text())
    assert [np.load(tmp_path / "d" / value["file"])[0] for value in index["values"]] == [2, 4, 8]


def test_both_at_once(call, norm, rows, tmp_path):
    call("run", norm, "--input", rows(np.zeros((1, 4), np.float32)), "--watch-nan", "--dump", tmp_path / "d", "--level", "none",
         code=CHECK_FAILED)
    index = json.loads((tmp_path / "d" / "index.json").read_text())
    assert np.isnan(np.load(tmp_path / "d" / "n.npy")).all() and "y" in index["not_there"]


def test_a_compiled_model(call, norm, rows, tmp_path):
    call("compile", norm, "-o", tmp_path / "norm.tenon")
    x = rows(np.ones((1, 4), np.float32))
    call("run", tmp_path / "norm.tenon", "--input", x, "--watch-nan", "--dump", tmp_path / "d")
    assert {"x", "y"} <= {value["name"] for value in json.loads((tmp_path / "d" / "index.json").read_text())["values"]}


def test_wrong_usage(call, norm, rows, tmp_path):
    x = rows(np.ones((1, 4), np.float32))
    assert "one run" in call("run", norm, "--input", x, "--watch-nan", "--repeat", 2, code=BAD_USAGE).stderr
    (tmp_path / "file").write_text("")
    assert "write-failed" in call("run", norm, "--input", x, "--dump", tmp_path / "file", code=MISSING).stderr
