#!/usr/bin/env python3
"""Times models in Tenon and in other engines, side by side: milliseconds, ratios, load time, peak memory, and how far
the outputs are from onnxruntime's.

    .venv/bin/python bench/compare.py MODEL… [--threads 1 2] [--engines tenon onnxruntime openvino mnn torch]

A MODEL is an .onnx file or the name of a model of tests/models. Engines that are not installed are left out; `make bench`
installs all. Every engine has a process of its own; they take turns, several times, and the best time of each counts: so
what else the machine does hits all alike. All compute in fp32, unless --precision fast asks each for its faster mode,
with as many threads and on the same inputs. An engine whose outputs are not onnxruntime's, by a quarter of the largest
value, is not counted in the summary. With --int8 all run the models as onnxruntime's quantizer writes them,
NAME_int8.onnx beside NAME.onnx; with --int8 dynamic NAME_dynamic.onnx, where only weights are quantized ahead. Exit code 1 when the outputs of Tenon are not onnxruntime's, within 1e-3 of the largest
value; with --int8, where codes that lie between two numbers may be rounded to either, within a fifth of it.
"""
import argparse
import importlib.util
import json
import math
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from plot import bar_chart  # noqa: E402

MODULES = {"tenon": "tenon", "onnxruntime": "onnxruntime", "openvino": "openvino", "mnn": "MNN", "torch": "torch"}
MOST_DIFFERENCE, MOST_INT8_DIFFERENCE = 1e-3, 0.2
ANOTHER_RESULT = 0.25  # of the largest value: an engine that is further off computes something else, in a time that says nothing


class Engine:
    """A process of engines.py. It stands still while it is not asked: threads that wait for work would slow others."""

    def __init__(self, name, model, inputs, threads, options):
        command = [sys.executable, Path(__file__).parent / "engines.py", name, model, inputs, str(threads),
                   "--precision", options.precision]
        if options.torch:
            command += ["--torch", options.torch]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=None if options.verbose else subprocess.DEVNULL, text=True)
        self.first = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            return {"error": f"it ended with {self.process.wait()}"}
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def ask(self, **what):
        self.process.send_signal(signal.SIGCONT)
        try:
            print(json.dumps(what), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass
        return self.read()

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


def inputs_by_shape(graph, sizes):
    """Random inputs for a model that is none of tests/models."""
    rng = np.random.default_rng(0)
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for info in graph.input:
        if info.name in weights:
            continue
        tensor = info.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param, 1) for d in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        is_float = np.issubdtype(dtype, np.floating)
        inputs[info.name] = (rng.random(shape) if is_float else np.ones(shape)).astype(dtype)
    return inputs


def find_model(argument, sizes):
    """(name, path, inputs)"""
    if argument.endswith(".onnx"):
        graph = onnx.load(argument, load_external_data=False).graph
        return Path(argument).stem, argument, inputs_by_shape(graph, sizes)
    import model_cases
    if argument not in model_cases.names():
        sys.exit(f"there is no model {argument!r}; those of tests/models are {', '.join(model_cases.names())}")
    graph = onnx.load(model_cases.SOURCES / f"{argument}.graph.onnx", load_external_data=False).graph
    return argument, str(model_cases.make(argument)), model_cases.inputs_for(argument, graph)


def difference(expected, actual):
    """The largest one, as a share of the largest value; the outputs in order, where the names differ."""
    pairs = [(expected[name], actual[name]) for name in expected if name in actual]
    if len(expected) != len(actual):
        return math.inf
    if len(pairs) != len(expected):
        pairs = list(zip(expected.values(), actual.values()))
    worst = 0.0
    for a, b in pairs:
        if a.shape != b.shape:
            return math.inf
        if a.size == 0 or not np.issubdtype(a.dtype, np.number):
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        scale = np.max(np.abs(a)) or 1.0
        off = np.abs(a - b) / scale
        worst = max(worst, float(np.max(np.where(np.isnan(a) & np.isnan(b) | (a == b), 0, off))))
    return worst


