"""`tenon dynamic`: models whose batch is baked in take any number of rows afterwards, and onnxruntime agrees."""
import json
import os

import model_cases
import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import BAD_USAGE, BROKEN, CHECK_FAILED
from onnx import TensorProto, helper, numpy_helper
from test_models import SMALL

ALL = os.environ.get("TENON_ALL") == "1"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def ints(name, *numbers):
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def floats(name, *shape, seed=0):
    return numpy_helper.from_array(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), name)


def node(op, inputs, output="y", **attributes):
    return helper.make_node(op, inputs, [output], **attributes)


def session(model):
    return onnxruntime.InferenceSession(model if isinstance(model, bytes) else str(model), providers=["CPUExecutionProvider"])


def assert_rows(original, freed, inputs, rows=4, old=1):
    """Each row of a larger batch, alone through the original, gives the same. `inputs`: {name: (axis, array of `rows` rows)}."""
    before, after = session(original), session(freed)
    actual = after.run(None, {name: array for name, (_, array) in inputs.items()})
    for row in range(rows):
        one = {name: np.repeat(np.take(array, [row], axis), old, axis) for name, (axis, array) in inputs.items()}
        for info, got, expected in zip(after.get_outputs(), actual, before.run(None, one)):
            axis = [i for i, dim in enumerate(info.shape) if isinstance(dim, str) and "batch" in dim]
            assert axis, f"{info.name} has no axis for rows: {info.shape}"
            length = expected.shape[axis[0]] // old
            got = np.take(got, range(row * length, (row + 1) * length), axis[0])
            expected = np.take(expected, range(length), axis[0])
            np.testing.assert_allclose(got, expected, atol=1e-4 * max(1e-6, np.abs(expected).max()), rtol=0)


LSTM = dict(hidden_size=4)
LSTM_WEIGHTS = [floats("w", 1, 16, 3), floats("r", 1, 16, 4, seed=1)]
loop_body = helper.make_graph(
    [node("Identity", ["c"], "c2"), node("Add", ["s", "x"], "s2")], "body",
    [value("n", [], INT64), value("c", [], TensorProto.BOOL), value("s", None)],
    [value("c2", [], TensorProto.BOOL), value("s2", None)])

rows_body = helper.make_graph(
    [node("Gather", ["x", "n"], "row", axis=0), node("Softmax", ["row"], "out", axis=0), node("Identity", ["c"], "c2")], "rows",
    [value("n", [], INT64), value("c", [], TensorProto.BOOL)], [value("c2", [], TensorProto.BOOL), value("out", [4])])

# Name: nodes, initializers, shape of x, shape of y; the batch is 1 in all of them.
BAKED = {
    "reshape to rows": ([node("Reshape", ["x", "t"])], [ints("t", 1, 12)], [1, 3, 4], [1, 12]),
    "reshape and back": ([node("Reshape", ["x", "t"], "f"), node("Relu", ["f"], "g"), node("Reshape", ["g", "u"])],
                         [ints("t", 3, 4), ints("u", 1, 3, 4)], [1, 3, 4], [1, 3, 4]),
    "reshape with -1 elsewhere": ([node("Reshape", ["x", "t"])], [ints("t", 1, -1, 2)], [1, 3, 4], [1, 6, 2]),
    "heads": ([node("Reshape", ["x", "t"], "h"), node("Transpose", ["h"], "p", perm=[1, 0, 2]), node("Reshape", ["p", "u"])],
              [ints("t", 5, 2, 3), ints("u", 1, 2, 5, 3)], [1, 5, 6], [1, 2, 5, 3]),
    "transpose as reshape": ([node("Reshape", ["x", "t"], "s"), node("CumSum", ["s", "a"], "c"), node("Reshape", ["c", "u"])],
                             [ints("t", 5, 1, 3), ints("u", 1, 5, 3), numpy_helper.from_array(np.array(0), "a")], [1, 5, 3], [1, 5, 3]),
    "class token": ([node("Concat", ["token", "x"], axis=1)], [floats("token", 1, 1, 4)], [1, 3, 4], [1, 4, 4]),
    "expand": ([node("Expand", ["token", "t"], "e"), node("Concat", ["e", "x"], axis=1)],
               [floats("token", 1, 1, 4), ints("t", 1, 2, 4)], [1, 3, 4], [1, 5, 4]),
    "tile": ([node("Tile", ["token", "t"], "e"), node("Concat", ["x", "e"], axis=2)],
             [floats("token", 1, 1, 4), ints("t", 1, 3, 1)], [1, 3, 4], [1, 3, 8]),
    "constant of shape": ([node("ConstantOfShape", ["t"], "z"), node("Concat", ["z", "x"], axis=1)],
                          [ints("t", 1, 2, 4)], [1, 3, 4], [1, 5, 4]),
    "slice": ([node("Slice", ["x", "s", "e", "a"])], [ints("s", 0, 1), ints("e", 1, 3), ints("a", 0, 1)], [1, 3, 4], [1, 2, 4]),
    "resize": ([node("Resize", ["x", "", "", "t"], mode="nearest")], [ints("t", 1, 2, 6, 6)], [1, 2, 3, 3], [1, 2, 6, 6]),
    "lstm state": ([node("Transpose", ["x"], "s", perm=[1, 0, 2]),
                    helper.make_node("LSTM", ["s", "w", "r", "", "", "z", "z"], ["", "y"], **LSTM)],
                   [*LSTM_WEIGHTS, numpy_helper.from_array(np.zeros((1, 1, 4), np.float32), "z")], [1, 5, 3], [1, 1, 4]),
    "gather elements": ([node("GatherElements", ["x", "i"], axis=1)], [numpy_helper.from_array(np.array([[2, 0]]), "i")], [1, 3], [1, 2]),
    "squeeze": ([node("Squeeze", ["x", "t"], "s"), node("MatMul", ["s", "w"], "p"), node("Unsqueeze", ["p", "t"])],
                [ints("t", 0), floats("w", 4, 2)], [1, 3, 4], [1, 3, 2]),
    "loop over rows": ([helper.make_node("Loop", ["m", ""], ["y"], body=rows_body)], [numpy_helper.from_array(np.array(1), "m")], [1, 4], [1, 4]),
    "loop state": ([helper.make_node("Loop", ["m", "", "z"], ["y"], body=loop_body)],
                   [numpy_helper.from_array(np.array(3), "m"), numpy_helper.from_array(np.zeros((1, 4), np.float32), "z")], [1, 4], [1, 4]),
}


