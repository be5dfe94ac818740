"""How much accuracy quantizing costs, on models with trained weights and real data: one table, every model run in both runtimes.

    .venv/bin/python bench/accuracy [digits magika rapidocr MiniLM] [--makers Tenon onnxruntime] [--methods "static, minmax"]

`make accuracy` installs what it needs. Data to calibrate with and data to judge by have nothing in common.
"""
import argparse
import contextlib
import io
import logging
import math
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from quantizers import QUANTIZERS
from runtimes import RUNTIMES
from task import TASKS, make


@dataclass
class Row:
    task: str
    maker: str
    method: str
    size: int = 0
    scores: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RUNTIMES, math.nan))


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
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                quantizer.write(task, path)
        except Exception as error:
            print(f"{quantizer.maker} cannot quantize {task.name}, {quantizer.method}: {error}", file=sys.stderr)
            return Row(task.name, quantizer.maker, quantizer.method)
        return measure(task, path, quantizer.maker, quantizer.method)


def rows(task, quantizers):
    """The model as it is, then by each quantizer."""
    yield measure(task, task.model, "", "fp32")
    for quantizer in quantizers:
        yield quantized(task, quantizer)


def text(row, first):
    """The cells of a row; `first` is that of the model as it is."""
    def cell(form, value):
        return "fails" if math.isnan(value) else format(value, form)

    scores = [cell(".4f", row.scores[name]) for name in RUNTIMES]
    losses = [cell("+.2f", 100 * (first.scores[name] - row.scores[name])) for name in RUNTIMES]
    size = [f"{row.size / 1000:,.0f} kB", f"{first.size / row.size:.2f}"] if row.size else ["", ""]
    return [row.task, row.maker, row.method, *size, *scores, *losses]


def print_line(cells):
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
    print_line(heads)
    print_line(["---"] * len(heads))
    metrics = []
    for name in options.tasks:
        task = make(name)
        metrics.append(f"{task.name}: {task.metric}")
        first = None
        for row in rows(task, chosen):
            first = first or row
            print_line(text(row, first))
    print("\n" + "\n".join(metrics))


main()