def measure(name, path, inputs, threads, options, folder):
    """[{engine, ms, load_ms, …}] in the order of the engines."""
    archive = f"{folder}/inputs.npz"
    np.savez(archive, **inputs)
    rows, running = [], {}
    for engine in options.engines:
        process = Engine(engine, path, archive, threads, options)
        row = {"model": name, "threads": threads, "engine": engine}
        rows.append(row)
        if "error" in process.first:
            row["error"] = process.first["error"]
            process.end()
            continue
        row |= {"version": process.first["version"], "load_ms": 1e3 * process.first["load_seconds"], "ms": math.inf}
        running[engine] = (process, row)
    for _ in range(options.rounds):
        for process, row in running.values():
            answer = process.ask(seconds=options.seconds)
            if "best" in answer:
                row["ms"] = min(row["ms"], 1e3 * answer["best"])
    expected = None
    for engine in sorted(running, key=lambda e: e != "onnxruntime"):
        process, row = running[engine]
        row["peak_mb"] = process.ask(memory=True)["bytes"] / 1e6
        file = f"{folder}/{engine}.npz"
        process.ask(outputs=file)
        with np.load(file, allow_pickle=True) as outputs:
            arrays = {key: outputs[key] for key in outputs.files}
        if engine == "onnxruntime":
            expected = arrays
        elif expected is not None:
            row["difference"] = difference(expected, arrays)
        process.end()
    return rows


def print_rows(rows):
    tenon = next((row.get("ms") for row in rows if row["engine"] == "tenon"), None)
    print(f"{rows[0]['model']}, {rows[0]['threads']} thread{'s' if rows[0]['threads'] > 1 else ''}")
    for row in rows:
        if "error" in row:
            print(f"  {row['engine']:<12} {row['error'][:100]}")
            continue
        ratio = f"{row['ms'] / tenon:6.2f}" if tenon else "     –"
        off = f"{row['difference']:.1e}" if "difference" in row else "–"
        print(f"  {row['engine']:<12} {row['ms']:10.3f} ms {ratio} x  load {row['load_ms']:8.1f} ms"
              f"  peak {row['peak_mb']:7.0f} MB  difference {off}")
    sys.stdout.flush()


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def print_summary(rows, threads):
    """How many times faster Tenon is than each engine, and than the fastest of them for each model."""
    by_model = {}
    for row in rows:
        if row["threads"] == threads and "ms" in row and row.get("difference", 0) <= ANOTHER_RESULT:
            by_model.setdefault(row["model"], {})[row["engine"]] = row["ms"]
    by_model = {model: times for model, times in by_model.items() if "tenon" in times and len(times) > 1}
    if not by_model:
        return
    print(f"\nTenon with {threads} thread{'s' if threads > 1 else ''}, times as fast as:")
    engines = {engine for times in by_model.values() for engine in times} - {"tenon"}
    for engine in [*sorted(engines), "the fastest"]:
        ratios = {}
        for model, times in by_model.items():
            peers = [time for other, time in times.items() if other != "tenon" and engine in (other, "the fastest")]
            if peers:
                ratios[model] = min(peers) / times["tenon"]
        worst = min(ratios, key=ratios.get)
        print(f"  {engine:<12} {mean(ratios.values()):6.2f} in the geometric mean of {len(ratios)},"
              f" least {ratios[worst]:.2f} ({worst})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], metavar="N")
    parser.add_argument("--engines", nargs="+", choices=MODULES, metavar="ENGINE", help="default: all that are installed")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "fast"])
    parser.add_argument("--int8", nargs="?", const="static", choices=["static", "dynamic"],
                        help="quantize the models first (default: static)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns that each engine takes (default: 5)")
    parser.add_argument("--seconds", type=float, default=0.5, help="that a turn takes, at least one run (default: 0.5)")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE", help="size of a dimension of a MODEL.onnx")
    parser.add_argument("--torch", metavar="SCRIPT", help="a Python file whose function module(name) returns the PyTorch module")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw it")
    parser.add_argument("--verbose", action="store_true", help="show what the engines print")
    options = parser.parse_args()
    if not options.engines:
        options.engines = [name for name, module in MODULES.items()
                           if importlib.util.find_spec(module) and (name != "torch" or options.torch)]
    sizes = {name: int(size) for name, size in (text.split("=") for text in options.dim)}
    rows = []
    for argument in options.models:
        name, path, inputs = find_model(argument, sizes)
        if options.int8:
            from quantized_models import quantize
            path = quantize(path, inputs, options.int8)
        for threads in options.threads:
            with tempfile.TemporaryDirectory() as folder:
                measured = measure(name, path, inputs, threads, options, folder)
            print_rows(measured)
            rows += measured
    for threads in options.threads:
        print_summary(rows, threads)
    if options.json:
        Path(options.json).write_text(json.dumps({"precision": options.precision, "results": rows}, indent=2) + "\n")
    if options.plot:
        Path(options.plot).write_text(bar_chart(rows))
    most = MOST_INT8_DIFFERENCE if options.int8 else MOST_DIFFERENCE
    wrong = [row for row in rows if row["engine"] == "tenon" and row.get("difference", 0) > most]
    for row in wrong:
        print(f"error: {row['model']}: the outputs differ from onnxruntime's by {row['difference']:.1e}", file=sys.stderr)
    failed = [row for row in rows if row["engine"] == "tenon" and "error" in row]
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
