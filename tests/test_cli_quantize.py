"""`tenon quantize`: where its data comes from, what it says, and graphs that are not plain."""
import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import BAD_USAGE, BROKEN, MISSING
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def floats(name, *shape, seed=0):
    return numpy_helper.from_array(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), name)


def save(path, nodes, inputs, outputs, initializers=(), opset=17, functions=(), domains=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def network(path, opset=17):
    """An image through two convolutions and a Gemm."""
    nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], name="first", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c1"], ["r1"], name="positive"),
             helper.make_node("Conv", ["r1", "w2"], ["c2"], name="second"), helper.make_node("GlobalAveragePool", ["c2"], ["a"], name="average"),
             helper.make_node("Flatten", ["a"], ["f"], name="flat"), helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="last", transB=1)]
    weights = [floats("w1", 16, 3, 3, 3), floats("b1", 16, seed=1), floats("w2", 32, 16, 3, 3, seed=2), floats("w3", 10, 32, seed=3), floats("b3", 10, seed=4)]
    return save(path, nodes, [value("x", [1, 3, 12, 12])], [value("y", [1, 10])], weights, opset)


def images(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 3, 12, 12)).astype(np.float32)


def quantize(call, path, *arguments, **options):
    out = path.with_name("quantized.onnx")
    report = json.loads(call("quantize", path, "-o", out, "--force", "--no-measure", "--json", *arguments, **options).stdout)
    onnx.checker.check_model(onnx.load(out), full_check=True)
    return out, report


def run(path, feeds):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def sqnr(actual, expected):
    return 10 * np.log10((expected ** 2).sum() / ((actual - expected) ** 2).sum())


def close(original, quantized, feeds, at_least=25):
    return sqnr(run(quantized, feeds), run(original, feeds)) > at_least


def operators(path):
    return {node.op_type for node in onnx.load(path).graph.node}


def test_data_in_files(call, tmp_path):
    path, data = network(tmp_path / "m.onnx"), images(6)
    (folder := tmp_path / "arrays").mkdir()
    (cases := tmp_path / "cases").mkdir()
    np.savez(tmp_path / "many.npz", x=data)
    np.save(tmp_path / "many.npy", data[:, None])
    for i, image in enumerate(data):
        np.save(folder / f"{i}.npy", image[None])
        (case := cases / f"test_data_set_{i}").mkdir()
        (case / "input_0.pb").write_bytes(numpy_helper.from_array(image[None], "x").SerializeToString())
    expected = None
    for source in ("many.npz", "many.npy", "arrays", "cases"):
        out, report = quantize(call, path, "--calibration", tmp_path / source)
        assert report["samples"] == 6 and not report["warnings"], source
        expected = expected or report["ranges"]
        assert report["ranges"] == expected, source
        assert close(path, out, {"x": data[:1]})


def test_pictures(call, tmp_path):
    path = network(tmp_path / "m.onnx")
    (folder := tmp_path / "pictures").mkdir()
    for i in range(3):
        pixels = np.random.default_rng(i).integers(0, 256, (20, 30, 3), dtype=np.uint8)
        (folder / f"{i}.ppm").write_bytes(b"P6 30 20 255\n" + pixels.tobytes())
    _, report = quantize(call, path, "--calibration", folder, "--mean", "0.5", "--std", "0.25")
    (image,) = [entry for entry in report["ranges"] if entry["tensor"] == "x"]
    assert report["samples"] == 3 and -2 <= image["seen"][0] < -1 < 1 < image["seen"][1] <= 2


def test_random_data_is_said_loudly(call, tmp_path):
    run = call("quantize", network(tmp_path / "m.onnx"), "-o", tmp_path / "q.onnx", "--no-measure")
    assert "RANDOM NUMBERS" in run.stdout


@pytest.mark.parametrize("arguments, code, message", [
    (["--calibration", "nowhere"], MISSING, "nowhere"),
    (["--mode", "statik"], BAD_USAGE, "did you mean 'static'"),
    (["--max-loss", "lots"], BAD_USAGE, "--max-loss 0.5%"),
    (["--weights", "int4"], BAD_USAGE, "weight-only"),
    (["--keep-float", "nobody"], BROKEN, "no node and no operator 'nobody'"),
    (["--metric", "false"], BAD_USAGE, "`false`"),
])
def test_wrong_usage(call, tmp_path, arguments, code, message):
    run = call("quantize", network(tmp_path / "m.onnx"), "-o", tmp_path / "q.onnx", *arguments, code=code)
    assert message in run.stderr


def test_old_opsets_say_what_to_do(call, tmp_path):
    path = network(tmp_path / "m.onnx", opset=11)
    assert "tenon convert --opset 13" in call("quantize", path, "-o", tmp_path / "q.onnx", code=BROKEN).stderr
    out, _ = quantize(call, path, "--per-tensor", "--max-loss", "none")
    assert onnx.load(out).opset_import[0].version == 11 and close(path, out, {"x": images(1)}, 20)


