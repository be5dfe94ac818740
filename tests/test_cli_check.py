"""`tenon check`: a model that is broken on purpose for every rule, through the command and through Python."""
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
TENON = os.environ.get("TENON_BINARY", str(ROOT / "build" / "tenon"))
FLOAT, DOUBLE, INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64


def tensor(name, type_=FLOAT, shape=("n", 3)):
    return helper.make_tensor_value_info(name, type_, shape)


def node(op, inputs, outputs, name="node", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=name, **attributes)


def model(nodes, inputs=None, outputs=None, constants=None, opset=17, ir_version=8, imports=None, **more):
    graph = helper.make_graph(nodes, "graph", [tensor("x")] if inputs is None else inputs,
                              [tensor("y")] if outputs is None else outputs,
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()])
    opsets = imports if imports is not None else [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, **more)


def sound():
    return model([node("Relu", "x", "y")])


def function(domain, name, nodes=None):
    return helper.make_function(domain, name, ["a"], ["b"], nodes or [node("Relu", "a", "b")], [helper.make_opsetid("", 17)])


def with_external_data():
    broken = model([node("Add", "x w", "y")], constants={"w": np.ones(3, np.float32)})
    weight = broken.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="missing.bin")
    return broken


def baked_output():
    broken = model([node("Reshape", "x shape", "y")], constants={"shape": np.array([1, 3])}, outputs=[tensor("y", FLOAT, ("n", 3))])
    return broken


