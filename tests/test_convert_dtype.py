"""`tenon convert --dtype`: half the bytes, nearly the same numbers, and onnxruntime runs it."""
import json

import model_cases
import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import BROKEN
from onnx import TensorProto, helper, numpy_helper
from test_models import SMALL

FLOAT, HALF, BFLOAT, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT64


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def floats(name, *shape, scale=1.0):
    return numpy_helper.from_array((scale * np.random.default_rng(0).standard_normal(shape)).astype(np.float32), name)


def save(path, nodes, inputs, outputs, initializers=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def small(path, opset=17, scale=1.0):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"), helper.make_node("Relu", ["p"], ["r"], name="positive"),
             helper.make_node("Add", ["r", "b"], ["y"], name="sum")]
    return save(path, nodes, [value("x", ["n", 8])], [value("y", ["n", 4])], [floats("w", 8, 4, scale=scale), floats("b", 4)], opset)


def convert(call, path, *arguments):
    out = path.with_name("half.onnx")
    report = json.loads(call("convert", path, *arguments, "-o", out, "--json").stdout)["dtype"]
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    return model, report


def run(path, inputs):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, inputs)[0]


X = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)


def test_float16(call, tmp_path):
    path = small(tmp_path / "m.onnx")
    model, report = convert(call, path, "--dtype", "fp16")
    assert [n.op_type for n in model.graph.node] == ["MatMul", "Relu", "Add"]
    assert {t.data_type for t in model.graph.initializer} == {HALF} and [t.name for t in model.graph.initializer] == ["w", "b"]
    assert model.graph.input[0] == value("x", ["n", 8], HALF) and model.graph.output[0] == value("y", ["n", 4], HALF)
    assert report["converted_nodes"] == 3 and report["casts"] == 0 and 0 < report["largest_difference"] < 1e-2
    half = run(tmp_path / "half.onnx", {"x": X.astype(np.float16)})
    np.testing.assert_allclose(half.astype(np.float32), run(path, {"x": X}), atol=0.02)


def test_keep_io(call, tmp_path):
    path = small(tmp_path / "m.onnx")
    model, report = convert(call, path, "--dtype", "fp16", "--keep-io")
    assert model.graph.input[0] == value("x", ["n", 8]) and model.graph.output[0] == value("y", ["n", 4])
    assert report["casts"] == 2
    np.testing.assert_allclose(run(tmp_path / "half.onnx", {"x": X}), run(path, {"x": X}), atol=0.02)


def test_lists(call, tmp_path):
    path = small(tmp_path / "m.onnx")
    model, report = convert(call, path, "--dtype", "fp16", "--keep-float", "MatMul")
    assert [k["op_type"] for k in report["kept"]] == ["MatMul"] and report["kept"][0]["reason"] == "it was asked for"
    assert {t.name: t.data_type for t in model.graph.initializer} == {"w": FLOAT, "b": HALF}
    run(tmp_path / "half.onnx", {"x": X.astype(np.float16)})
    model, report = convert(call, path, "--dtype", "fp16", "--only", "prod*", "--keep-io")
    assert report["converted_nodes"] == 1 and len(report["kept"]) == 2
    error = call("convert", path, "--dtype", "fp16", "--keep-float", "MatMull", "-o", tmp_path / "o.onnx", code=BROKEN).stderr
    assert "did you mean 'MatMul'?" in error


def test_weights_that_do_not_fit_stay(call, tmp_path):
    for scale, text in ((1e6, "too large for float16"), (1e-9, "would be 0 in float16")):
        model, report = convert(call, small(tmp_path / "m.onnx", scale=scale), "--dtype", "fp16", "--keep-io")
        assert report["kept"][0]["op_type"] == "MatMul" and text in report["kept"][0]["reason"]
        assert {t.name: t.data_type for t in model.graph.initializer}["w"] == FLOAT
        np.testing.assert_allclose(run(tmp_path / "half.onnx", {"x": X}), run(tmp_path / "m.onnx", {"x": X}), rtol=0.01, atol=0.01)


def test_biases_that_vanish_beside_sums_are_converted(call, tmp_path):
    for scale, kept in ((1, 0), (1e-6, 1)):
        path = save(tmp_path / "m.onnx", [helper.make_node("Gemm", ["x", "w", "b"], ["y"])], [value("x", [3, 8])], [value("y", [3, 4])],
                    [floats("w", 8, 4, scale=scale), floats("b", 4, scale=1e-8)])
        _, report = convert(call, path, "--dtype", "fp16", "--keep-io")
        assert len(report["kept"]) == kept, report["kept"]


