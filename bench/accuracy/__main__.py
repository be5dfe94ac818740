"""How much accuracy quantizing costs, on models with trained weights and real data: one table, every model run in both runtimes.

    .venv/bin/python bench/accuracy [digits magika rapidocr MiniLM] [--makers Tenon onnxruntime] [--methods "static, minmax"]

`make accuracy` installs what it needs. Data to calibrate with and data to judge by have nothing in common.
"""
import argparse
import contextlib
import importlib
import io
import logging
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from quantizers import QUANTIZERS
from runtimes import RUNTIMES

TASKS = {"digits": "digits", "magika": "file_types", "rapidocr": "printed_text", "MiniLM": "sentence_meaning"}


@dataclass
class Row:
    task: str
    maker: str
    method: str
    size: int
    scores: dict[str, float]


def score(task, path, runtime):
    try:
        return task.evaluate(RUNTIMES[runtime](path))
    except Exception as error:  # the others are measured all the same
        print(f"{runtime} cannot run {task.name}: {error}", file=sys.stderr)
        return math.nan


def measure(task, path, maker, method):
    return Row(task.name, maker, method, path.stat().st_size, {runtime: score(task, path, runtime) for runtime in RUNTIMES})


def quantized(task, quantizer):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "quantized.onnx"
        with contextlib.redirect_stdout(io.StringIO()):
            quantizer.write(task, path)
        return measure(task, path, quantizer.maker, quantizer.method)


def rows(task, quantizers):
    """The model as it is, then by each quantizer."""
    yield measure(task, task.model, "", "fp32")
    for quantizer in quantizers:
        try:
            yield quantized(task, quantizer)
        except Exception as error:  # the others are measured all the same
            print(f"{quantizer.maker} cannot quantize {task.name}, {quantizer.method}: {error}", file=sys.stderr)


def show(row, first):
    scores = [f"{row.scores[name]:.4f}" for name in RUNTIMES]
    losses = [f"{100 * (first.scores[name] - row.scores[name]):+.2f}" for name in RUNTIMES]
    cells = [row.task, row.maker, row.method, f"{row.size / 1000:,.0f} kB", f"{first.size / row.size:.2f}", *scores, *losses]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=list(TASKS), help=", ".join(TASKS))
    parser.add_argument("--makers", nargs="+", help="only these quantizers")
    parser.add_argument("--methods", nargs="+", help="only these methods")
    options = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    chosen = [q for q in QUANTIZERS if q.maker in (options.makers or [q.maker]) and q.method in (options.methods or [q.method])]

    heads = ["model", "quantized by", "how", "file", "times smaller", *(f"in {name}" for name in RUNTIMES), *(f"loss in {name}, %" for name in RUNTIMES)]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    metrics = []
    for name in options.tasks:
        task = importlib.import_module(TASKS[name]).make()
        metrics.append(f"{task.name}: {task.metric}")
        first = None
        for row in rows(task, chosen):
            first = first or row
            show(row, first)
    print("\n" + "\n".join(metrics))


main()