CYCLE = [node("Add", "x b", "a", "first"), node("Relu", "a", "b", "second"), node("Relu", "b", "y", "third")]
# rule, the model, a part of the reason, a part of the node or tensor
BROKEN = [
    ("external-data", with_external_data(), "in 'missing.bin'", "w"),
    ("undefined-name", model([node("Add", "x nowhere", "y")]), "nothing defines the name 'nowhere'", "Add 'node'"),
    ("duplicate-name", model([node("Relu", "x", "y", "a"), node("Abs", "x", "y", "b")]), "defined twice", "y"),
    ("cycle", model(CYCLE), "feed each other in a circle", "Relu 'second'"),
    ("no-outputs", model([node("Relu", "x", "y")], outputs=[]), "no outputs", ""),
    ("not-sorted", model([node("Relu", "a", "y", "late"), node("Abs", "x", "a", "early")]), "comes before Abs 'early'", "Relu 'late'"),
    ("dead-node", model([node("Relu", "x", "y"), node("Abs", "x", "z", "dead")]), "no output of the graph needs it", "Abs 'dead'"),
    ("unused-input", model([node("Relu", "x", "y")], inputs=[tensor("x"), tensor("spare")]), "no node reads this input", "spare"),
    ("unused-initializer", model([node("Relu", "x", "y")], constants={"w": np.ones(3, np.float32)}), "no node reads", "w"),
    ("unused-function", model([node("Relu", "x", "y")], functions=[function("own", "F")]), "no node calls function 'own.F'", ""),
    ("duplicate-node-name", model([node("Relu", "x", "a", "same"), node("Relu", "a", "y", "same")]), "has the same name", "Relu 'same'"),
    ("unnamed-node", model([node("Relu", "x", "y", "")]), "no name", "Relu (node 0)"),
    ("unknown-operator", model([node("Relo", "x", "y")]), "the nearest known one is Relu", "Relo 'node'"),
    ("invalid-attribute", model([node("LeakyRelu", "x", "y", alpha="much")]), "alpha", "LeakyRelu 'node'"),
    ("type-mismatch", model([node("Add", "x i", "y")], constants={"i": np.array([1])}), "int64", "Add 'node'"),
    ("shape-mismatch", model([node("MatMul", "x w", "y")], constants={"w": np.ones((4, 3), np.float32)}), "3", "MatMul 'node'"),
    ("invalid-node", model([node("Relu", "x x", "y")]), "at most 1 input", "Relu 'node'"),
    ("missing-opset-import", model([node("Relu", "x", "y")], imports=[helper.make_opsetid("ai.onnx.ml", 3)]), "imports no operator set", "Relu"),
    ("operator-too-new", model([node("Gelu", "x", "y")], opset=17), "came with opset 20, the model imports 17", "Gelu 'node'"),
    ("type-too-new", model([node("Add", "x x", "y")], inputs=[tensor("x", TensorProto.BFLOAT16)], outputs=[tensor("y", TensorProto.BFLOAT16)],
                           opset=12), "version 7 of Add has no tensor(bfloat16) there; version 13 is the first", "Add"),
    ("unknown-opset", model([node("Relu", "x", "y")], opset=99), "imports opset 99", ""),
    ("shape-conflict", model([node("Relu", "x", "y")], outputs=[tensor("y", FLOAT, ("n", 4))]), "declared as [n, 4]", "y"),
    ("deprecated-operator", model([node("Scatter", "x i x", "y")], constants={"i": np.zeros((1, 3), np.int64)}, opset=11), "deprecated", "Scatter"),
    ("shadowed-operator", model([node("Relu", "x", "y")], functions=[function("", "Relu", [node("Abs", "a", "b")])]), "'Relu'", ""),
    ("ir-version", model([node("F", "x", "y", domain="own")], functions=[function("own", "F")], ir_version=7,
                         imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]), "model-local functions came with 8", ""),
    ("random-operator", model([node("RandomNormalLike", "x", "y")]), "depend on chance", "RandomNormalLike"),
    ("nan-weights", model([node("Add", "x w", "y")], constants={"w": np.array([1, np.nan, 2], np.float32)}), "1 of its 3 elements is NaN", "w"),
    ("infinite-weights", model([node("Add", "x w", "y")], constants={"w": np.array([1, np.inf, -np.inf], np.float32)}), "2 of its 3", "w"),
    ("float64-island", model([node("Cast", "x", "d", "up", to=DOUBLE), node("Exp", "d", "e"), node("Cast", "e", "y", "down", to=FLOAT)]),
     "computes in double", "Cast 'up'"),
    ("baked-batch", baked_output(), "fixes the first size, which is 'n'", "Reshape"),
    ("fixed-batch", model([node("Relu", "x", "y")], inputs=[tensor("x", FLOAT, (1, 3))]), "takes no batches", "x"),
    ("int64-weights", model([node("Gather", "x i", "z", axis=1), node("ReduceSum", "z a", "y")],
                            constants={"i": np.zeros(2000, np.int64), "a": np.array([1])}, outputs=[tensor("y", FLOAT, ("n", 1))]),
     "all fit int32", "i"),
    ("target-opset", model([node("Relu", "x", "y")], opset=20), "takes up to 19; 1.17.0 takes it", ""),
    ("target-ir-version", model([node("Relu", "x", "y")], ir_version=10), "takes up to 9", ""),
    ("target-operator", model([node("Gelu", "x", "y")], opset=20), "does not run version 20 of Gelu; 1.17.0 does", "Gelu"),
    ("target-type", model([node("Add", "x x", "y")], inputs=[tensor("x", TensorProto.UINT8)], outputs=[tensor("y", TensorProto.UINT8)]),
     "does not run version 14 of Add with uint8 for T; 1.21.0 does", "Add"),
    ("target-unknown", model([node("Odd", "x", "y", domain="own")], imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]),
     "nothing is known about own.Odd", "own.Odd"),
]
WITHOUT_CASE = {"target-fallback": "needs another provider, see test_cuda_falls_back"}


def run(*arguments):
    return subprocess.run([TENON, "check", *map(str, arguments)], capture_output=True, text=True)


def check(path, *arguments):
    result = run(path, "--json", *arguments)
    assert result.returncode in (0, 1), result.stderr
    report = json.loads(result.stdout)
    assert report["ok"] == (result.returncode == 0)
    return report


def saved(message, folder, name="model.onnx"):
    path = folder / name
    path.write_bytes(message.SerializeToString())
    return path


@pytest.mark.parametrize("code, message, reason, where", BROKEN, ids=[case[0] for case in BROKEN])
def test_rule(tmp_path, code, message, reason, where):
    path = saved(message, tmp_path)
    target = ["--target", "onnxruntime==1.16.3"] if code.startswith("target") else []
    found = [f for f in check(path, *target)["findings"] if f["code"] == code]
    assert found, f"{code} was not found"
    assert any(reason in f["reason"] and where in f["node"] + " " + f["tensor"] for f in found), found
    # Without the rule nobody else reports it under this name.
    assert not [f for f in check(path, *target, "--disable", code)["findings"] if f["code"] == code]


