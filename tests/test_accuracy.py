"""Quantizing costs little accuracy, on trained models and real data; `make accuracy` prints the whole table.

The digits always; with TENON_ALL=1 (`make test-accuracy`) the models that are downloaded too.
"""
import os
import sys
from functools import cache

import pytest
from conftest import ROOT

pytest.importorskip("tenon")
sys.path.insert(0, str(ROOT / "bench" / "accuracy"))

from quantizers import QUANTIZERS  # noqa: E402
from runtimes import RUNTIMES  # noqa: E402
from task import make  # noqa: E402

ALL = os.environ.get("TENON_ALL") == "1"
BY_TENON = {quantizer.method: quantizer for quantizer in QUANTIZERS if quantizer.maker == "Tenon"}
# Each weight alone to the nearest of 16 numbers costs more than GPTQ.
MOST_LOSS = {"weights in 4 bits": 0.015}
# Of digits, nodes and biases are a larger part of the file than elsewhere; of rapidocr, the budget keeps weights in float.
LEAST_TIMES_SMALLER = {"digits": 3.2, "rapidocr": 2.3}

task = cache(make)


@cache
def score_in_float(name, runtime):
    return task(name).evaluate(RUNTIMES[runtime](task(name).model))


def check(name, method, path):
    BY_TENON[method].write(task(name), path)
    assert task(name).model.stat().st_size >= LEAST_TIMES_SMALLER.get(name, 3.4) * path.stat().st_size
    for runtime, load in RUNTIMES.items():
        assert score_in_float(name, runtime) - task(name).evaluate(load(path)) < MOST_LOSS.get(method, 0.01), runtime


def test_the_network_reads_digits():
    assert score_in_float("digits", "Tenon") > 0.95


@pytest.mark.parametrize("method", BY_TENON)
def test_digits(method, tmp_path):
    check("digits", method, tmp_path / "quantized.onnx")


@pytest.mark.skipif(not ALL, reason="downloads 105 MB; make test-accuracy runs it")
@pytest.mark.parametrize("method", ["static, mse"])
@pytest.mark.parametrize("name", ["magika", "rapidocr", "MiniLM"])
def test_downloaded(name, method, tmp_path):
    check(name, method, tmp_path / "quantized.onnx")
