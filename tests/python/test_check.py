"""tenon.check."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tenon


def model(op="Relu", opset=17, inputs="x", **attributes):
    node = helper.make_node(op, inputs.split(), ["y"], name="node", **attributes)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", 3)) for name in ("x", "y")]
    return helper.make_model(helper.make_graph([node], "graph", infos[:1], infos[1:]), opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def test_sound_model():
    report = tenon.check(model())
    assert report.ok and report.findings == [] and report.nodes == 1 and report.target == ""


def test_findings():
    report = tenon.check(model("Relo"))
    assert not report.ok
    (finding,) = report.findings
    assert (finding.severity, finding.code, finding.node) == ("error", "unknown-operator", "Relo 'node' (node 0)")
    assert "Relu" in finding.reason and finding.fix
    assert report.as_dict()["findings"][0]["code"] == "unknown-operator"


@pytest.mark.parametrize("source", ["path", "bytes", "proto", "model"])
def test_sources(tmp_path, source):
    message = model("Relo")
    path = tmp_path / "model.onnx"
    onnx.save(message, path)
    given = {"path": path, "bytes": message.SerializeToString(), "proto": message, "model": None}[source]
    given = tenon.read_onnx(path) if source == "model" else given
    assert [f.code for f in tenon.check(given).findings] == ["unknown-operator"]


def test_target():
    report = tenon.check(model("Gelu", 20), target="onnxruntime==1.16")
    assert not report.ok and {f.code for f in report.findings} == {"target-opset", "target-operator"}
    assert report.target == "onnxruntime 1.16.3 (cpu)" and "measured" in report.basis
    assert tenon.check(model("Gelu", 20), target="onnxruntime==1.17").ok


def test_missing_external_data(tmp_path):
    message = model("Add", inputs="x w")
    weight = message.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="missing.bin")
    (tmp_path / "model.onnx").write_bytes(message.SerializeToString())
    assert [f.code for f in tenon.check(tmp_path / "model.onnx").findings] == ["external-data"]


def test_errors(tmp_path):
    with pytest.raises(tenon.ArgumentError, match="no target that is known"):
        tenon.check(model(), target="caffe==1")
    with pytest.raises(tenon.ArgumentError, match="no rule"):
        tenon.check(model(), disabled=["nonsense"])
    with pytest.raises(tenon.Error):
        tenon.check(np.zeros(3, np.uint8).tobytes())
