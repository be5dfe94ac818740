"""tenon.report: the page itself is tested in tests/test_report.py."""
import numpy as np
import pytest
import small_models

import tenon


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "linear.onnx"
    path.write_bytes(small_models.linear())
    return path


def test_page_and_document(path, tmp_path):
    page = tmp_path / "page.html"
    data = tenon.report(path, page, dims={"batch": 5}, runs=2, warmup=0, level="none")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [node["op"] for node in data["nodes"]] == ["MatMul", "Add", "Neg"]
    assert data["nodes"][0]["flops"] == 2 * 5 * 3 * 2 and len(data["runs"]) == 2


def test_inputs_that_are_given(path):
    data = tenon.report(path, None, inputs={"x": np.ones((7, 3), np.float32)}, runs=1, warmup=0)
    assert data["inputs"] == {"values": [{"name": "x", "value": "float [7, 3]"}], "random": [], "assumed": [], "seed": 0}


def test_without_running(path):
    data = tenon.report(path, None, run=False)
    assert data["runs"] == [] and "timeline" not in data
    with pytest.raises(tenon.ArgumentError, match="tenon compare --json"):
        tenon.report(path, None, run=False, errors="nothing")
