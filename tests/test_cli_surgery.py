"""`tenon extract`, `prune`, `rename`, `merge`, `strip`, `restore` and `fix`: what they write, and what they refuse."""
import json
import os

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import BAD_USAGE, BROKEN, MISSING
from onnx import TensorProto, helper, numpy_helper

ALL = os.environ.get("TENON_ALL") == "1"
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weights(name, *shape, seed=0):
    return numpy_helper.from_array(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), name)


def save(path, graph, opset=17, functions=(), domains=(), **more):
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8, **more)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def run(path, inputs, outputs=None):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def names(values):
    return [v.name for v in values]


def two_heads(path, **more):
    """x -> h = Relu(x @ w); a = h + b; c = Sigmoid(h)."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
             helper.make_node("Relu", ["p"], ["h"], name="positive"),
             helper.make_node("Add", ["h", "b"], ["a"], name="sum"),
             helper.make_node("Sigmoid", ["h"], ["c"], name="squash")]
    graph = helper.make_graph(nodes, "two_heads", [value("x", ["batch", 3])],
                              [value("a", ["batch", 4]), value("c", ["batch", 4])],
                              [weights("w", 3, 4), weights("b", 4, seed=1)],
                              value_info=[value("h", ["batch", 4])], doc_string="kept")
    return save(path, graph, **more)


def with_branch(path):
    """y = If(flag) then x + outer else x - outer, where outer = x * two is read inside of the branches only."""
    def branch(op):
        return helper.make_graph([helper.make_node(op, ["x", "outer"], [f"{op}_out"])], op, [], [value(f"{op}_out", [2])])
    nodes = [helper.make_node("Mul", ["x", "two"], ["outer"]),
             helper.make_node("Exp", ["x"], ["unused_here"]),
             helper.make_node("If", ["flag"], ["y"], then_branch=branch("Add"), else_branch=branch("Sub"))]
    graph = helper.make_graph(nodes, "branches", [value("x", [2]), value("flag", [], BOOL)],
                              [value("y", [2]), value("unused_here", [2])],
                              [numpy_helper.from_array(np.array([2], np.float32), "two")])
    return save(path, graph)


def with_functions(path, factor=2.0, inner="twice"):
    body = [helper.make_node("Constant", [], ["k"], value_float=factor), helper.make_node("Mul", ["v", "k"], ["r"])]
    twice = helper.make_function("local", inner, ["v"], ["r"], body, [helper.make_opsetid("", 17)])
    other = helper.make_function("local", "other", ["v"], ["r"], [helper.make_node("Neg", ["v"], ["r"])],
                                 [helper.make_opsetid("", 17)])
    nodes = [helper.make_node(inner, ["x"], ["y"], domain="local"), helper.make_node("other", ["x"], ["z"], domain="local")]
    graph = helper.make_graph(nodes, "calls", [value("x", [2])], [value("y", [2]), value("z", [2])])
    return save(path, graph, functions=[twice, other], domains=["local"])


X = np.array([[1, -2, 3], [0.5, 4, -1]], np.float32)


def test_extract_from_the_middle(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    call("extract", path, "--inputs", "h", "--outputs", "c", "-o", tmp_path / "part.onnx")
    part = onnx.load(tmp_path / "part.onnx")
    onnx.checker.check_model(part, full_check=True)
    assert [n.op_type for n in part.graph.node] == ["Sigmoid"] and not part.graph.initializer
    assert part.graph.doc_string == "kept" and part.graph.input[0] == value("h", ["batch", 4])
    h = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(run(tmp_path / "part.onnx", {"h": h})["c"], 1 / (1 + np.exp(-h)), rtol=1e-6)


def test_extract_declares_inferred_types(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    call("extract", path, "--outputs", "p", "-o", tmp_path / "part.onnx")
    part = onnx.load(tmp_path / "part.onnx")
    assert part.graph.output[0] == value("p", ["batch", 4]) and names(part.graph.input) == ["x"]
    assert names(part.graph.initializer) == ["w"]


def test_extract_keeps_what_branches_read(call, tmp_path):
    path = with_branch(tmp_path / "m.onnx")
    call("extract", path, "--outputs", "y", "-o", tmp_path / "part.onnx")
    x = np.array([1, 2], np.float32)
    for flag, expected in ((True, [3, 6]), (False, [-1, -2])):
        np.testing.assert_array_equal(run(tmp_path / "part.onnx", {"x": x, "flag": np.array(flag)})["y"], expected)
    assert [n.op_type for n in onnx.load(tmp_path / "part.onnx").graph.node] == ["Mul", "If"]


def test_extract_cuts_what_branches_read(call, tmp_path):
    path = with_branch(tmp_path / "m.onnx")
    call("extract", path, "--inputs", "x,flag,outer", "--outputs", "y", "-o", tmp_path / "part.onnx")
    inputs = {"x": np.array([1, 2], np.float32), "flag": np.array(True), "outer": np.array([10, 20], np.float32)}
    np.testing.assert_array_equal(run(tmp_path / "part.onnx", inputs)["y"], [11, 22])


def test_extract_keeps_functions_that_are_called(call, tmp_path):
    path = with_functions(tmp_path / "m.onnx")
    call("extract", path, "--outputs", "y", "-o", tmp_path / "part.onnx")
    part = onnx.load(tmp_path / "part.onnx")
    assert [f.name for f in part.functions] == ["twice"]
    assert {o.domain for o in part.opset_import} == {"", "local"}
    np.testing.assert_array_equal(run(tmp_path / "part.onnx", {"x": np.array([1, 2], np.float32)})["y"], [2, 4])


@pytest.mark.parametrize("arguments, code, text", [
    (["--outputs", "hh"], BROKEN, "the model has no value 'hh'\n  hint: did you mean 'h'?"),
    (["--inputs", "b", "--outputs", "a"], BAD_USAGE, "they also need 'x'"),
    (["--outputs", "a,a"], BAD_USAGE, "the output 'a' is named twice"),
    ([], BAD_USAGE, "neither inputs nor outputs are given"),
])
def test_extract_errors(call, tmp_path, arguments, code, text):
    path = two_heads(tmp_path / "m.onnx")
    assert text in call("extract", path, *arguments, "-o", tmp_path / "part.onnx", code=code).stderr
    assert not (tmp_path / "part.onnx").exists()


def test_extract_says_where_a_value_is(call, tmp_path):
    error = call("extract", with_branch(tmp_path / "m.onnx"), "--outputs", "Add_out", "-o", tmp_path / "o.onnx", code=BROKEN)
    assert "inside of another node" in error.stderr and "If (node 2)" in error.stderr


def test_the_input_is_not_overwritten(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    before = path.read_bytes()
    error = call("extract", path, "--outputs", "c", "-o", path, code=BAD_USAGE).stderr
    assert "--force" in error and path.read_bytes() == before
    call("extract", path, "--outputs", "c", "-o", path, "--force")
    assert names(onnx.load(path).graph.output) == ["c"]


def test_no_output_is_an_error_before_any_work(call, tmp_path):
    assert "give -o OUT" in call("extract", tmp_path / "none.onnx", "--outputs", "c", code=BAD_USAGE).stderr
    call("extract", tmp_path / "none.onnx", "--outputs", "c", "-o", tmp_path / "o.onnx", code=MISSING)


def test_prune(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    report = json.loads(call("prune", path, "--drop", "a", "-o", tmp_path / "p.onnx", "--json").stdout)
    pruned = onnx.load(tmp_path / "p.onnx")
    onnx.checker.check_model(pruned)
    assert names(pruned.graph.output) == ["c"] and names(pruned.graph.initializer) == ["w"]
    assert {"kind": "removed initializer", "name": "b", "detail": ""} in report["changes"]
    np.testing.assert_array_equal(run(tmp_path / "p.onnx", {"x": X})["c"], run(path, {"x": X})["c"])
    call("prune", path, "--keep", "c", "-o", tmp_path / "k.onnx")
    assert (tmp_path / "k.onnx").read_bytes() == (tmp_path / "p.onnx").read_bytes()


def test_prune_inputs_only_when_asked(call, tmp_path):
    path = with_branch(tmp_path / "m.onnx")
    call("prune", path, "--drop", "y", "-o", tmp_path / "p.onnx")
    assert names(onnx.load(tmp_path / "p.onnx").graph.input) == ["x", "flag"]
    call("prune", path, "--drop", "y", "--unused-inputs", "-o", tmp_path / "p.onnx")
    assert names(onnx.load(tmp_path / "p.onnx").graph.input) == ["x"]


@pytest.mark.parametrize("arguments, code, text", [
    (["--drop", "d"], BROKEN, "the model has no output 'd'"),
    (["--drop", "a,c"], BAD_USAGE, "no output would be left"),
    (["--drop", "a", "--keep", "c"], BAD_USAGE, "both"),
])
def test_prune_errors(call, tmp_path, arguments, code, text):
    assert text in call("prune", two_heads(tmp_path / "m.onnx"), *arguments, "-o", tmp_path / "p.onnx", code=code).stderr
    assert not (tmp_path / "p.onnx").exists()


def test_rename(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    call("rename", path, "x=image", "c=score", "--node", "squash=final", "--dim", "batch=n", "-o", tmp_path / "r.onnx")
    renamed = onnx.load(tmp_path / "r.onnx")
    onnx.checker.check_model(renamed)
    assert renamed.graph.input[0] == value("image", ["n", 3]) and renamed.graph.output[1] == value("score", ["n", 4])
    assert "final" in names(renamed.graph.node) and renamed.graph.value_info[0] == value("h", ["n", 4])
    np.testing.assert_array_equal(run(tmp_path / "r.onnx", {"image": X})["score"], run(path, {"x": X})["c"])


def test_rename_by_pattern_and_prefix(call, tmp_path):
    path = with_branch(tmp_path / "m.onnx")
    call("rename", path, "*_out=inner_*", "--prefix", "m/", "--keep-io", "-o", tmp_path / "r.onnx")
    renamed = onnx.load(tmp_path / "r.onnx")
    branch = renamed.graph.node[2].attribute[0].g
    assert branch.node[0].input[:] == ["x", "m/outer"] and branch.output[0].name.startswith("inner_")
    assert names(renamed.graph.initializer) == ["m/two"] and names(renamed.graph.input) == ["x", "flag"]
    inputs = {"x": np.array([1, 2], np.float32), "flag": np.array(True)}
    np.testing.assert_array_equal(run(tmp_path / "r.onnx", inputs)["y"], [3, 6])


def test_rename_leaves_functions(call, tmp_path):
    path = with_functions(tmp_path / "m.onnx")
    call("rename", path, "x=input", "-o", tmp_path / "r.onnx")
    assert onnx.load(tmp_path / "r.onnx").functions == onnx.load(path).functions


@pytest.mark.parametrize("arguments, code, text", [
    (["x=h"], BROKEN, "two values would be called 'h'"),
    (["y=z"], BROKEN, "the model has no value 'y'"),
    (["x=1", "w=1"], BROKEN, "two values would be called '1'"),
    (["--node", "product=p", "--node", "none=p"], BROKEN, "the model has no node 'none'"),
    (["--dim", "bach=n"], BROKEN, "did you mean 'batch'?"),
    (["*a*=b*"], BAD_USAGE, "one '*'"),
    (["x"], BAD_USAGE, "has not the form A=B"),
    ([], BAD_USAGE, "no new names"),
])
def test_rename_errors(call, tmp_path, arguments, code, text):
    assert text in call("rename", two_heads(tmp_path / "m.onnx"), *arguments, "-o", tmp_path / "r.onnx", code=code).stderr
    assert not (tmp_path / "r.onnx").exists()


def test_rename_refuses_names_of_branches(call, tmp_path):
    """Inside of the branch the new name would stand for another value."""
    error = call("rename", with_branch(tmp_path / "m.onnx"), "outer=Add_out", "-o", tmp_path / "r.onnx", code=BROKEN).stderr
    assert "two values would be called 'Add_out'" in error


def second_model(path, width=4, opset=17, dtype=FLOAT):
    nodes = [helper.make_node("Mul", ["h", "w"], ["scaled"], name="product"), helper.make_node("Neg", ["scaled"], ["x"])]
    w = numpy_helper.from_array(np.full(width, 3, helper.tensor_dtype_to_np_dtype(dtype)), "w")
    graph = helper.make_graph(nodes, "second", [value("h", ["rows", width], dtype)], [value("x", ["rows", width], dtype)], [w])
    return save(path, graph, opset=opset, producer_name="other")


def test_merge(call, tmp_path):
    first, second = two_heads(tmp_path / "a.onnx", producer_name="one"), second_model(tmp_path / "b.onnx")
    report = json.loads(call("merge", first, second, "--map", "a=h", "-o", tmp_path / "m.onnx", "--json").stdout)
    merged = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(merged, full_check=True)
    assert names(merged.graph.output) == ["c", "second/x"] and merged.graph.output[1].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert merged.producer_name == "one" and "the models differ in their producer: that of the first stays" in report["notes"]
    results = run(tmp_path / "m.onnx", {"x": X})
    np.testing.assert_allclose(results["second/x"], -3 * run(first, {"x": X})["a"], rtol=1e-6)
    call("merge", first, second, "--map", "a=h", "--second-prefix", "b.", "--keep-joined", "-o", tmp_path / "m.onnx")
    assert names(onnx.load(tmp_path / "m.onnx").graph.output) == ["a", "c", "b.x"]


def test_merge_brings_the_older_opset_up(call, tmp_path):
    first, second = two_heads(tmp_path / "a.onnx", opset=13), second_model(tmp_path / "b.onnx", opset=17)
    done = call("merge", first, second, "--map", "a=h", "-o", tmp_path / "m.onnx")
    assert "the first model was brought from version 13 of ai.onnx to 17" in done.stderr
    assert onnx.load(tmp_path / "m.onnx").opset_import[0].version == 17
    np.testing.assert_allclose(run(tmp_path / "m.onnx", {"x": X})["second/x"], -3 * run(first, {"x": X})["a"], rtol=1e-6)


def test_merge_with_functions_of_one_name(call, tmp_path):
    first, second = with_functions(tmp_path / "a.onnx"), with_functions(tmp_path / "b.onnx", factor=5.0)
    call("merge", first, second, "--map", "y=x", "-o", tmp_path / "m.onnx")
    merged = onnx.load(tmp_path / "m.onnx")
    assert [f.name for f in merged.functions] == ["twice", "other", "twice_2"]
    results = run(tmp_path / "m.onnx", {"x": np.array([1, 2], np.float32)})
    np.testing.assert_array_equal(results["second/y"], [10, 20])


@pytest.mark.parametrize("second, arguments, code, text", [
    ({}, ["--map", "aa=h"], BROKEN, "the first model's output 'aa' does not exist"),
    ({}, ["--map", "a=g"], BROKEN, "the second model's input 'g' does not exist"),
    ({}, [], BAD_USAGE, "the first has outputs 'a', 'c', the second inputs 'h'"),
    ({}, ["--map", "a=h,c=h"], BAD_USAGE, "the input 'h' is joined twice"),
    ({"width": 5}, ["--map", "a=h"], BROKEN, "has shape [batch, 4], the second's input 'h' [rows, 5]"),
    ({"dtype": TensorProto.DOUBLE}, ["--map", "a=h"], BROKEN, "is tensor(float) [batch, 4], the second's input 'h' is tensor(double)"),
])
def test_merge_errors(call, tmp_path, second, arguments, code, text):
    paths = two_heads(tmp_path / "a.onnx"), second_model(tmp_path / "b.onnx", **second)
    assert text in call("merge", *paths, *arguments, "-o", tmp_path / "m.onnx", code=code).stderr
    assert not (tmp_path / "m.onnx").exists()


def test_strip_and_restore(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    (tmp_path / "elsewhere").mkdir()
    done = json.loads(call("strip", path, "--from", 16, "-o", tmp_path / "s.onnx", "--json").stdout)
    assert [(t["name"], t["type"], t["shape"], t["bytes"]) for t in done["tensors"]] == [("w", "float", [3, 4], 48), ("b", "float", [4], 16)]
    stripped = onnx.load(tmp_path / "s.onnx", load_external_data=False)
    assert stripped.graph.initializer[0].dims == [3, 4] and not stripped.graph.initializer[0].raw_data
    for ending in ("weights", "weights.json"):
        (tmp_path / f"s.onnx.{ending}").rename(tmp_path / "elsewhere" / f"w.{ending}")
    call("run", tmp_path / "s.onnx", code=MISSING)
    call("restore", tmp_path / "s.onnx", "--weights", tmp_path / "elsewhere/w.weights", "-o", tmp_path / "r.onnx")
    assert (tmp_path / "r.onnx").read_bytes() == onnx.load(path).SerializeToString()


def test_restore_beside_the_model(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    call("strip", path, "--from", 16, "--weights", "w.bin", "-o", tmp_path / "s.onnx")
    assert (tmp_path / "w.bin").exists() and (tmp_path / "w.bin.json").exists()
    call("restore", tmp_path / "s.onnx", "-o", tmp_path / "r.onnx")
    assert (tmp_path / "r.onnx").read_bytes() == onnx.load(path).SerializeToString()


def test_restore_refuses_other_weights(call, tmp_path):
    call("strip", two_heads(tmp_path / "m.onnx"), "--from", 16, "-o", tmp_path / "s.onnx")
    data = bytearray((tmp_path / "s.onnx.weights").read_bytes())
    data[2] ^= 1
    (tmp_path / "s.onnx.weights").write_bytes(data)
    error = call("restore", tmp_path / "s.onnx", "-o", tmp_path / "r.onnx", code=BROKEN).stderr
    assert "the weights are not those that were taken out" in error and "'w' differs" in error
    assert not (tmp_path / "r.onnx").exists()
    (tmp_path / "s.onnx.weights").write_bytes(data[:8])
    call("restore", tmp_path / "s.onnx", "-o", tmp_path / "r.onnx", code=MISSING)


def test_strip_and_restore_errors(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    assert "no tensor of 1024 bytes or more" in call("strip", path, "-o", tmp_path / "s.onnx", code=BAD_USAGE).stderr
    assert "no weights were taken out" in call("restore", path, "-o", tmp_path / "r.onnx", code=BAD_USAGE).stderr
    (tmp_path / "w").write_bytes(b"")
    assert "w.json" in call("restore", path, "--weights", tmp_path / "w", "-o", tmp_path / "r.onnx", code=MISSING).stderr


def test_external_data_stays_external(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    call("convert", path, "--external-data", "all", "--external-from", 16, "-o", tmp_path / "x.onnx")
    call("rename", tmp_path / "x.onnx", "w=weights", "-o", tmp_path / "r.onnx")
    assert (tmp_path / "r.onnx.data").exists()
    np.testing.assert_array_equal(run(tmp_path / "r.onnx", {"x": X})["a"], run(path, {"x": X})["a"])
    call("convert", tmp_path / "r.onnx", "--external-data", "none", "-o", tmp_path / "i.onnx")
    assert not (tmp_path / "i.onnx.data").exists()
    np.testing.assert_array_equal(run(tmp_path / "i.onnx", {"x": X})["a"], run(path, {"x": X})["a"])


def test_fix(call, tmp_path):
    path = two_heads(tmp_path / "m.onnx")
    for sizes in ("batch=2", "x=2x3"):
        call("fix", path, sizes, "-o", tmp_path / "f.onnx")
        fixed = onnx.load(tmp_path / "f.onnx")
        onnx.checker.check_model(fixed, full_check=True)
        assert fixed.graph.input[0] == value("x", [2, 3]) and fixed.graph.output[0] == value("a", [2, 4])
        assert fixed.graph.value_info[0] == value("h", [2, 4])
        np.testing.assert_array_equal(run(tmp_path / "f.onnx", {"x": X})["a"], run(path, {"x": X})["a"])


def test_fix_sizes_in_expressions(call, tmp_path):
    graph = helper.make_graph([helper.make_node("Concat", ["x", "y"], ["z"], axis=0)], "sums",
                              [value("x", ["n"]), value("y", ["2*n + 1"])], [value("z", ["3*n + 1"])])
    call("fix", save(tmp_path / "m.onnx", graph), "n=4", "-o", tmp_path / "f.onnx")
    fixed = onnx.load(tmp_path / "f.onnx")
    assert fixed.graph.input[1] == value("y", [9]) and fixed.graph.output[0] == value("z", [13])


@pytest.mark.parametrize("arguments, code, text", [
    (["batsch=2"], BROKEN, "did you mean 'batch'?"),
    (["y=2x3"], BROKEN, "the model has no input 'y'"),
    (["x=2x5"], BROKEN, "it is to be [2, 5], the model declares [batch, 3]"),
    (["x=2x3x1"], BROKEN, "it is to be [2, 3, 1]"),
    (["x=2x3", "batch=4"], BROKEN, "the dimension 'batch' would be 4 and 2"),
    (["x=axb"], BAD_USAGE, "is not a size"),
])
def test_fix_errors(call, tmp_path, arguments, code, text):
    assert text in call("fix", two_heads(tmp_path / "m.onnx"), *arguments, "-o", tmp_path / "f.onnx", code=code).stderr
    assert not (tmp_path / "f.onnx").exists()


def test_fix_finds_contradictions_in_the_graph(call, tmp_path):
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "y"], ["z"])], "product",
                              [value("x", ["n", "k"]), value("y", ["l", "m"])], [value("z", ["n", "m"])])
    error = call("fix", save(tmp_path / "m.onnx", graph), "k=3", "l=4", "-o", tmp_path / "f.onnx", code=BROKEN).stderr
    assert "MatMul" in error and not (tmp_path / "f.onnx").exists()


@pytest.mark.parametrize("command", [["extract", "--outputs", "y"], ["prune"], ["rename", "x=y"], ["fix", "n=1"],
                                     ["dynamic", "--dim", "0=m"], ["convert", "--dtype", "fp16"]])
def test_broken_models_are_refused(call, tmp_path, command):
    name, *arguments = command
    (tmp_path / "m.onnx").write_bytes(b"\x08\x08\x3a\xff\xff\x01 is cut off")
    call(name, tmp_path / "m.onnx", *arguments, "-o", tmp_path / "o.onnx", code=BROKEN)
    cycle = helper.make_graph([helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
                               helper.make_node("Relu", ["x"], ["z"])], "cycle", [value("x", ["n"]), value("two", [2])], [value("b", ["n"])])
    onnx.save(helper.make_model(cycle), tmp_path / "m.onnx")
    if name not in ("extract", "rename"):
        call(name, tmp_path / "m.onnx", *arguments, "-o", tmp_path / "o.onnx", code=BROKEN)
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.skipif(not ALL, reason="writes 2.5 GB; TENON_ALL=1 runs it")
def test_more_than_2_gb(call, tmp_path):
    rows = 320_000
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[rows, 2048], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "w.data"), ("offset", "0"), ("length", str(rows * 2048 * 4))):
        tensor.external_data.add(key=key, value=text)
    with open(tmp_path / "w.data", "wb") as file:
        file.truncate(rows * 2048 * 4)
    nodes = [helper.make_node("Gather", ["w", "i"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    graph = helper.make_graph(nodes, "large", [value("i", ["n"], INT64)], [value("y", ["n", 2048])], [tensor])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    call("rename", tmp_path / "m.onnx", "i=index", "-o", tmp_path / "r.onnx")
    assert (tmp_path / "r.onnx.data").stat().st_size == rows * 2048 * 4
    (tmp_path / "r.onnx.data").unlink()
    call("extract", tmp_path / "m.onnx", "--inputs", "r", "--outputs", "y", "-o", tmp_path / "e.onnx")
    assert (tmp_path / "e.onnx").stat().st_size < 1000
    assert "2 GB" in call("fix", tmp_path / "m.onnx", "n=2", "--external-data", "none", "-o", tmp_path / "f.onnx", code=BROKEN).stderr
    call("strip", tmp_path / "m.onnx", "-o", tmp_path / "s.onnx")
    call("restore", tmp_path / "s.onnx", "-o", tmp_path / "back.onnx")
    assert (tmp_path / "back.onnx.data").stat().st_size == rows * 2048 * 4
