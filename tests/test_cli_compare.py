"""`tenon compare`, `bisect` and `reduce`: where results begin to differ, and what is to blame."""
import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tenon as package

F = TensorProto.FLOAT


def call(tenon, *arguments):
    return subprocess.run([tenon, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def as_json(run):
    assert run.stdout.startswith("{"), run.stderr
    return json.loads(run.stdout)


def small_cnn(path, bias=0.0, prefix=""):
    """Conv, BatchNormalization, Relu, twice, and a MatMul: what the optimiser fuses and puts into blocks."""
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for i in range(2):
        channels = 3 if i == 0 else 16
        for name, value in (("w", rng.normal(size=(16, channels, 3, 3)) * 0.2), ("scale", rng.random(16) + 0.5), ("b", rng.normal(size=16)),
                            ("mean", rng.normal(size=16)), ("var", rng.random(16) + 0.5)):
            weights.append(numpy_helper.from_array(value.astype(np.float32), f"{name}{i}"))
        nodes += [helper.make_node("Conv", [x, f"w{i}"], [f"{prefix}c{i}"], name=f"conv{i}", pads=[1, 1, 1, 1]),
                  helper.make_node("BatchNormalization", [f"{prefix}c{i}", f"scale{i}", f"b{i}", f"mean{i}", f"var{i}"], [f"{prefix}n{i}"], name=f"norm{i}"),
                  helper.make_node("Relu", [f"{prefix}n{i}"], [f"{prefix}r{i}"], name=f"relu{i}")]
        x = f"{prefix}r{i}"
    weights += [numpy_helper.from_array(np.float32(bias), "bias")]
    nodes += [helper.make_node("Add", [x, "bias"], [f"{prefix}shifted"], name="shift"),
              helper.make_node("GlobalAveragePool", [f"{prefix}shifted"], ["y"], name="pool")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", F, ["batch", 3, 16, 16])],
                              [helper.make_tensor_value_info("y", F, ["batch", 16, 1, 1])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_one_model_at_two_levels(tenon, tmp_path):
    run = call(tenon, "compare", small_cnn(tmp_path / "m.onnx"))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "expected: " in run.stdout and "level none" in run.stdout and "level all" in run.stdout
    assert "all within the tolerance" in run.stdout
    found = as_json(call(tenon, "compare", tmp_path / "m.onnx", "--json"))
    names = {tensor["name"] for tensor in found["tensors"]}
    assert {"r0", "r1", "y"} <= names  # what is fused has no partner: c0, n0
    assert "c0" in found["only_expected"]
    assert all(tensor["ok"] for tensor in found["tensors"]) and found["ok"] and found["random_inputs"] == ["x"]


def test_two_models(tenon, tmp_path):
    first, second = small_cnn(tmp_path / "a.onnx"), small_cnn(tmp_path / "b.onnx", bias=1.0)
    run = call(tenon, "compare", first, second, "--level", "none")
    assert run.returncode == 1
    assert "first that differs: 'shifted'" in run.stdout and "Add 'shift'" in run.stdout
    found = as_json(call(tenon, "compare", first, second, "--level", "none", "--json"))
    assert found["first"] == "shifted" and [t["name"] for t in found["tensors"] if not t["ok"]] == ["shifted", "y"]
    assert as_json(call(tenon, "compare", first, second, "--level", "none", "--json", "--only", "r*"))["ok"]
    assert as_json(call(tenon, "compare", first, second, "--level", "none", "--json", "--tolerance", "shifted=10", "--tolerance", "y=10"))["ok"]


def test_names_that_differ(tenon, tmp_path):
    first, second = small_cnn(tmp_path / "a.onnx"), small_cnn(tmp_path / "b.onnx", prefix="other_")
    found = as_json(call(tenon, "compare", first, second, "--level", "none", "--json"))
    assert found["ok"] and len(found["tensors"]) == 8
    assert sum(tensor["match"] == "position" for tensor in found["tensors"]) == 7
    assert {(t["expected_name"], t["actual_name"]) for t in found["tensors"]} >= {("c0", "other_c0"), ("shifted", "other_shifted")}


def test_against_onnxruntime(tenon, tmp_path):
    model = small_cnn(tmp_path / "m.onnx")
    run = call(tenon, "compare", model, "--against", "onnxruntime", "--python", sys.executable, "--json", "--dim", "batch=2")
    found = as_json(run)
    assert found["ok"] and found["expected"] == "onnxruntime"
    assert {"r0", "r1", "y"} <= {tensor["name"] for tensor in found["tensors"]}
    run = call(tenon, "compare", model, "--against", "onnxruntime", "--python", tmp_path / "nothing")
    assert run.returncode == 4 and "cannot be run" in run.stderr


def test_against_saved_tensors(tenon, tmp_path):
    model = small_cnn(tmp_path / "m.onnx")
    x = np.random.default_rng(1).random((1, 3, 16, 16), np.float32)
    np.save(tmp_path / "x.npy", x)
    y = package.load(model, level="none").run({"x": x})["y"]
    np.savez(tmp_path / "right.npz", y=y)
    np.savez(tmp_path / "wrong.npz", y=y + 1)
    assert call(tenon, "compare", model, "--against", tmp_path / "right.npz", "--input", f"x={tmp_path / 'x.npy'}").returncode == 0
    assert call(tenon, "compare", model, "--against", tmp_path / "wrong.npz", "--input", f"x={tmp_path / 'x.npy'}").returncode == 1
    case = tmp_path / "case" / "test_data_set_0"
    case.mkdir(parents=True)
    (case / "input_0.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())
    (case / "output_0.pb").write_bytes(numpy_helper.from_array(y, "y").SerializeToString())
    assert call(tenon, "compare", model, "--against", tmp_path / "case").returncode == 0
    folder = tmp_path / "folder"
    folder.mkdir()
    np.save(folder / "y.npy", y)
    assert call(tenon, "compare", model, "--against", folder, "--input", f"x={tmp_path / 'x.npy'}").returncode == 0
    # What a run dumps is as the model has it, also where kernels hold images in blocks of channels.
    assert call(tenon, "run", model, "--input", f"x={tmp_path / 'x.npy'}", "--dump", tmp_path / "dump").returncode == 0
    assert np.load(tmp_path / "dump" / "r0.npy").shape == (1, 16, 16, 16)
    run = call(tenon, "compare", model, "--level", "none", "--against", tmp_path / "dump", "--input", f"x={tmp_path / 'x.npy'}", "--json")
    found = as_json(run)
    assert run.returncode == 0 and {"r0", "r1", "y"} <= {tensor["name"] for tensor in found["tensors"]}
    run = call(tenon, "compare", model, "--against", tmp_path / "none.npz")
    assert run.returncode == 4 and "is not there" in run.stderr


def test_measures(tenon, tmp_path):
    model = small_cnn(tmp_path / "m.onnx")
    for measure in ("max", "mean", "median", "quantile"):
        assert call(tenon, "compare", model, "--measure", measure).returncode == 0
    run = call(tenon, "compare", model, "--measure", "medium")
    assert run.returncode == 2 and "did you mean 'median'?" in run.stderr


def test_usage(tenon, tmp_path):
    model = small_cnn(tmp_path / "m.onnx")
    run = call(tenon, "compare", model, model, "--against", "onnxruntime")
    assert run.returncode == 2 and "--against takes the place of a second model" in run.stderr
    assert call(tenon, "compare", tmp_path / "missing.onnx").returncode == 4


def test_inputs_of_two_models_must_fit(tenon, tmp_path):
    first = small_cnn(tmp_path / "a.onnx")
    graph = helper.make_graph([helper.make_node("Add", ["p", "q"], ["y"])], "g", [helper.make_tensor_value_info(n, F, [2]) for n in "pq"],
                              [helper.make_tensor_value_info("y", F, [2])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "b.onnx")
    run = call(tenon, "compare", first, tmp_path / "b.onnx")
    assert run.returncode == 2 and "'p', 'q'" in run.stderr


def test_bisect_says_that_all_is_well(tenon, tmp_path):
    run = call(tenon, "bisect", small_cnn(tmp_path / "m.onnx"))
    assert run.returncode == 0 and "nothing to find" in run.stdout


def test_bisect_finds_the_rewrite(tenon, tmp_path):
    """Any rewrite that rounds breaks a tolerance of nothing."""
    run = call(tenon, "bisect", small_cnn(tmp_path / "m.onnx"), "--rtol", "0", "--atol", "0", "--json")
    assert run.returncode == 1, run.stderr
    found = as_json(run)
    assert found["outcome"] == "found" and found["before"]["within"] and not found["after"]["within"]
    passes = {p.name: p.exact for p in package.optimization_passes()}
    assert not passes[found["rewrite"]["pass"]]
    text = call(tenon, "bisect", tmp_path / "m.onnx", "--rtol", "0", "--atol", "0").stdout
    assert f"rewrite {found['number']} of {found['rewrites']} breaks it: pass '{found['rewrite']['pass']}'" in text


def test_bisect_dtype(tenon, tmp_path):
    run = call(tenon, "bisect", small_cnn(tmp_path / "m.onnx"), "--dtype", "fp16", "--rtol", "0.1", "--json")
    assert run.returncode == 0 and as_json(run)["outcome"] == "holds"
    run = call(tenon, "bisect", tmp_path / "m.onnx", "--dtype", "fp16", "--rtol", "1e-5", "--json")
    found = as_json(run)
    assert run.returncode == 1 and found["outcome"] == "found" and 0 < len(found["keep"]) <= found["candidates"]
    assert call(tenon, "bisect", tmp_path / "m.onnx", "--dtype", "int3").returncode == 2


def test_bisect_of_what_onnxruntime_quantized(tenon, tmp_path):
    from onnxruntime.quantization import CalibrationDataReader, quantize_static
    model = small_cnn(tmp_path / "m.onnx")
    onnx.save(onnx.shape_inference.infer_shapes(onnx.load(model)), model)
    x = np.random.default_rng(1).random((1, 3, 16, 16), np.float32)
    np.save(tmp_path / "x.npy", x)

    class Samples(CalibrationDataReader):
        left = [{"x": x}, {"x": 100 * x}]  # the second makes every scale too coarse

        def get_next(self):
            return self.left.pop() if self.left else None

    quantize_static(model, tmp_path / "q.onnx", Samples())
    arguments = ["bisect", model, "--quantized", tmp_path / "q.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--rtol", "0.05", "--json"]
    run = call(tenon, *arguments, "-o", tmp_path / "mixed.onnx")
    found = as_json(run)
    assert run.returncode == 1 and found["outcome"] == "found" and not found["before"]["within"] and found["after"]["within"]
    assert 0 < len(found["keep"]) < found["candidates"]
    onnx.checker.check_model(tmp_path / "mixed.onnx", full_check=True)
    assert call(tenon, "compare", model, tmp_path / "mixed.onnx", "--outputs-only", "--rtol", "0.05", "--input", f"x={tmp_path / 'x.npy'}").returncode == 0
    found = package.bisect_nodes(model, quantized=tmp_path / "q.onnx", inputs={"x": x}, rtol=0.05)
    assert found.outcome == "found" and found.runs < 20 and package.compare(model, found.model, inputs={"x": x}, outputs_only=True, rtol=0.05).ok
    run = call(tenon, "bisect", model, "--quantized", model)
    assert run.returncode == 3 and "DequantizeLinear" in run.stderr
    assert call(tenon, "bisect", model, "-o", tmp_path / "o.onnx").returncode == 2


def test_reduce(tenon, tmp_path):
    model = small_cnn(tmp_path / "m.onnx", bias=1.0)
    check = f"{tenon} inspect {{model}} --json | grep -q GlobalAveragePool && exit 7"
    run = call(tenon, "reduce", model, "--check", check, "-o", tmp_path / "small")
    assert run.returncode == 0, run.stderr
    assert "1 node of 8 left" in run.stdout and "still ends with 7" in run.stdout
    small = onnx.load(tmp_path / "small" / "model.onnx")
    onnx.checker.check_model(small, full_check=True)
    assert [node.op_type for node in small.graph.node] == ["GlobalAveragePool"]
    assert [i.name for i in small.graph.input] == ["shifted"] and (tmp_path / "small" / "input_shifted.npy").exists()
    assert not (tmp_path / "small.trial").exists()
    run = call(tenon, "reduce", model, "--check", check, "-o", tmp_path / "small")
    assert run.returncode == 2 and "--force" in run.stderr
    run = call(tenon, "reduce", model, "--check", "true", "-o", tmp_path / "other")
    assert run.returncode == 2 and "does not show" in run.stderr


def test_python(tmp_path):
    first, second = small_cnn(tmp_path / "a.onnx"), small_cnn(tmp_path / "b.onnx", bias=1.0)
    assert package.compare(first).ok
    found = package.compare(first, second, level="none")
    assert not found.ok and found.first.name == "shifted" and found.first.statistics.max_absolute == pytest.approx(1, abs=1e-5)
    x = np.zeros((1, 3, 16, 16), np.float32)
    y = package.load(first).run({"x": x})["y"]
    assert package.compare(first, against={"y": y}, inputs={"x": x}).ok
    assert package.compare(first, against="onnxruntime").ok
    assert package.bisect(first).outcome == "holds"
    reduced = package.reduce(second, lambda model, inputs: b"GlobalAveragePool" in model.to_bytes())
    assert reduced.nodes_after == 1 and list(reduced.inputs) == ["shifted"]


def test_memory_stays_near_that_of_running(tenon, tmp_path):
    """All layers of a model whose intermediate values are much larger than its arena."""
    nodes = [helper.make_node("Sin" if i % 2 else "Cos", [f"x{i}"], [f"x{i + 1}"]) for i in range(40)]
    shape = [4, 1024, 1024]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x0", F, shape)], [helper.make_tensor_value_info("x40", F, shape)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")

    def peak(*arguments):
        code = ("import resource, subprocess, sys; r = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(r)")
        run = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
        return int(run.stdout)

    alone = peak(tenon, "run", tmp_path / "m.onnx", "--level", "none")
    compared = peak(tenon, "compare", tmp_path / "m.onnx", "--level", "none,exact")
    assert compared < 2 * alone, f"{compared} kB, running takes {alone} kB"
