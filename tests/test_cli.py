"""The command's conventions: exit codes, --json, inputs from files, made-up inputs, test-case folders."""
import json

import numpy as np
import onnx
import pytest
from conftest import BAD_USAGE, BROKEN, CHECK_FAILED, MISSING
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture
def model(tmp_path):
    """y = x + 1"""
    graph = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"], "add_one")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 2])],
                              [numpy_helper.from_array(np.ones(1, np.float32), "one")])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


X = np.float32([[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize("ending", ["npy", "npz", "pb", "bin", "fortran.npy"])
def test_inputs_from_files(call, model, tmp_path, ending):
    file = tmp_path / f"x.{ending}"
    if ending == "npy":
        np.save(file, X)
    elif ending == "fortran.npy":
        np.save(file, np.asfortranarray(X))
    elif ending == "npz":
        np.savez(file, x=X, other=np.zeros(1))
    elif ending == "pb":
        file.write_bytes(numpy_helper.from_array(X, "x").SerializeToString())
    else:
        file.write_bytes(X.tobytes())
    call("run", model, "--input", f"x={file}", "--output-dir", tmp_path / "out")
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), X + 1)


def test_broken_input_files(call, model, tmp_path):
    def error(name, content, code=BROKEN):
        (tmp_path / name).write_bytes(content)
        return call("run", model, "--input", f"x={tmp_path / name}", code=code).stderr.replace(f"{tmp_path}/", "")

    np.save(tmp_path / "good.npy", X)
    good = (tmp_path / "good.npy").read_bytes()
    assert "shape [3, 2] needs 24 bytes, 20 are there" in error("short.npy", good[:-4])
    assert "it does not start with the NumPy mark" in error("not.npy", b"something else")
    assert "float [1, 2] needs 8 bytes, the file has 10" in error("odd.bin", b"0123456789")
    assert "files of this kind cannot be read" in error("x.txt", b"", BAD_USAGE)
    np.savez_compressed(tmp_path / "packed.npz", x=X)
    assert "save it with numpy.savez" in call("run", model, "--input", f"x={tmp_path / 'packed.npz'}", code=BROKEN).stderr
    assert "missing-file" in call("run", model, "--input", "x=nowhere.npy", code=MISSING).stderr


def test_made_up_inputs_are_announced(call, model):
    run = call("run", model, "--dim", "rows=4", "--seed", 7)
    assert "note: 1 input not given: random values (seed 7)" in run.stderr
    assert "y = float [4, 2]" in run.stdout
    assert "assumed rows = 1" in call("run", model).stderr
    assert "y = float [5, 2]" in call("run", model, "--shape", "x=5x2").stdout
    assert call("run", model, "--seed", 1).stdout == call("run", model, "--seed", 1).stdout


def test_json_is_one_document(call, model):
    run = json.loads(call("run", model, "--json", "--placement").stdout)
    assert run["outputs"][0]["name"] == "y" and run["placement"]["nodes"][0]["node"] == "Add 'add_one' (node 0)"
    seen = json.loads(call("inspect", model, "--json").stdout)
    assert seen["inputs"] == [{"name": "x", "type": "tensor(float)", "shape": ["rows", 2]}]
    assert seen["operators"] == [{"name": "Add", "count": 1, "known": True}] and seen["problem"] == ""
    assert json.loads(call("doctor", "--no-measure", "--json").stdout)["Providers"]["cpu"] == "ready"
    operators = {op["operator"]: op for op in json.loads(call("doctor", "--operators", "--json").stdout)["operators"]}
    assert operators["Gelu"]["folder"] == "activation" and operators["Gelu"]["decomposes"]
    assert operators["Upsample"]["retired"] and not operators["Upsample"]["providers"]
    error = json.loads(call("run", "none.onnx", "--json", code=MISSING).stdout)
    assert error["error"]["code"] == "missing-file"


@pytest.mark.parametrize("name, value", [("TENON_THREADS", "two"), ("TENON_THREADS", "0"), ("TENON_SPIN", "-5"), ("TENON_ISA", "mmx")])
def test_environment_that_makes_no_sense(call, model, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    message = f"{name} is '{value}'"
    assert message in call("run", model, code=BAD_USAGE).stderr
    assert message in call("doctor", "--no-measure").stdout


def test_exit_codes(call, model, tmp_path):
    call("run", code=BAD_USAGE)
    call("fly", code=BAD_USAGE)
    call("run", model, "--shape", "x", code=BAD_USAGE)
    assert "--shape names 'nobody'" in call("run", model, "--shape", "nobody=1", code=BROKEN).stderr
    assert "--dim names 'nobody'" in call("run", model, "--dim", "nobody=1", code=BROKEN).stderr
    call("--help")
    call("run", "--help")
    assert call("--version").stdout.strip()
    (tmp_path / "web.onnx").write_text("<html></html>")
    assert "web page" in call("run", tmp_path / "web.onnx", code=BROKEN).stderr
    assert "there is no provider 'npu' in this build" in call("run", model, "--provider", "npu", code=MISSING).stderr
    assert "did you mean 'x'?" in call("run", model, "--input", f"X={model}", code=BROKEN).stderr


def test_text(call, model):
    assert "  y = Add(x, one)  # add_one" in call("inspect", model, "--text").stdout


def test_inspect_says_what_is_unknown(call, model):
    strange = onnx.load(model)
    strange.graph.node[0].op_type = "Magic"
    onnx.save(strange, model)
    text = call("inspect", model).stdout
    assert "Magic   (unknown to Tenon)" in text and "problem: unknown-operator" in text


def case(folder, model, x, y):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.read_bytes())
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(y, "y").SerializeToString())