def save(path, nodes, initializers, x, y, opset=17):
    graph = helper.make_graph(nodes, "baked", [value("x", x)], [value("y", y)], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("name", BAKED)
def test_baked_constants(call, tmp_path, name):
    nodes, initializers, x, y = BAKED[name]
    path = save(tmp_path / "m.onnx", nodes, initializers, x, y)
    report = json.loads(call("dynamic", path, "--dim", "0=batch", "-o", tmp_path / "d.onnx", "--json").stdout)
    assert report["proven"] == [1, 2, 3]
    onnx.checker.check_model(str(tmp_path / "d.onnx"), full_check=True)
    freed = onnx.load(tmp_path / "d.onnx").graph
    assert freed.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    rows = np.random.default_rng(1).standard_normal([4, *x[1:]]).astype(np.float32)
    assert_rows(path, tmp_path / "d.onnx", {"x": (0, rows)})


def test_a_batch_above_one(call, tmp_path):
    """Constants with a row for each of the old batch's, which are equal."""
    token = numpy_helper.from_array(np.repeat(np.arange(4, dtype=np.float32)[None, None], 3, 0), "token")
    bias = numpy_helper.from_array(np.repeat(np.arange(5, dtype=np.float32)[None, :, None], 3, 0), "bias")
    nodes = [node("Reshape", ["x", "t"], "r"), node("Concat", ["token", "r"], "c", axis=1), node("Add", ["c", "bias"])]
    path = save(tmp_path / "m.onnx", nodes, [token, bias, ints("t", 3, 4, 4)], [3, 16], [3, 5, 4])
    call("dynamic", path, "--dim", "0=batch", "-o", tmp_path / "d.onnx")
    rows = np.random.default_rng(1).standard_normal([4, 16]).astype(np.float32)
    assert_rows(path, tmp_path / "d.onnx", {"x": (0, rows)}, old=3)


def test_rows_on_another_axis(call, tmp_path):
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "", "", "h", "z"], ["", "y"], **LSTM)]
    graph = helper.make_graph(nodes, "states", [value("x", ["time", 1, 3]), value("h", [1, 1, 4])], [value("y", [1, 1, 4])],
                              [*LSTM_WEIGHTS, numpy_helper.from_array(np.zeros((1, 1, 4), np.float32), "z")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    call("dynamic", tmp_path / "m.onnx", "--input", "x:1=batch", "--input", "h:-2=batch", "-o", tmp_path / "d.onnx")
    rng = np.random.default_rng(1)
    inputs = {"x": (1, rng.standard_normal((5, 4, 3)).astype(np.float32)), "h": (1, rng.standard_normal((1, 4, 4)).astype(np.float32))}
    assert_rows(tmp_path / "m.onnx", tmp_path / "d.onnx", inputs)


BLOCKED = {
    "mean over the batch": ([node("ReduceMean", ["x"], "m", axes=[0]), node("Add", ["x", "m"])], [], [1, 3], [1, 3], "differs from the original"),
    "different rows": ([node("Add", ["x", "c"])], [floats("c", 2, 3)], [2, 3], [2, 3], "Add (node 0) 'c':\n    it holds 2 different rows"),
    "attribute": ([helper.make_node("Slice", ["x"], ["y"], starts=[0, 1], ends=[1, 3])], [], [1, 4], [1, 2], "tenon convert --opset 13"),
    "no rows": ([node("ReduceSum", ["x"], keepdims=0)], [], [1, 3], [], "ReduceSum (node 0):\n    what it makes has no rows, though it reads them"),
}


@pytest.mark.parametrize("name", BLOCKED)
def test_blockers_are_named_and_nothing_is_written(call, tmp_path, name):
    nodes, initializers, x, y, text = BLOCKED[name]
    path = save(tmp_path / "m.onnx", nodes, initializers, x, y, opset=9 if name == "attribute" else 17)
    assert text in call("dynamic", path, "--dim", "0=batch", "-o", tmp_path / "d.onnx", code=CHECK_FAILED).stdout
    report = json.loads(call("dynamic", path, "--dim", "0=batch", "-o", tmp_path / "d.onnx", "--json", code=CHECK_FAILED).stdout)
    assert report["blockers"] and not (tmp_path / "d.onnx").exists()


@pytest.mark.parametrize("arguments, code, text", [
    (["--input", "z:0=batch"], BROKEN, "the model has no input 'z'"),
    (["--input", "x:7=batch"], BAD_USAGE, "it has no axis 7"),
    (["--input", "x=batch"], BAD_USAGE, "NAME:AXIS=SIZE"),
    (["--dim", "0=batch", "--dim", "1=seq"], BAD_USAGE, "one size at a time"),
    (["--dim", "first=batch"], BAD_USAGE, "is not an axis"),
    ([], BAD_USAGE, "give --dim 0=batch"),
])
def test_errors(call, tmp_path, arguments, code, text):
    path = save(tmp_path / "m.onnx", *BAKED["slice"])
    assert text in call("dynamic", path, *arguments, "-o", tmp_path / "d.onnx", code=code).stderr


def test_inputs_of_different_sizes(call, tmp_path):
    graph = helper.make_graph([node("Gather", ["x", "i"])], "sizes", [value("x", [4, 2]), value("i", [3], INT64)], [value("y", [3, 2])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    error = call("dynamic", tmp_path / "m.onnx", "--dim", "0=batch", "-o", tmp_path / "d.onnx", code=BAD_USAGE).stderr
    assert "'i' has 3 along axis 0, 'x' has 4 along axis 0" in error
    call("dynamic", tmp_path / "m.onnx", "--input", "i:0=batch", "-o", tmp_path / "d.onnx")


def test_nodes_in_functions_are_left(call, tmp_path):
    body = [helper.make_node("Constant", [], ["t"], value_ints=[1, 6]), helper.make_node("Reshape", ["v", "t"], ["r"])]
    flat = helper.make_function("local", "flat", ["v"], ["r"], body, [helper.make_opsetid("", 17)])
    graph = helper.make_graph([helper.make_node("flat", ["x"], ["y"], domain="local")], "calls", [value("x", [1, 2, 3])], [value("y", [1, 6])])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, functions=[flat], ir_version=8), tmp_path / "m.onnx")
    text = call("dynamic", tmp_path / "m.onnx", "--dim", "0=batch", "-o", tmp_path / "d.onnx", code=CHECK_FAILED).stdout
    assert "Reshape" in text and "in a function of the model" in text


# Models in which the batch is fixed and folded before; the sizes of other dims in the runs, and axes that are not the first.
CACHES = {"gpt2_kv", "llama_tiny_gqa_kv", "llama_tiny_gqa_kv_dynamo"}
SIZES = {"seq": 2, "past": 3, "total": 5, "frames": 20, "time": 7, "width": 48, "dec_seq": 4, "h": 64, "w": 64}
AXES = {"lstm_state": {"x": 1, "h0": 1, "c0": 1}}
# Detectors pick boxes among all rows, and their outputs have no axis for them.
NOT_BY_ROWS = {"fasterrcnn_mobilenet_v3_large_320_fpn", "ssdlite320_mobilenet_v3_large"}


def rows_for(path, axes, sizes, rows):
    inputs = {}
    for info in session(path).get_inputs():
        rng = np.random.default_rng(len(inputs))
        shape = [sizes.get(dim, dim) for dim in info.shape]
        shape[axes.get(info.name, 0)] = rows
        if info.type == "tensor(float)":
            array = rng.standard_normal(shape).astype(np.float32)
        else:
            array = np.ones(shape, np.int64) if "mask" in info.name else rng.integers(0, 2, shape)
        inputs[info.name] = (axes.get(info.name, 0), array)
    return inputs


@pytest.mark.parametrize("name", [n for n in (model_cases.names() if ALL else SMALL) if n not in NOT_BY_ROWS])
def test_models_come_back(call, tmp_path, name):
    path = model_cases.make(name)
    axes, sizes = AXES.get(name, {}), SIZES if name in CACHES else {**SIZES, "seq": 6}
    fixed, folded, free = (tmp_path / f"{what}.onnx" for what in ("fixed", "folded", "free"))
    call("fix", path, "batch=1", "-o", fixed)
    call("optimize", fixed, "-o", folded)
    flags = [part for x, axis in axes.items() for part in ("--input", f"{x}:{axis}=batch")] or ["--dim", "0=batch"]
    dims = {dim for info in session(folded).get_inputs() for dim in info.shape if isinstance(dim, str)}
    call("dynamic", folded, *flags, *[part for dim in sorted(dims) for part in ("--size", f"{dim}={sizes[dim]}")], "-o", free)
    assert_rows(folded, free, rows_for(folded, axes, sizes, 2), rows=2)