def test_what_is_asked_for_stays_float(call, tmp_path):
    path = network(tmp_path / "m.onnx")
    _, report = quantize(call, path, "--keep-float", "first,Gemm")
    assert {node["node"].split("'")[1]: node["quantized"] for node in report["nodes"]} == {"first": False, "second": True, "last": False}
    _, report = quantize(call, path, "--only", "sec*")
    assert sum(node["quantized"] for node in report["nodes"]) == 1


def test_overrides(call, tmp_path):
    path, rules = network(tmp_path / "m.onnx"), tmp_path / "rules.json"
    rules.write_text(json.dumps({"x": {"low": -7, "high": 7}, "r1": {"type": "int8", "symmetric": True}}))
    _, report = quantize(call, path, "--overrides", rules)
    ranges = {entry["tensor"]: entry for entry in report["ranges"]}
    assert ranges["x"]["range"] == pytest.approx([-7, 7], abs=0.03) and ranges["r1"]["zero_point"] == 0


def test_budget_and_metric(call, tmp_path):
    path = network(tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", x=images(4))
    data = ["--calibration", tmp_path / "d.npz"]
    _, free = quantize(call, path, *data, "--max-loss", "none")
    _, tight = quantize(call, path, *data, "--max-loss", str(free["loss"] / 4))
    assert tight["loss"] <= free["loss"] / 4
    assert any("budget" in node["why_float"] for node in tight["nodes"])
    # A metric that only likes the first convolution in float.
    (judge := tmp_path / "judge.py").write_text(
        "import sys, onnx\nm = onnx.load(sys.argv[1])\nprint(0.9 if any(i.name.startswith('w1/codes') for i in m.graph.initializer) else 1.0)\n")
    _, judged = quantize(call, path, *data, "--metric", f"{sys.executable} {judge}", "--max-loss", "5%")
    assert judged["metric_before"] == judged["metric_after"] == 1.0
    assert [node["quantized"] for node in judged["nodes"]] == [False, True, True]


def test_times_are_taken(call, tmp_path):
    out = tmp_path / "q.onnx"
    report = json.loads(call("quantize", network(tmp_path / "m.onnx"), "-o", out, "--json").stdout)
    assert report["seconds_before"] > 0 and report["seconds_after"] > 0


def test_unlike_data_is_noticed(call, tmp_path):
    np.savez(tmp_path / "c.npz", x=images(4))
    np.savez(tmp_path / "e.npz", x=255 * np.abs(images(4)))
    _, report = quantize(call, network(tmp_path / "m.onnx"), "--calibration", tmp_path / "c.npz", "--evaluation", tmp_path / "e.npz", "--max-loss", "none")
    assert any("unlike" in warning for warning in report["warnings"])


def test_reports(call, tmp_path):
    path = network(tmp_path / "m.onnx")
    quantize(call, path, "--report", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "<h1>m.onnx, quantized</h1>" in page and "second" in page and "times smaller" in page
    quantize(call, path, "--report", tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["samples"] == 8


def test_weights_in_bodies_and_functions(call, tmp_path):
    branch = [helper.make_graph([helper.make_node("MatMul", ["h", weight], [f"{name}_y"], name=name)], name, [], [value(f"{name}_y", ["n", 4])])
              for name, weight in (("then", "w2"), ("else", "w3"))]
    body = helper.make_function("mine", "Layer", ["a", "b"], ["c"], [helper.make_node("MatMul", ["a", "b"], ["c"])], [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("Layer", ["x", "w1"], ["h"], name="call", domain="mine"),
             helper.make_node("If", ["which"], ["y"], name="choice", then_branch=branch[0], else_branch=branch[1])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", ["n", 16]), value("which", [], BOOL)], [value("y", ["n", 4])],
                [floats("w1", 16, 32), floats("w2", 32, 4, seed=1), floats("w3", 32, 4, seed=2)], functions=[body], domains=["mine"])
    (folder := tmp_path / "samples").mkdir()
    for i in range(6):
        np.savez(folder / f"{i}.npz", x=np.random.default_rng(i).standard_normal((8, 16)).astype(np.float32), which=np.array(i % 2 == 0))
    out, report = quantize(call, path, "--calibration", folder)
    assert sum(node["quantized"] for node in report["nodes"]) == 3
    x = np.random.default_rng(9).standard_normal((5, 16)).astype(np.float32)
    for which in (True, False):
        assert close(path, out, {"x": x, "which": np.array(which)})


@pytest.mark.parametrize("mode", ["static", "dynamic", "weight-only"])
def test_tied_embedding_is_stored_as_bytes(call, tmp_path, mode):
    nodes = [helper.make_node("Gather", ["table", "ids"], ["e"], name="embed"), helper.make_node("MatMul", ["e", "w"], ["h"], name="hidden"),
             helper.make_node("Relu", ["h"], ["r"], name="positive"), helper.make_node("Transpose", ["table"], ["t"], name="turn", perm=[1, 0]),
             helper.make_node("MatMul", ["r", "t"], ["y"], name="logits")]
    path = save(tmp_path / "m.onnx", nodes, [value("ids", ["n"], INT64)], [value("y", ["n", 1000])], [floats("table", 1000, 32), floats("w", 32, 32, seed=1)])
    (folder := tmp_path / "samples").mkdir()
    for i in range(4):
        np.save(folder / f"{i}.npy", np.random.default_rng(i).integers(0, 1000, 50))
    out, report = quantize(call, path, "--mode", mode, "--calibration", folder, "--weights", "int8", "--block-size", "0")
    assert close(path, out, {"ids": np.arange(20)})
    stored = {i.name: i for i in onnx.load(out).graph.initializer}
    assert all(np.prod(i.dims) < 20000 or i.data_type == TensorProto.INT8 for i in stored.values())
    assert report["bytes_after"] < (0.35 if mode == "static" else 0.6) * report["bytes_before"]


def test_embedding_alone(call, tmp_path):
    """Rows that are taken have the scale of their row."""
    nodes = [helper.make_node("Gather", ["table", "ids"], ["e"], name="embed"), helper.make_node("MatMul", ["e", "w"], ["y"], name="out")]
    table = np.random.default_rng(0).standard_normal((600, 32)).astype(np.float32) * np.logspace(-3, 3, 600, dtype=np.float32)[:, None]
    path = save(tmp_path / "m.onnx", nodes, [value("ids", ["n"], INT64)], [value("y", ["n", 8])], [numpy_helper.from_array(table, "table"), floats("w", 32, 8)])
    out, _ = quantize(call, path, "--mode", "weight-only", "--weights", "int8", "--block-size", "0", "--max-loss", "none")
    assert close(path, out, {"ids": np.array([3])}, 30) and close(path, out, {"ids": np.array([597])}, 30)


def test_same_weight_in_two_products_is_stored_once(call, tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="one"), helper.make_node("Tanh", ["h"], ["t"], name="bend"), helper.make_node("MatMul", ["t", "w"], ["y"], name="two")]
    path = save(tmp_path / "m.onnx", nodes, [value("x", ["n", 32])], [value("y", ["n", 32])], [floats("w", 32, 32)])
    out, report = quantize(call, path, "--shape", "x=8x32")
    assert sum(np.prod(i.dims) == 1024 for i in onnx.load(out).graph.initializer) == 1


def test_external_data(call, tmp_path):
    """Weights outside of the file, as those of models over 2 GB are."""
    model = onnx.load(network(tmp_path / "m.onnx"))
    onnx.save(model, tmp_path / "e.onnx", save_as_external_data=True, location="e.data", size_threshold=0)
    out, _ = quantize(call, tmp_path / "e.onnx", "--external-data", "all", "--external-from", "0")
    assert (tmp_path / "quantized.onnx.data").exists() and close(tmp_path / "m.onnx", out, {"x": images(1)})


def test_codes_in_place_of_qdq(call, tmp_path):
    path = network(tmp_path / "m.onnx")
    out, _ = quantize(call, path, "--format", "qoperator")
    assert {"QLinearConv", "QLinearGlobalAveragePool"} <= operators(out) and close(path, out, {"x": images(1)})


def test_gptq_beats_rounding(call, tmp_path):
    path = save(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"], name="only")], [value("x", ["n", 64])], [value("y", ["n", 48])],
                [floats("w", 64, 48)], opset=21)
    mix = np.random.default_rng(1).standard_normal((8, 64))
    x = (np.random.default_rng(2).standard_normal((256, 8)) @ mix + 0.1 * np.random.default_rng(3).standard_normal((256, 64))).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x)
    found = {}
    for method in ("round", "gptq"):
        out, _ = quantize(call, path, "--mode", "weight-only", "--calibration", tmp_path / "d.npz", "--max-loss", "none", "--weight-method", method)
        assert operators(out) == {"DequantizeLinear", "MatMul"}
        found[method] = sqnr(run(out, {"x": x}), run(path, {"x": x}))
    assert found["gptq"] > found["round"] + 3


MEMORY = """
import sys
import numpy as np
import tenon
path, count, source = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
samples = source or ({"x": rng.standard_normal((1, 3, 12, 12), dtype=np.float32)} for _ in range(count))
report = tenon.quantize(path, calibration=samples, measure=False, max_loss=None)
assert report.samples == count
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize("kind", ["generator", "file"])
def test_memory_does_not_grow_with_the_samples(tmp_path, kind):
    pytest.importorskip("tenon")
    path, peak = network(tmp_path / "m.onnx"), {}
    for count in (10, 10000):
        source = tmp_path / f"{count}.npz" if kind == "file" else ""
        if source:
            np.savez(source, x=images(count))
        run = subprocess.run([sys.executable, "-c", MEMORY, path, str(count), source], check=True, capture_output=True, text=True)
        peak[count] = int(run.stdout)
    assert peak[10000] <= 1.1 * peak[10], peak
