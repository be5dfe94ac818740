"""The functions that change models: the same power as the commands, on paths, bytes and models of onnx."""
import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def value(name, shape):
    return helper.make_tensor_value_info(name, FLOAT, shape)


@pytest.fixture
def model():
    """y = Reshape(Relu(x) * w, [1, 6]) and z = Relu(x), with a batch of 1 baked in."""
    nodes = [helper.make_node("Relu", ["x"], ["z"], name="relu"), helper.make_node("Mul", ["z", "w"], ["m"], name="scale"),
             helper.make_node("Reshape", ["m", "t"], ["y"], name="flat")]
    initializers = [numpy_helper.from_array(np.full(3, 2, np.float32), "w"), numpy_helper.from_array(np.array([1, 6]), "t")]
    graph = helper.make_graph(nodes, "g", [value("x", [1, 2, 3])], [value("y", [1, 6]), value("z", [1, 2, 3])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


X = np.arange(-3, 3, dtype=np.float32).reshape(1, 2, 3)


def run(changed, **inputs):
    return tenon.load(changed.model.to_bytes()).run(inputs)


def test_tools_take_what_tools_return(model, tmp_path):
    part = tenon.extract(model, outputs=["y"])
    renamed = tenon.rename(part, {"x": "image"}, nodes={"*": "n/*"})
    np.testing.assert_array_equal(run(renamed, image=X)["y"], 2 * np.maximum(X, 0).reshape(1, 6))
    assert {change.name: change.detail for change in renamed.changes if change.kind == "renamed node"}["relu"] == "n/relu"
    renamed.model.save(tmp_path / "m.onnx")
    assert [n.name for n in onnx.load(tmp_path / "m.onnx").graph.node] == ["n/relu", "n/scale", "n/flat"]


def test_sources(model, tmp_path):
    onnx.save(model, tmp_path / "m.onnx")
    for source in (model, model.SerializeToString(), tmp_path / "m.onnx", str(tmp_path / "m.onnx"), tenon.read_onnx(model)):
        assert [c.name for c in tenon.prune(source, drop="z").changes] == ["z"]
    with pytest.raises(tenon.ArgumentError, match="a model is a path"):
        tenon.prune(3)


def test_prune_and_merge(model):
    pruned = tenon.prune(model, keep=["z"])
    merged = tenon.merge(pruned, tenon.prune(model, keep="z"), {"z": "x"}, keep_joined=True)
    assert sorted(run(merged, x=X)) == ["second/z", "z"]
    with pytest.raises(tenon.Error, match="did you mean 'z'"):
        tenon.prune(model, drop="zz")


def test_strip_and_restore(model, tmp_path):
    stripped = tenon.strip(model, tmp_path / "s.onnx", from_bytes=12)
    assert [(t.name, t.shape) for t in stripped.tensors] == [("w", [3]), ("t", [2])]
    assert stripped.tensors[0].as_dict()["bytes"] == 12
    restored = tenon.restore(stripped.model, stripped.weights)
    assert restored.model.to_bytes() == model.SerializeToString()
    stripped.weights.write_bytes(b"\1" * stripped.weights.stat().st_size)
    with pytest.raises(tenon.FileError, match="not those that were taken out"):
        tenon.restore(stripped.model)


def test_dynamic_and_fix(model):
    freed = tenon.make_dynamic(model)
    assert freed.proven == [1, 2, 3] and not freed.blockers
    outputs = tenon.load(freed.model.to_bytes()).run(x=np.repeat(X, 5, 0))
    assert outputs["y"].shape == (5, 6)
    fixed = tenon.fix(freed.model, dims={"batch": 4})
    assert run(fixed, x=np.repeat(X, 4, 0))["y"].shape == (4, 6)
    with pytest.raises(tenon.Error, match="shape-mismatch"):
        tenon.fix(fixed, {"x": (3, 2, 3)})


def test_blockers(model):
    model.graph.node[1].op_type = "ReduceMean"
    model.graph.node[1].input[:] = ["z"]
    model.graph.node[1].attribute.append(helper.make_attribute("axes", [0]))
    result = tenon.make_dynamic(model)
    assert result.blockers and not result.proven
    with pytest.raises(tenon.Error, match="the size cannot be freed"):
        result.model


def test_convert_dtype(model):
    half = tenon.convert_dtype(model, "float16", keep=["scale"], keep_io=True)
    assert half.converted_nodes == 2 and [k.reason for k in half.kept] == ["it was asked for"]
    assert half.why_not == "" and half.largest_difference < 1e-3
    np.testing.assert_allclose(run(half, x=X)["z"], np.maximum(X, 0))
    with pytest.raises(tenon.ArgumentError, match="neither float16 nor bfloat16"):
        tenon.convert_dtype(model, "float64")
