"""Models that onnxruntime's tools quantized give the same results in Tenon."""
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

from by_onnxruntime import WAYS  # noqa: E402
from networks import NETWORKS  # noqa: E402

# Of the largest output, and of the outputs' root mean square. A number halfway between two codes may become either: then some
# outputs are off by one code, the 255th part of their range. Quantizing itself costs five to a hundred times MOST_ROOT_MEAN_SQUARE.
MOST, MOST_ROOT_MEAN_SQUARE = 1.1e-2, 1e-3

# What fails until Tenon has the operator.
UNKNOWN = {**{(name, way): "MatMulNBits" for name in NETWORKS for way in ("blocks_4_symmetric", "blocks_4", "blocks_8")},
           **{("recurrent", way): "DynamicQuantizeLSTM" for way in ("dynamic_s8", "dynamic_u8", "dynamic_per_channel")}}

network = cache(lambda name: NETWORKS[name]())


def cases():
    for name in NETWORKS:
        for way in WAYS:
            operator = UNKNOWN.get((name, way))
            yield pytest.param(name, way, marks=pytest.mark.xfail(strict=True, reason=f"{operator} is not known") if operator else ())


def run_in_onnxruntime(path, feeds):
    """As the model says: onnxruntime's optimiser leaves out roundings, and multiplies blocks of 4 bits by activations in 8."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, feed)[0] for feed in feeds])


def run_in_tenon(path, feeds, **options):
    model = tenon.load(path, **options)
    return np.stack([next(iter(model.run(feed).values())) for feed in feeds])


@pytest.mark.parametrize("name, way", cases())
def test_quantized_by_onnxruntime(name, way, tmp_path):
    path = tmp_path / "quantized.onnx"
    with contextlib.redirect_stdout(io.StringIO()):
        WAYS[way](network(name), path)
    feeds = network(name).held_out
    expected = run_in_onnxruntime(path, feeds)
    for level in ("none", "all"):
        error = np.abs(run_in_tenon(path, feeds, level=level) - expected)
        assert error.max() <= MOST * np.abs(expected).max(), level
        assert np.sqrt(np.mean(error**2)) <= MOST_ROOT_MEAN_SQUARE * np.sqrt(np.mean(expected**2)), level