def test_test_cases(call, model, tmp_path):
    case(tmp_path / "cases" / "good", model, X, X + 1)
    case(tmp_path / "cases" / "bad", model, X, np.where(X == 4, 0, X + 1).astype(np.float32))
    case(tmp_path / "cases" / "shape", model, X, X[:2])
    (tmp_path / "cases" / "empty").mkdir()
    (tmp_path / "cases" / "empty" / "model.onnx").write_bytes(model.read_bytes())
    lines = call("test", tmp_path / "cases", code=CHECK_FAILED).stdout.splitlines()
    assert lines[-1] == "1 passed, 2 failed, 1 skipped"
    assert any("output 'y': 1 of 6 elements differ; max abs error 5, max rel error 0; worst at [1, 1]: expected 0, got 5" in line for line in lines)
    assert any("expected shape [2, 2], got [3, 2]" in line for line in lines)
    document = json.loads(call("test", tmp_path / "cases" / "good", "--json").stdout)
    assert document["cases"][0]["result"] == "passed" and document["passed"] == 1
    assert call("test", tmp_path / "cases" / "good").stdout == "1 passed, 0 failed, 0 skipped\n"
    (tmp_path / "cases" / "bad" / "tolerance.json").write_text('{"atol": 10}')
    assert call("test", tmp_path / "cases" / "bad").stdout == "1 passed, 0 failed, 0 skipped\n"


P = np.array([0, 0.1, 0.5, 0.9, 1], np.float32)


@pytest.mark.parametrize("nodes, output, nonzero, problem", [
    ([("Bernoulli", {})], [0, 0, 1, 1, 1], '"input"', None),
    ([("Bernoulli", {"seed": 3.0})], [0, 0, 1, 1, 1], '"input"', None),
    ([("Bernoulli", {})], [0, 0, 1, 1], '"input"', "must have the shape of the first input, [5]"),
    ([("Bernoulli", {})], [0, 0, 2, 1, 1], '"input"', "element 2 is 2; it may be 0 or 1"),
    ([("Bernoulli", {})], [0, 0, 1, 0, 0], "0.5", " is 1; it may be 0 or "),
    ([("Bernoulli", {})], [0, 0, 1, 1, 1], "5", "5 is no probability"),
    ([("Bernoulli", {})], [0, 0, 1, 1, 1], '"1-input"', "element 0 is not 0 in 0.0 % of 10002 runs; 100.0 % are"),
    ([("Bernoulli", {})], [0, 0, 1, 1, 1], "true", 'it may be a probability, "input" or "1-input"'),
    ([("Ceil", {})], [0, 0, 1, 1, 1], '"input"', "element 1 is not 0 in 100.0 % of 10002 runs; 10.0 % are expected"),
    ([("Round", {}), ("Bernoulli", {})], [0, 0, 0, 1, 1], '"input"', "element 1 is not 0 in 0.0 % of 10002 runs"),
    ([("Sqrt", {}), ("Bernoulli", {})], [0, 0, 1, 1, 1], '"input"', "10.0 % are expected"),
    ([("Bernoulli", {"dtype": TensorProto.DOUBLE})], [0, 0, 1, 1, 1], '"input"', "expected float, got double"),
])
def test_random_zeros(call, tmp_path, nodes, output, nonzero, problem):
    names = ["x", *(f"v{i}" for i in range(len(nodes) - 1)), "y"]
    graph = helper.make_graph([helper.make_node(op, [names[i]], [names[i + 1]], **attributes)
                               for i, (op, attributes) in enumerate(nodes)], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5])],
                              [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), tmp_path / "m.onnx")
    case(tmp_path / "case", tmp_path / "m.onnx", P, np.array(output, np.float32))
    (tmp_path / "case" / "tolerance.json").write_text(f'{{"nonzero": {nonzero}}}')
    lines = call("test", tmp_path / "case", code=CHECK_FAILED if problem else 0).stdout
    assert (problem or "1 passed") in lines


def test_question_marks_are_no_name(call, tmp_path):
    """Some exporters write "?" for sizes that they do not know."""
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["?", "?"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    assert "y = float [2, 3]" in call("run", tmp_path / "m.onnx", "--shape", "x=2x3").stdout