def test_nodes_that_overflow_stay(call, tmp_path):
    path = small(tmp_path / "m.onnx", scale=3e4)
    model, report = convert(call, path, "--dtype", "fp16", "--keep-io")
    assert {k["op_type"] for k in report["kept"]} >= {"MatMul", "Relu"} and "reaches" in report["kept"][-1]["reason"]
    assert report["largest_difference"] < 1e-3


def test_fixed_types_keep_theirs(call, tmp_path):
    """Scales of Resize, targets of Cast, bodies of branches, integers."""
    def branch(name, op):
        return helper.make_graph([helper.make_node(op, ["r"], [f"{name}_y"])], name, [], [value(f"{name}_y", None)])
    nodes = [helper.make_node("Resize", ["x", "", "s"], ["r"], mode="linear"),
             helper.make_node("If", ["c"], ["b"], then_branch=branch("t", "Relu"), else_branch=branch("e", "Exp")),
             helper.make_node("Shape", ["b"], ["n"]), helper.make_node("Cast", ["n"], ["f"], to=FLOAT),
             helper.make_node("ReduceProd", ["f"], ["count"], keepdims=0), helper.make_node("Div", ["b", "count"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", [1, 1, 2, 2]), value("c", [], TensorProto.BOOL)], [value("y", [1, 1, 4, 4])],
                [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s")])
    model, report = convert(call, path, "--dtype", "fp16")
    kinds = {n.op_type: n for n in model.graph.node if n.op_type != "Cast"}
    assert next(t for t in model.graph.initializer if t.name == "s").data_type == FLOAT and kinds["Resize"].input[2] == "s"
    assert [k["op_type"] for k in report["kept"]] == ["If"] and report["largest_difference"] < 1e-2
    inputs = {"x": np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), "c": np.array(True)}
    half = run(tmp_path / "half.onnx", {**inputs, "x": inputs["x"].astype(np.float16)})
    np.testing.assert_allclose(half.astype(np.float32), run(path, inputs), atol=1e-2)


def test_bfloat16(call, tmp_path):
    model, report = convert(call, small(tmp_path / "m.onnx"), "--dtype", "bf16")
    assert {t.data_type for t in model.graph.initializer} == {BFLOAT} and report["converted_nodes"] == 3
    assert report["largest_difference"] < 0.05
    model, report = convert(call, small(tmp_path / "m.onnx", opset=11), "--dtype", "bf16", "--keep-io")
    assert report["converted_nodes"] == 0 and "opset 11" in report["kept"][0]["reason"]


def difference(outputs, expected):
    """The largest, as a share of the largest number of its output."""
    floats = [(a, b) for a, b in zip(outputs, expected) if b.dtype == np.float32]
    return max(np.abs(a - b).max() / np.abs(b).max() for a, b in floats)


def others_of_their_kind(inputs, count):
    """Inputs as these are, with other numbers for their floats."""
    rng = np.random.default_rng(0)
    return [{name: rng.standard_normal(x.shape).astype(x.dtype) if x.dtype == np.float32 else x for name, x in inputs.items()}
            for _ in range(count)]


# Weights are random, and so are the largest numbers of the outputs: 10 bits go further with those of a trained model.
# In a network that amplifies small differences, chance decides how far off one input is: then the median of five counts. It
# may be further off, but no further than in onnxruntime (which on x86_64 rounds weights alone to half precision).
@pytest.mark.parametrize("name", SMALL)
def test_models(call, tmp_path, name):
    path = model_cases.make(name)
    inputs = model_cases.inputs_for(name, onnx.load(path, load_external_data=False).graph)
    out = tmp_path / "half.onnx"

    def largest_difference(inputs):
        arguments = ["--keep-io"]
        for key, array in inputs.items():
            np.save(tmp_path / f"{key.replace('/', '_')}.npy", array)
            arguments += ["--input", f"{key}={tmp_path / key.replace('/', '_')}.npy"]
        report = json.loads(call("convert", path, "--dtype", "fp16", *arguments, "-o", out, "--json").stdout)["dtype"]
        assert report.get("why_not", "") == ""
        return report["largest_difference"]

    ours = largest_difference(inputs)
    options = onnxruntime.SessionOptions()
    # Beyond this level, onnxruntime 1.31 ends the process on x86_64 where LSTM or GRU are float16.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    half = onnxruntime.InferenceSession(str(out), options, providers=["CPUExecutionProvider"])
    if ours >= 0.1:
        full = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        all_inputs = [inputs, *others_of_their_kind(inputs, 4)]
        ours = np.median([largest_difference(each) for each in all_inputs])
        theirs = np.median([difference(half.run(None, each), full.run(None, each)) for each in all_inputs])
        assert ours < 0.1 or ours <= theirs
