"""tenon.health, find_nan, dump and measure_machine."""
import json

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, save_model


@pytest.fixture
def path(tmp_path):
    """y = log(x - 1) + x"""
    nodes = [helper.make_node("Sub", ["x", "one"], ["d"], "subtract"), helper.make_node("Log", ["d"], ["l"], "log"),
             helper.make_node("Add", ["l", "x"], ["y"], "add")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
                              [helper.make_tensor("one", TensorProto.FLOAT, [1], [1])])
    path = tmp_path / "model.onnx"
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


GOOD, BAD = np.array([2, 3], np.float32), np.array([2, 1], np.float32)


def test_health_of_a_file_and_of_a_model(path):
    for model in (path, str(path), tenon.load(path)):
        report = tenon.health(model, {"x": GOOD}, expect={"y": np.log(GOOD - 1) + GOOD}, require_provider="cpu")
        assert report.healthy, report.text
        assert report.provider_share == 1 and report.error is None and report.latency.runs == 5
        report = tenon.health(model, {"x": BAD})
        assert not report.healthy and "output 'y' has 0 NaN and 1 infinite of 2 elements" in report.text
        assert [check.name for check in report.checks if not check.passed] == ["finite"]
    assert json.loads(json.dumps(report.as_dict()))["healthy"] is False


def test_health_of_what_is_not_there(tmp_path):
    report = tenon.health(tmp_path / "none.onnx")
    assert not report.healthy and report.error.startswith("missing-file") and report.provider_share is None
    with pytest.raises(tenon.ArgumentError):
        tenon.health(tmp_path / "none.onnx", min_share=7)


def test_find_nan(path):
    model = tenon.load(path, level="none")
    assert tenon.find_nan(model, {"x": GOOD}).finding is None
    report = tenon.find_nan(model, {"x": BAD})
    assert report.finding.node == "Log 'log' (node 1)"
    (value,) = report.finding.inputs
    assert value.name == "d" and value.origin == "made by Sub 'subtract' (node 0)" and value.stats.zeros == 1
    assert report.finding.text.startswith("Log 'log' (node 1) makes 1 infinite of 2 numbers")
    assert tenon.find_nan(model, {"x": BAD}, allow_infinite=True).finding is None
    bad = tenon.find_nan(model, {"x": np.array([np.nan], np.float32)}).bad_sources
    assert [source.name for source in bad] == ["x"]
    with pytest.raises(tenon.InputError):
        tenon.find_nan(model, {})


def test_dump(path, tmp_path):
    report = tenon.dump(tenon.load(path, level="none"), {"x": GOOD}, tmp_path / "d", filter=["d", "y"])
    assert [(value.name, value.shape, value.type) for value in report.values] == [("d", (2,), "float"), ("y", (2,), "float")]
    np.testing.assert_array_equal(np.load(tmp_path / "d" / report.values[0].file), GOOD - 1)
    assert report.missing == [] and (tmp_path / "d" / "index.json").exists()


def test_measure_machine():
    speed = tenon.measure_machine(threads=1)
    assert speed.one.threads == speed.all.threads == 1
    assert 0 < speed.one.matmul_flops and 0 < speed.one.peak_flops and speed.seconds > 0
