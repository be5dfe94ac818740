"""Quantized models give the same results in Tenon and in onnxruntime, whoever of the two quantized them."""
import contextlib
import io
import sys
from functools import cache

import numpy as np
import onnxruntime
import pytest
from conftest import ROOT

tenon = pytest.importorskip("tenon")
sys.path.insert(0, str(ROOT / "tests" / "quantized"))

import by_onnxruntime  # noqa: E402
import by_tenon  # noqa: E402
from small_networks import NETWORKS  # noqa: E402

# By level: of the largest output, and of the outputs' root mean square. A number halfway between two codes may become either: then some
# outputs are off by one code, the 255th part of their range. Products of codes also round their bias to a step of the sums, so that
# more numbers become the other code (one in 600 after a product), and what follows reads these. Quantizing itself costs five to a
# hundred times what level none may be off by.
MOST = {"none": (1.1e-2, 1e-3), "all": (1.5e-2, 2.5e-3)}

network = cache(lambda name: NETWORKS[name]())


def root_mean_square(values):
    return np.sqrt(np.mean(np.square(values)))


def run_in_onnxruntime(model, feeds):
    """As the model says: onnxruntime's optimiser leaves out roundings, and multiplies blocks of 4 bits by activations in 8."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, feed)[0] for feed in feeds])


def run_in_tenon(path, feeds, level):
    model = tenon.load(path, level=level)
    return np.stack([next(iter(model.run(feed).values())) for feed in feeds])


def compare(path, feeds):
    """Fails where the two differ; what onnxruntime says."""
    expected = run_in_onnxruntime(path, feeds)
    for level, (largest, root) in MOST.items():
        error = run_in_tenon(path, feeds, level) - expected
        assert np.abs(error).max() <= largest * np.abs(expected).max(), level
        assert root_mean_square(error) <= root * root_mean_square(expected), level
    return expected


# onnxruntime's DynamicQuantizeLSTM rounds the states of a batch by a scale for each of its threads; Tenon's has one for all, and is about as near.
SCALES_DIFFER = {("recurrent", way) for way in ("dynamic_s8", "dynamic_u8", "dynamic_per_channel")}


@pytest.mark.parametrize("way", by_onnxruntime.WAYS)
@pytest.mark.parametrize("name", NETWORKS)
def test_quantized_by_onnxruntime(name, way, tmp_path):
    path, given = tmp_path / "quantized.onnx", network(name)
    with contextlib.redirect_stdout(io.StringIO()):
        by_onnxruntime.WAYS[way](given, path)
    if (name, way) not in SCALES_DIFFER:
        compare(path, given.held_out)
        return
    exact = run_in_onnxruntime(given.model.SerializeToString(), given.held_out)
    theirs = root_mean_square(run_in_onnxruntime(path, given.held_out) - exact)
    for level in MOST:
        assert 0 < root_mean_square(run_in_tenon(path, given.held_out, level) - exact) <= 1.1 * theirs, level


@pytest.mark.parametrize("way", by_tenon.WAYS)
@pytest.mark.parametrize("name", NETWORKS)
def test_quantized_by_tenon(name, way, tmp_path):
    path, given, how = tmp_path / "quantized.onnx", network(name), by_tenon.WAYS[way]
    tenon.quantize(given.model, calibration=given.calibration, max_loss=None, measure=False, **how.options).model.save(path)
    error = compare(path, given.held_out) - (exact := run_in_onnxruntime(given.model.SerializeToString(), given.held_out))
    assert 0 < root_mean_square(error) <= how.most_error * root_mean_square(exact)