def test_every_rule_has_a_broken_model():
    rules = {rule["code"]: rule["severity"] for rule in json.loads(run("--list-rules", "--json").stdout)}
    assert set(rules) == {case[0] for case in BROKEN} | set(WITHOUT_CASE)
    assert set(rules.values()) == {"error", "warning", "note"}


def test_sound_model_has_no_findings(tmp_path):
    report = check(saved(sound(), tmp_path))
    assert report["findings"] == [] and report["ok"] and report["nodes"] == 1


def test_all_problems_at_once(tmp_path):
    nodes = [node("Relo", "x", "a", "one"), node("Add", "x nowhere", "b", "two"), node("LeakyRelu", "x", "y", "three", alpha="much"),
             node("MatMul", "x w", "c", "four")]
    report = check(saved(model(nodes, constants={"w": np.full((4, 3), np.nan, np.float32)}), tmp_path))
    assert {"unknown-operator", "undefined-name", "invalid-attribute", "shape-mismatch", "nan-weights", "dead-node"} <= {
        f["code"] for f in report["findings"]}
    severities = [f["severity"] for f in report["findings"]]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)


def test_problems_inside_subgraphs_and_functions(tmp_path):
    branch = helper.make_graph([node("LeakyRelu", "x", "inner", "deep", alpha="much")], "then", [], [tensor("inner")])
    other = helper.make_graph([node("Relu", "x", "inner2", "fine")], "else", [], [tensor("inner2")])
    choose = helper.make_node("If", ["c"], ["y"], name="choose", then_branch=branch, else_branch=other)
    inputs = [tensor("x"), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    found = check(saved(model([choose], inputs=inputs), tmp_path))["findings"]
    assert [f["node"] for f in found if f["code"] == "invalid-attribute"] == ["If 'choose' (node 0) > then_branch > LeakyRelu 'deep' (node 0)"]

    inside = function("own", "F", [node("LeakyRelu", "a", "b", "deep", alpha="much")])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    found = check(saved(model([node("F", "x", "y", "call", domain="own")], functions=[inside], imports=imports), tmp_path))["findings"]
    assert any(f["code"] == "invalid-attribute" and "LeakyRelu 'deep'" in f["node"] for f in found), found


@pytest.mark.parametrize("damage, reason", [
    ({"location": "../outside.bin"}, "leaves the model's folder"),
    ({"location": "short.bin"}, "needs bytes 0 to 12, the file has 4"),
    ({"location": "short.bin", "length": "many"}, "is not a number"),
])
def test_external_data(tmp_path, damage, reason):
    broken = with_external_data()
    del broken.graph.initializer[0].external_data[:]
    for key, value in damage.items():
        broken.graph.initializer[0].external_data.add(key=key, value=value)
    (tmp_path / "short.bin").write_bytes(b"1234")
    report = check(saved(broken, tmp_path))
    assert reason in next(f["reason"] for f in report["findings"] if f["code"] == "external-data")
    assert not report["ok"]


def test_every_missing_tensor_is_named(tmp_path):
    broken = with_external_data()
    second = broken.graph.initializer.add()
    second.CopyFrom(broken.graph.initializer[0])
    second.name = "v"
    broken.graph.node[0].output[0] = "z"
    broken.graph.node.append(node("Mul", "z v", "y", "more"))
    found = check(saved(broken, tmp_path))["findings"]
    assert sorted(f["tensor"] for f in found if f["code"] == "external-data") == ["v", "w"]


def test_exit_codes(tmp_path):
    path = saved(sound(), tmp_path)
    assert run(path).returncode == 0
    assert run(saved(model([node("Relo", "x", "y")]), tmp_path, "broken.onnx")).returncode == 1
    assert run(path, "--target", "onnxruntime==0.5").returncode == 1
    assert run(path, "--target", "caffe==1").returncode == 2
    assert run(path, "--target", "onnxruntime==new").returncode == 2
    assert run(path, "--provider", "tpu", "--target", "onnxruntime==1.20").returncode == 2
    assert run(path, "--disable", "unnamed-nodes").returncode == 2
    assert run(tmp_path / "nowhere.onnx").returncode == 4
    (tmp_path / "text.onnx").write_text("no model")
    assert run(tmp_path / "text.onnx").returncode == 3


def test_text_groups_and_limits(tmp_path):
    chain = [node("Relu", f"v{i}" if i else "x", f"v{i + 1}" if i < 7 else "y", "") for i in range(8)]
    path = saved(model(chain), tmp_path)
    text = run(path).stdout
    assert "note unnamed-node (8)" in text and "… and 3 more (--all prints them)" in text
    assert text.splitlines()[-1] == "ok: 0 errors, 0 warnings, 8 notes in 8 nodes"
    assert run(path, "--all").stdout.count("it has no name") == 8


def test_github_annotations_are_escaped(tmp_path):
    folder = tmp_path / "50%, or: more"
    folder.mkdir()
    path = saved(model([node("Relo", "x", "y", "a,b:c")]), folder)
    lines = run(path, "--format", "github").stdout.splitlines()
    assert len(lines) == 1 and lines[0].startswith("::error file=")
    properties, text = lines[0][len("::error "):].split("::", 1)
    assert "50%25%2C or%3A more" in properties and properties.endswith("title=tenon check%3A unknown-operator")
    assert "%0Afix: " in text and "Relo 'a,b:c'" in text


def test_targets(tmp_path):
    path = saved(model([node("Gelu", "x", "y")], opset=20), tmp_path)
    report = check(path, "--target", "opset==13")
    assert [f["code"] for f in report["findings"]] == ["target-opset", "target-operator"]
    assert f"tenon convert {path} --opset 13 -o OUT" in report["findings"][1]["fix"]
    assert check(path, "--target", "onnxruntime==1.17")["target"] == "onnxruntime 1.17.3 (cpu)"
    assert check(path, "--target", "onnxruntime==1.17")["ok"]
    assert check(path, "--target", "tensorrt==10")["ok"]
    assert not check(path, "--target", "tensorrt==8.5")["ok"]
    assert "1.31.1" in check(path, "--target", "onnxruntime==1.99")["target"]
    report = check(path, "--target", "openvino==2023.3")
    assert [f["code"] for f in report["findings"]] == ["target-operator"]
    assert f"tenon convert {path} --opset 19 -o OUT" in report["findings"][0]["fix"]


def test_convert_cannot_help_where_it_is_blocked(tmp_path):
    inputs, outputs = [tensor("x", TensorProto.STRING)], [tensor("y", TensorProto.STRING)]
    path = saved(model([node("StringConcat", "x x", "y")], inputs=inputs, outputs=outputs, opset=20), tmp_path)
    found = check(path, "--target", "opset==13")["findings"]
    assert "cannot help" in next(f["fix"] for f in found if f["code"] == "target-operator")


def test_cuda_falls_back(tmp_path):
    path = saved(model([node("StringNormalizer", "x", "y")], inputs=[tensor("x", TensorProto.STRING, ("n",))],
                       outputs=[tensor("y", TensorProto.STRING, ("n",))]), tmp_path)
    report = check(path, "--target", "onnxruntime==1.31", "--provider", "cuda")
    assert report["ok"]
    (fallback,) = [f for f in report["findings"] if f["code"] == "target-fallback"]
    assert fallback["reason"].endswith("it falls back to cpu") and "StringNormalizer" in fallback["node"]


def test_input_is_never_written(tmp_path):
    path = saved(model([node("Relo", "x", "y")]), tmp_path)
    before = path.read_bytes()
    run(path, "--target", "onnxruntime==1.16")
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not os.environ.get("TENON_ALL"), reason="reads 2.2 GB; TENON_ALL=1 runs it")
def test_models_over_two_gigabytes(tmp_path):
    rows = 200_000_000  # of 3 floats
    large = with_external_data()
    weight = large.graph.initializer[0]
    del weight.dims[:], weight.external_data[:]
    weight.dims.extend([rows, 3])
    weight.external_data.add(key="location", value="weights.bin")
    with open(tmp_path / "weights.bin", "wb") as file:  # with holes, so that it takes no room
        file.seek(rows * 3 * 4 - 4)
        file.write(np.array([np.nan], np.float32).tobytes())
    report = check(saved(large, tmp_path))
    assert [f["reason"] for f in report["findings"] if f["code"] == "nan-weights"] == ["1 of its 600000000 elements is NaN"]
