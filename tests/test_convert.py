"""`tenon convert`: what it writes, what it keeps, and what it says when it cannot. The operators themselves are the business
of test_conversion.py."""
import json
import os
import subprocess
import sys

import ml_dtypes
import model_cases
import numpy as np
import onnx
import pytest
from conftest import ROOT
from onnx import TensorProto, helper, numpy_helper
from test_models import difference

import tenon as package

ALL = os.environ.get("TENON_ALL") == "1"
F, I = TensorProto.FLOAT, TensorProto.INT64
# The oldest release that installs for the Python of the tests, and a NumPy that it was built for.
OLD_ONNXRUNTIME = ["onnxruntime==1.15.0", "numpy==1.26.4"]


def convert(tenon, model, *options):
    return subprocess.run([tenon, "convert", model, *options], capture_output=True, text=True, timeout=600)


def softmax_model(folder, opset=17, **more):
    """Softmax over axis 1 of three: below opset 13 that means something else."""
    nodes = [helper.make_node("Constant", [], ["two"], name="constant", value=numpy_helper.from_array(np.float32(2))),
             helper.make_node("Mul", ["x", "two"], ["doubled"], name="mul"),
             helper.make_node("Softmax", ["doubled"], ["y"], name="softmax", axis=1)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", F, ["batch", 3, 4])],
                              [helper.make_tensor_value_info("y", F, ["batch", 3, 4])],
                              value_info=[helper.make_tensor_value_info("doubled", F, ["batch", 3, None])], doc_string="about it")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="tests", **more)
    model.metadata_props.add(key="author", value="somebody")
    model.graph.node[2].doc_string = "the last one"
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def test_down_keeps_what_the_model_says(tenon, tmp_path):
    run = convert(tenon, softmax_model(tmp_path), "--opset", "11", "-o", tmp_path / "old.onnx")
    assert run.returncode == 0, run.stderr
    assert "verified: both were run" in run.stdout and f"wrote {tmp_path / 'old.onnx'}" in run.stdout
    assert "IR version 6 instead of 8" in run.stderr
    model = onnx.load(tmp_path / "old.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert (model.ir_version, model.opset_import[0].version) == (6, 11)
    assert (model.producer_name, model.metadata_props[0].value, model.graph.doc_string) == ("tests", "somebody", "about it")
    nodes = {node.name: node for node in model.graph.node}
    assert nodes["constant"].op_type == "Constant" and nodes["mul"].op_type == "Mul"
    assert [v.name for v in model.graph.value_info] == ["doubled"]
    assert model.graph.value_info[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert [d.dim_param for d in model.graph.input[0].type.tensor_type.shape.dim][0] == "batch"


def test_up(tenon, tmp_path):
    run = convert(tenon, softmax_model(tmp_path, opset=11), "--opset", "21", "-o", tmp_path / "new.onnx")
    assert run.returncode == 0, run.stderr
    model = onnx.load(tmp_path / "new.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert (model.ir_version, model.opset_import[0].version) == (8, 21)
    assert "mul" in {node.name for node in model.graph.node}


def test_no_two_nodes_have_one_name(tmp_path):
    """Softmax over two axes becomes three nodes."""
    model = onnx.load_from_string(package.convert(softmax_model(tmp_path, opset=12), opset=17).to_bytes())
    names = [node.name for node in model.graph.node if node.name]
    assert len(names) == len(set(names)) and {node.op_type for node in model.graph.node} >= {"Softmax", "Reshape"}
    assert next(node.name for node in model.graph.node if "y" in node.output) == "softmax"


def test_nothing_to_do_changes_nothing(tenon, tmp_path):
    path = softmax_model(tmp_path)
    assert convert(tenon, path, "--opset", "17", "-o", tmp_path / "same.onnx").returncode == 0
    assert onnx.load(path) == onnx.load(tmp_path / "same.onnx")


def blocked_model(folder):
    nodes = [helper.make_node("StringSplit", ["s"], ["a", "b"], name="first"), helper.make_node("StringSplit", ["s"], ["c", "d"], name="second", maxsplit=1),
             helper.make_node("Gelu", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("s", TensorProto.STRING, [2]), helper.make_tensor_value_info("x", F, [2])],
                              [helper.make_tensor_value_info(n, t, None) for n, t in
                               [("a", TensorProto.STRING), ("b", I), ("c", TensorProto.STRING), ("d", I), ("y", F)]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), folder / "model.onnx")
    return folder / "model.onnx"


def test_all_blockers_at_once_and_nothing_written(tenon, tmp_path):
    path = blocked_model(tmp_path)
    run = convert(tenon, path, "--opset", "13", "-o", tmp_path / "out.onnx")
    assert run.returncode == 1
    assert "nothing is written; 2 blockers" in run.stdout and "StringSplit 'first' (node 0): " in run.stdout and "StringSplit 'second' (node 1): " in run.stdout
    assert not (tmp_path / "out.onnx").exists()
    run = convert(tenon, path, "--opset", "13", "-o", tmp_path / "out.onnx", "--json")
    assert run.returncode == 1
    blockers = json.loads(run.stdout)["blockers"]
    assert [b["op_type"] for b in blockers] == ["StringSplit", "StringSplit"] and all(b["reason"] for b in blockers)
    assert [b.node for b in package.conversion_blockers(path, opset=13)] == [b["node"] for b in blockers]
    with pytest.raises(package.Error, match="2 nodes cannot be converted"):
        package.convert(path, opset=13)


def test_the_input_is_overwritten_only_when_told(tenon, tmp_path):
    path = softmax_model(tmp_path)
    before = path.read_bytes()
    run = convert(tenon, path, "--opset", "13", "-o", path)
    assert run.returncode == 2 and "is a file that the model was read from" in run.stderr and "--force" in run.stderr
    assert path.read_bytes() == before
    assert convert(tenon, path, "--opset", "13", "-o", path, "--force").returncode == 0
    assert onnx.load(path).opset_import[0].version == 13


def weighted_model(folder, location):
    weights = np.arange(1000, dtype=np.float32)
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", F, [1000])],
                              [helper.make_tensor_value_info("y", F, [1000])], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx", save_as_external_data=location is not None, location=location, size_threshold=0)
    return folder / "model.onnx", weights


def test_external_data_goes_where_it_is_asked_for(tenon, tmp_path):
    path, weights = weighted_model(tmp_path, "weights.bin")
    run = convert(tenon, path, "-o", tmp_path / "a.onnx")
    assert run.returncode == 0 and f"wrote {tmp_path / 'a.onnx'} and {tmp_path / 'a.onnx.data'}" in run.stdout
    assert convert(tenon, path, "-o", tmp_path / "b.onnx", "--external-data", "none").returncode == 0
    assert not (tmp_path / "b.onnx.data").exists()
    assert convert(tenon, tmp_path / "b.onnx", "-o", tmp_path / "c.onnx", "--external-data", "all").returncode == 0
    assert (tmp_path / "c.onnx.data").stat().st_size == weights.nbytes
    for name in "abc":
        np.testing.assert_array_equal(numpy_helper.to_array(onnx.load(tmp_path / f"{name}.onnx").graph.initializer[0]), weights)


def test_data_of_the_input_is_not_overwritten(tenon, tmp_path):
    path, weights = weighted_model(tmp_path, "out.onnx.data")
    before = (tmp_path / "out.onnx.data").read_bytes()
    run = convert(tenon, path, "-o", tmp_path / "out.onnx")
    assert run.returncode == 2 and "out.onnx.data' is a file that the model was read from" in run.stderr
    assert (tmp_path / "out.onnx.data").read_bytes() == before and not (tmp_path / "out.onnx").exists()


def foreign_model(path, opset, typed=True):
    """LayerNormalization after an operator that nobody knows, whose result is declared if `typed`."""
    nodes = [helper.make_node("Mystery", ["x"], ["m"], name="mystery", domain="com.example"),
             helper.make_node("LayerNormalization", ["m", "s"], ["y"], name="norm")]
    shape = ["batch", 4]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", F, shape)], [helper.make_tensor_value_info("y", F, shape)],
                              [numpy_helper.from_array(np.ones(4, np.float32), "s")],
                              value_info=[helper.make_tensor_value_info("m", F, shape)] if typed else [])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    return path


def test_operators_of_other_domains_stay(tenon, tmp_path):
    run = convert(tenon, foreign_model(tmp_path / "m.onnx", 17), "--opset", "13", "-o", tmp_path / "down.onnx")
    assert run.returncode == 0, run.stderr
    assert "operators of 'com.example', which Tenon does not know, stay as they are" in run.stderr
    assert "not verified" in run.stdout and "com.example.Mystery" in run.stdout
    down = onnx.load(tmp_path / "down.onnx")
    assert down.graph.node[0].op_type == "Mystery" and down.graph.node[0].domain == "com.example"
    assert "LayerNormalization" not in {node.op_type for node in down.graph.node}
    assert {i.domain: i.version for i in down.opset_import} == {"": 13, "com.example": 1}
    run = convert(tenon, tmp_path / "down.onnx", "--opset", "21", "-o", tmp_path / "up.onnx")
    assert run.returncode == 0, run.stderr
    up = onnx.load(tmp_path / "up.onnx")
    assert up.graph.node[0].op_type == "Mystery" and up.opset_import[0].version == 21


def test_what_follows_an_unknown_operator_needs_its_type(tenon, tmp_path):
    run = convert(tenon, foreign_model(tmp_path / "m.onnx", 17, typed=False), "--opset", "13", "-o", tmp_path / "down.onnx")
    assert run.returncode == 1 and not (tmp_path / "down.onnx").exists()
    assert "norm" in run.stdout and "type" in run.stdout


def test_an_unknown_operator_of_a_known_domain_is_an_error(tenon, tmp_path):
    graph = helper.make_graph([helper.make_node("Mystery", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", F, [1])],
                              [helper.make_tensor_value_info("y", F, [1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    run = convert(tenon, tmp_path / "m.onnx", "--opset", "13", "-o", tmp_path / "o.onnx")
    assert run.returncode == 3 and "Mystery" in run.stderr and "unknown-operator" in run.stderr


def test_subgraphs_and_functions(tenon, tmp_path):
    then = helper.make_graph([helper.make_node("Softmax", ["x"], ["t"], axis=1)], "then", [], [helper.make_tensor_value_info("t", F, None)])
    other = helper.make_graph([helper.make_node("twice", ["x"], ["e"], domain="own")], "else", [], [helper.make_tensor_value_info("e", F, None)])
    function = helper.make_function("own", "twice", ["a"], ["b"], [helper.make_node("LogSoftmax", ["a"], ["b"], axis=1)], [helper.make_opsetid("", 17)])
    graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)], "g",
                              [helper.make_tensor_value_info("x", F, [2, 3, 4]), helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
                              [helper.make_tensor_value_info("y", F, [2, 3, 4])])
    model = helper.make_model(graph, functions=[function], opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    for opset in (11, 15, 21):
        run = convert(tenon, tmp_path / "model.onnx", "--opset", str(opset), "-o", tmp_path / "out.onnx")
        assert run.returncode == 0, run.stderr
        onnx.checker.check_model(str(tmp_path / "out.onnx"))
        for c in (True, False):
            expected, actual = (package.load(tmp_path / name).run(x=x, c=np.array(c))["y"] for name in ("model.onnx", "out.onnx"))
            np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("options, code, says", [
    (["--opset", "13"], 2, "no file to write"),
    (["--opset", "6", "-o", "OUT"], 2, "opset 6 of ai.onnx is not one to convert to: 7 to 28 are"),
    (["--opset", "29", "-o", "OUT"], 2, "opset 29 of ai.onnx is not one to convert to"),
    (["--opset", "none", "-o", "OUT"], 2, "'none' is no opset"),
    (["--opset", "com.example=1", "-o", "OUT"], 2, "no versions of domain 'com.example'"),
    (["--ir-version", "2", "-o", "OUT"], 2, "IR version 2 is not one to convert to"),
    (["--opset", "13", "-o", "OUT", "--input", "x=nothing.npy"], 4, "nothing.npy"),
    (["--opset", "13", "-o", "OUT", "--input", "z=nothing.npy"], 3, "did you mean 'x'?"),
])
def test_wrong_usage(tenon, tmp_path, options, code, says):
    path = softmax_model(tmp_path)
    run = convert(tenon, path, *[str(tmp_path / "out.onnx") if option == "OUT" else option for option in options])
    assert run.returncode == code and says in run.stderr, run.stderr
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("damage, says", [
    (lambda model: model.graph.node[1].input.__setitem__(0, "nowhere"), "nowhere"),
    (lambda model: model.graph.node[2].output.__setitem__(0, "x"), "'x'"),
    (lambda model: setattr(model.graph.node[1], "op_type", "Mull"), "the nearest known one is Mul"),
])
def test_a_broken_model_is_not_written(tenon, tmp_path, damage, says):
    path = softmax_model(tmp_path)
    model = onnx.load(path)
    damage(model)
    onnx.save(model, path)
    run = convert(tenon, path, "--opset", "11", "-o", tmp_path / "out.onnx")
    assert run.returncode == 3 and says in run.stderr, run.stderr
    assert not (tmp_path / "out.onnx").exists()


def test_python_takes_paths_bytes_and_messages(tmp_path):
    path = softmax_model(tmp_path)
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    expected = package.load(path).run(x=x)["y"]
    for source in (path, str(path), path.read_bytes(), onnx.load(path), package.read_onnx(path)):
        converted = package.convert(source, opset=9)
        assert onnx.load_from_string(converted.to_bytes()).opset_import[0].version == 9
        assert converted.save(tmp_path / "out.onnx") == [tmp_path / "out.onnx"]
        np.testing.assert_allclose(package.load(converted.to_bytes()).run(x=x)["y"], expected, rtol=1e-6)
    with pytest.raises(package.Error, match="was read from"):
        package.convert(path, opset=9).save(path)
    package.convert(path, opset=9).save(path, overwrite=True)
    with pytest.raises(package.Error, match="a model is a path, bytes, an onnx.ModelProto or an OnnxModel, not int"):
        package.convert(3, opset=9)


@pytest.fixture(scope="session")
def old_onnxruntime():
    folder = ROOT / "build" / "old-onnxruntime"
    made_from = folder / "made-from.txt"
    if not made_from.exists() or made_from.read_text() != " ".join(OLD_ONNXRUNTIME):
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, timeout=300)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *OLD_ONNXRUNTIME], check=True, timeout=900)
        made_from.write_text(" ".join(OLD_ONNXRUNTIME))
    return folder / "bin" / "python"


RUN_OLD = """
import sys, numpy, onnxruntime
assert onnxruntime.__version__ == "1.15.0"
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
outputs = session.run(None, dict(numpy.load(sys.argv[2])))
numpy.savez(sys.argv[3], **{o.name: v for o, v in zip(session.get_outputs(), outputs)})
"""


@pytest.mark.skipif(not ALL, reason="downloads an old onnxruntime and makes every model: make test-conversion")
@pytest.mark.parametrize("name", model_cases.names())
def test_an_old_onnxruntime_runs_what_is_written(tenon, tmp_path, name, old_onnxruntime):
    path = model_cases.make(name)
    run = convert(tenon, path, "--opset", "13", "-o", tmp_path / "old.onnx", "--no-verify")
    assert run.returncode == 0, run.stderr
    graph = onnx.load(path, load_external_data=False).graph
    inputs = model_cases.inputs_for(name, graph)
    np.savez(tmp_path / "inputs.npz", **inputs)
    old = subprocess.run([old_onnxruntime, "-c", RUN_OLD, tmp_path / "old.onnx", tmp_path / "inputs.npz", tmp_path / "outputs.npz"],
                         capture_output=True, text=True, timeout=900)
    assert old.returncode == 0, old.stderr[-2000:]
    actual, expected = np.load(tmp_path / "outputs.npz"), model_cases.run_onnxruntime(path, inputs)
    # Two scores that differ in the last bit may change places; that such a model runs is what can be asked for.
    if model_cases.SELECTING & {node.op_type for node in graph.node}:
        return
    # Level `all` of two releases: each rounds in its own way.
    problems = [f"{key} {problem}" for key, value in expected.items() if (problem := difference(actual[key], value, 1e-3))]
    assert not problems, "\n".join(problems)


BIT_PAIRS = [("float16", "int16"), ("bfloat16", "uint16"), ("float32", "int32"), ("float32", "uint32"), ("float64", "int64"),
             ("float64", "uint64"), ("float16", "bfloat16")]


def numbers_of_all_kinds(dtype):
    """Random bits, both zeros, both infinities, the smallest and largest of each kind, and the usual NaN."""
    size = np.dtype(dtype).itemsize
    bits = np.random.default_rng(0).integers(0, 256, 4096 * size, np.uint8).view(dtype)
    limits = ml_dtypes.finfo(dtype)
    ends = [0, limits.smallest_subnormal, limits.tiny, limits.max, np.inf]
    with np.errstate(invalid="ignore"):
        return np.concatenate([bits[bits == bits], np.array(ends, dtype), -np.array(ends, dtype), np.array([np.nan], dtype)])


@pytest.mark.parametrize("opset", [13, 11])
@pytest.mark.parametrize("first, second", [*BIT_PAIRS, *((b, a) for a, b in BIT_PAIRS)])
def test_bits_of_floats_by_arithmetic(first, second, opset):
    numbers = numbers_of_all_kinds(first if first in ("float16", "bfloat16", "float32", "float64") else second).view(first)
    types = {name: helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (first, second)}
    graph = helper.make_graph([helper.make_node("BitCast", ["x"], ["y"], to=types[second])], "g",
                              [helper.make_tensor_value_info("x", types[first], ["n"])],
                              [helper.make_tensor_value_info("y", types[second], ["n"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=10)
    if opset < 13 and "bfloat16" in (first, second):
        assert package.conversion_blockers(model, opset=opset)
        return
    old = package.load(package.convert(model, opset=opset), level="none")
    actual = old.run({"x": numbers})["y"]
    expected = numbers.view(second)
    assert np.array_equal(actual != actual, expected != expected)
    kept = actual == actual  # what a NaN carries is lost
    assert np.array_equal(actual[kept].view(f"u{numbers.itemsize}"), expected[kept].view(f"u{numbers.itemsize}"))
