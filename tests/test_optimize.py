"""`tenon optimize`: what it writes is a standard model of the input's opset that onnxruntime runs with equal outputs."""
import json
import os
import subprocess

import conformance
import model_cases
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_models import SMALL, difference

ALL = os.environ.get("TENON_ALL") == "1"


def optimize(tenon, model, *options):
    run = subprocess.run([tenon, "optimize", model, *options], capture_output=True, text=True, timeout=600)
    return run


def run_onnxruntime(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


@pytest.mark.parametrize("name", model_cases.names() if ALL else SMALL)
def test_onnxruntime_runs_what_is_written(tenon, tmp_path, name):
    path = model_cases.make(name)
    before = onnx.load(path, load_external_data=False)
    run = optimize(tenon, path, "-o", tmp_path / "optimized.onnx")
    assert run.returncode == 0, run.stdout + run.stderr
    after = onnx.load(tmp_path / "optimized.onnx", load_external_data=False)
    assert after.ir_version == before.ir_version
    assert {o.domain: o.version for o in after.opset_import} == {o.domain: o.version for o in before.opset_import}
    onnx.checker.check_model(str(tmp_path / "optimized.onnx"))
    again = json.loads(optimize(tenon, tmp_path / "optimized.onnx", "-o", tmp_path / "again.onnx", "--json").stdout)
    assert again["nodes_after"] == again["nodes_before"]
    problems = []
    inputs = model_cases.inputs_for(name, before.graph)
    expected = run_onnxruntime(path, inputs)
    actual = run_onnxruntime(tmp_path / "optimized.onnx", inputs)
    # Two scores that differ in the last bit may change places; that such a model runs is what can be asked for.
    selects = model_cases.SELECTING & {node.op_type for node in before.graph.node}
    for output, value in ({} if selects else expected).items():
        if problem := difference(actual[output], value):
            problems.append(f"{output} {problem}")
    assert not problems, "\n".join(problems)


def run_tenon(tenon, model, inputs, level, folder):
    """{file name: bytes} of the outputs."""
    folder.mkdir()
    command = [tenon, "run", model, "--level", level, "--output-dir", folder / "outputs"]
    for i, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"{i}.npy", value)
        command += ["--input", f"{name}={folder / f'{i}.npy'}"]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return {path.name: path.read_bytes() for path in (folder / "outputs").glob("*.npy")}


@pytest.mark.parametrize("name", model_cases.names() if ALL else SMALL)
def test_level_exact_changes_no_bit(tenon, tmp_path, name):
    path = model_cases.make(name)
    inputs = model_cases.inputs_for(name, onnx.load(path, load_external_data=False).graph)
    outputs = [run_tenon(tenon, path, inputs, level, tmp_path / level) for level in ("none", "exact")]
    assert outputs[0] == outputs[1]


def checker_says(path):
    try:
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        return str(error)
    return ""


# Where the suite has operators whose old meaning Tenon cannot write.
NO_WAY_BACK = ["before version 7 only the last axes of the second input could be left out",
               "PRelu has no expression in opset 6", "Scan has no expression in opset 8",
               "ScatterElements came with opset 11", "Resize came with opset 10"]


@pytest.mark.skipif(not ALL, reason="takes a minute; `make test-levels` runs it")
@pytest.mark.parametrize("level", ["basic", "all"])
def test_suite_passes_as_it_is_written(tenon, tmp_path, level):
    """Every case of the ONNX suite, with its model as `tenon optimize` writes it. For some of the oldest opsets it is told
    that there is no way back."""
    suite, problems = conformance.write_suite(), []
    cases = conformance.all_cases(suite)
    for case in cases:
        folder = tmp_path / case
        folder.mkdir(parents=True)
        run = optimize(tenon, suite / case / "model.onnx", "-o", folder / "model.onnx", "--level", level)
        if run.returncode == 3 and any(reason in run.stderr for reason in NO_WAY_BACK):
            continue
        if run.returncode:
            problems.append(f"{case}: {run.stderr}")
            continue
        if message := checker_says(folder / "model.onnx"):
            if not checker_says(suite / case / "model.onnx"):
                problems.append(f"{case}: {message}")
        for path in (suite / case).iterdir():
            if path.name != "model.onnx":
                (folder / path.name).symlink_to(path)
    results = conformance.run_cases(str(tenon), tmp_path, [case for case in cases if (tmp_path / case / "model.onnx").exists()],
                                    ("--level", "none"))
    problems += [f"{name}: {reason}" for name, (result, reason) in results.items() if result != "passed"]
    assert not problems, "\n".join([f"{len(problems)} of {len(cases)}", *problems])


def save(path, nodes, inputs, outputs, initializers=(), opset=17, ir_version=8):
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def floats(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def constant(name, *numbers, dtype=np.float32, shape=None):
    return numpy_helper.from_array(np.array(numbers, dtype).reshape(shape or (len(numbers),)), name)


def small_network(path, opset):
    """Operators whose lists moved between attributes and inputs, in the form that an opset has."""
    rng = np.random.default_rng(0)
    tensors = [numpy_helper.from_array(rng.normal(size=size).astype(np.float32), name)
               for name, size in {"w": (4, 3, 3, 3), "scale": 4, "shift": 4, "mean": 4}.items()]
    tensors.append(constant("variance", 1, 2, 3, 4))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
    ]

    def add(op, source, target, lists, first_input_version, **attributes):
        """A node with integer lists that are attributes before a version and inputs from then on."""
        if opset < first_input_version:
            nodes.append(helper.make_node(op, [source], [target], **lists, **attributes))
            return
        names = []
        for key, numbers in lists.items():
            names.append(f"{target}_{key}")
            tensors.append(constant(names[-1], *numbers, dtype=np.int64))
        nodes.append(helper.make_node(op, [source, *names], [target], **attributes))

    if opset < 11:
        nodes.append(helper.make_node("Clip", ["n"], ["clipped"], min=-1.0, max=2.0))
    else:
        tensors.append(constant("low", -1, shape=()))
        tensors.append(constant("high", 2, shape=()))
        nodes.append(helper.make_node("Clip", ["n", "low", "high"], ["clipped"]))
    nodes.append(helper.make_node("Dropout", ["clipped"], ["dropped"]))
    add("ReduceMean", "dropped", "means", {"axes": [2]}, 18, keepdims=0)
    add("Unsqueeze", "means", "wide", {"axes": [1]}, 13)
    add("Pad", "wide", "padded", {"pads": [0, 0, 0, 1, 0, 0, 0, 1]}, 11)
    add("Slice", "padded", "sliced", {"starts": [1], "ends": [4], "axes": [2]}, 10)
    add("Squeeze", "sliced", "narrow", {"axes": [1]}, 13)
    add("ReduceSum", "narrow", "sums", {"axes": [1]}, 13, keepdims=1)
    nodes.append(helper.make_node("Add", ["narrow", "sums"], ["added"]))
    nodes.append(helper.make_node("Identity", ["added"], ["same"]))
    nodes.append(helper.make_node("Softmax", ["same"], ["y"], axis=2))
    return save(path, nodes, [floats("x", "batch", 3, 8, 8)], [floats("y", "batch", 3, 10)], tensors, opset,
                {9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 17: 8, 18: 8, 21: 10}[opset])


@pytest.mark.parametrize("level", ["exact", "basic", "all"])
@pytest.mark.parametrize("opset", [9, 10, 11, 12, 13, 17, 18, 21])
def test_opset_stays(tenon, tmp_path, opset, level):
    path = small_network(tmp_path / "model.onnx", opset)
    run = optimize(tenon, path, "-o", tmp_path / "optimized.onnx", "--level", level)
    assert run.returncode == 0, run.stdout + run.stderr
    model = onnx.load(tmp_path / "optimized.onnx")
    onnx.checker.check_model(model)
    assert {o.domain: o.version for o in model.opset_import if o.domain != "tenon"} == {"": opset}
    x = np.random.default_rng(1).normal(size=(2, 3, 8, 8)).astype(np.float32)
    expected, actual = (run_onnxruntime(p, {"x": x})["y"] for p in (path, tmp_path / "optimized.onnx"))
    assert difference(actual, expected) is None
    assert len(model.graph.node) < len(onnx.load(path).graph.node)


def test_reports_and_keeps(tenon, tmp_path):
    path = small_network(tmp_path / "model.onnx", 17)
    run = optimize(tenon, path, "-o", tmp_path / "optimized.onnx", "--keep", "n", "--verify", "--json")
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout)
    assert report["failures"] == []
    assert report["nodes_after"] < report["nodes_before"]
    assert {"batch-norm", "identity"} <= {rewrite["pass"] for rewrite in report["rewrites"]}
    assert "n" in {name for node in onnx.load(tmp_path / "optimized.onnx").graph.node for name in node.output}
    run = optimize(tenon, path, "-o", tmp_path / "optimized.onnx", "--disable", "batch-norm")
    assert "batch-norm" not in run.stdout and "  identity" in run.stdout
    text = optimize(tenon, path, "--verify").stdout
    assert text.endswith("verify: every pass keeps the results\n")


def test_verify_names_the_pass_and_the_node(tenon, tmp_path):
    """Weights so large that rounding them differently shows."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="stem"), helper.make_node("Mul", ["c", "s"], ["y"])]
    path = save(tmp_path / "model.onnx", nodes, [floats("x", 1, 1, 4)], [floats("y", 1, 1, 4)],
                [constant("w", 3e38, shape=(1, 1, 1)), constant("s", 1e-38, shape=(1,))])
    np.save(tmp_path / "x.npy", np.full((1, 1, 4), 100, np.float32))
    run = optimize(tenon, path, "--verify", "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "optimized.onnx")
    assert run.returncode == 1
    assert "verify: pass 'scale-weights' changes results" in run.stdout
    assert "Conv 'stem' (node 0)" in run.stdout
    assert not (tmp_path / "optimized.onnx").exists()


def test_refuses(tenon, tmp_path):
    path = small_network(tmp_path / "model.onnx", 17)
    for options, text in [
        (["-o", path], "is the model itself"),
        ([], "nothing to do"),
        (["-o", tmp_path / "o.onnx", "--level", "bsic"], "did you mean 'basic'?"),
        (["-o", tmp_path / "o.onnx", "--disable", "identiy"], "did you mean 'identity'?"),
        (["-o", tmp_path / "o.onnx", "--keep", "nn"], "the model has no such value"),
    ]:
        run = optimize(tenon, path, *options)
        assert run.returncode != 0 and text in run.stderr, run.stderr
    assert optimize(tenon, path, "-o", path, "--force").returncode == 0


def newer_than_stamped(path, ir_version, *nodes):
    """A model that imports opset 17 and has operators that came later: Tenon goes by the content."""
    graph = helper.make_graph(list(nodes), "test", [floats("x", 2, 3), floats("z", 2, 3)], [floats("y", 2, 3)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir_version), path)
    return path


@pytest.mark.parametrize("ir_version", [7, 8, 10])
def test_writes_newer_operators_as_functions(tenon, tmp_path, ir_version):
    path = newer_than_stamped(tmp_path / "model.onnx", ir_version, helper.make_node("Gelu", ["x"], ["a"], name="first"),
                              helper.make_node("Mul", ["a", "z"], ["b"]),
                              helper.make_node("Gelu", ["b"], ["c"], name="second"),
                              helper.make_node("Gelu", ["c"], ["y"], name="third", approximate="tanh"))
    run = optimize(tenon, path, "-o", tmp_path / "o.onnx")
    assert run.returncode == 0, run.stderr
    model = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(model)
    assert len(model.functions) == (0 if ir_version < 8 else 2)
    assert [node.op_type for node in model.graph.node].count("Gelu") == 0
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 2, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "z.npy", z)
    subprocess.run([tenon, "run", path, "--input", f"x={tmp_path / 'x.npy'}", "--input", f"z={tmp_path / 'z.npy'}",
                    "--output-dir", tmp_path / "out"], check=True, capture_output=True)
    actual = run_onnxruntime(tmp_path / "o.onnx", {"x": x, "z": z})["y"]
    assert difference(actual, np.load(tmp_path / "out" / "y.npy")) is None


@pytest.mark.parametrize("name, fused", [
    ("llama_tiny_gqa_kv", {"Attention", "RotaryEmbedding", "FusedMatMul"}),
    ("llama_tiny_gqa_kv_dynamo", {"Attention", "RotaryEmbedding", "FusedMatMul"}),
    ("minilm_l6", {"Attention", "FusedMatMul"}),
    ("swin_t", {"Attention", "FusedMatMul", "SkipLayerNormalization"}),
])
def test_writes_fusions_as_functions(tenon, tmp_path, name, fused):
    path, written = model_cases.make(name), tmp_path / "optimized.onnx"
    run = optimize(tenon, path, "-o", written, "--level", "extended")
    assert run.returncode == 0, run.stdout + run.stderr
    model = onnx.load(written)
    onnx.checker.check_model(model)
    assert fused <= {function.name.split("_")[0] for function in model.functions}
    inputs = model_cases.inputs_for(name, onnx.load(path, load_external_data=False).graph)
    actual = run_onnxruntime(written, inputs)
    for output, value in run_onnxruntime(path, inputs).items():
        assert difference(actual[output], value) is None
    # What was written as functions is found again.
    options = ["-o", tmp_path / "again.onnx", "--level", "extended", "--json"]
    first, again = (json.loads(optimize(tenon, m, *options).stdout)["rewrites"] for m in (path, written))
    for fusion in ("attention", "matmul-epilogue", "skip-layer-norm"):
        counts = [sum(rewrite["pass"] == fusion for rewrite in rewrites) for rewrites in (first, again)]
        assert counts[0] == counts[1], fusion


def test_lists_every_blocker(tenon, tmp_path):
    path = newer_than_stamped(tmp_path / "model.onnx", 8,
                              helper.make_node("Cast", ["x"], ["a"], to=TensorProto.FLOAT8E4M3FN, saturate=0, name="short"),
                              helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT),
                              helper.make_node("Cast", ["z"], ["c"], to=TensorProto.FLOAT8E5M2, saturate=0, name="shorter"),
                              helper.make_node("Cast", ["c"], ["d"], to=TensorProto.FLOAT),
                              helper.make_node("Add", ["b", "d"], ["y"]))
    run = optimize(tenon, path, "-o", tmp_path / "o.onnx")
    assert run.returncode == 3
    assert "2 nodes have no expression in the opset of the model:" in run.stderr
    for node, missing in (("Cast 'short' (node 0)", "float8e4m3fn"), ("Cast 'shorter' (node 2)", "float8e5m2")):
        assert f"{node}: Cast has no expression in opset 17: opset 17 does not have the type {missing}" in run.stderr
    assert not (tmp_path / "o.onnx").exists()


def test_lists_passes(tenon):
    listed = json.loads(optimize(tenon, "--list-passes", "--json").stdout)
    passes = listed["passes"]
    assert {"name", "level", "exact", "does"} == set(passes[0])
    text = optimize(tenon, "--list-passes").stdout
    assert all(p["name"] in text and p["does"] in text for p in passes)
    assert "functions" in listed["always"][0] and all(line in text for line in listed["always"])


@pytest.mark.parametrize("opset, ir_version", [(9, 3), (13, 8), (17, 8)])
def test_blocked_layout_where_a_file_can_hold_it(tenon, tmp_path, opset, ir_version):
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.random((64, 64, 3, 3), np.float32) - 0.5, f"w{i}") for i in range(3)]
    nodes = [helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"x{i + 1}"], pads=[1, 1, 1, 1]) for i in range(3)]
    image = ["batch", 64, 56, 56]
    inputs = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, image)]
    if ir_version < 4:
        inputs += [helper.make_tensor_value_info(w.name, TensorProto.FLOAT, list(w.dims)) for w in weights]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("x3", TensorProto.FLOAT, image)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    onnx.save(model, tmp_path / "m.onnx")
    run = optimize(tenon, tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--level", "all")
    assert run.returncode == 0, run.stderr
    left_out = "without the passes blocked-layout and winograd" in run.stderr
    assert left_out == (opset < 15)
    assert bool(onnx.load(tmp_path / "o.onnx").functions) != left_out
    x = {"x0": rng.random((1, 64, 56, 56), np.float32)}
    expected, actual = (run_onnxruntime(tmp_path / name, x)["x3"] for name in ("m.onnx", "o.onnx"))
    assert not difference(actual, expected)


def test_what_it_writes_for_ir_version_3_is_read_again(tenon, tmp_path):
    """Initializers are inputs there. A Softmax of old, over all axes from the second on, is flattened and shaped back."""
    graph = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=3), tmp_path / "m.onnx")
    for source, target in (("m", "o"), ("o", "p")):
        run = optimize(tenon, tmp_path / f"{source}.onnx", "-o", tmp_path / f"{target}.onnx", "--level", "basic")
        assert run.returncode == 0, run.stderr
    x = {"x": np.random.default_rng(0).random((2, 3, 4), np.float32)}
    expected, actual = (run_onnxruntime(tmp_path / name, x)["y"] for name in ("m.onnx", "p.onnx"))
    assert not difference(actual, expected)


@pytest.mark.parametrize("opset, ir_version", [(9, 3), (13, 8), (17, 8)])
def test_batch_normalization_without_weights_to_go_into(tenon, tmp_path, opset, ir_version):
    rng = np.random.default_rng(0)
    names = ["scale", "shift", "mean", "variance"]
    numbers = [numpy_helper.from_array(rng.random(5, np.float32) + 0.5, name) for name in names]
    nodes = [helper.make_node("BatchNormalization", ["x", *names], ["n"]), helper.make_node("Relu", ["n"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 5, 6, 7])]
    if ir_version < 4:
        inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, [5]) for name in names]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 5, 6, 7])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, numbers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    onnx.save(model, tmp_path / "m.onnx")
    run = optimize(tenon, tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--level", "all")
    assert run.returncode == 0, run.stderr
    x = {"x": rng.random((2, 5, 6, 7), np.float32)}
    expected, actual = (run_onnxruntime(tmp_path / name, x)["y"] for name in ("m.onnx", "o.onnx"))
    assert not difference(actual, expected)
