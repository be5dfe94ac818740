#!/usr/bin/env python3
"""Sets `tenon optimize --level basic` beside onnxsim and onnxslim: nodes that are left, time, and whether the outputs are equal.

    .venv/bin/python bench/simplifiers.py [MODEL…] [--rounds 3]

A MODEL is an .onnx file or the name of a model of tests/models; all of those if none is given. Nodes of subgraphs count,
Constant nodes do not: they are weights. Each simplifier reads a file and writes one, in a process of its own whose start
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

TOOLS = ("tenon", "onnxsim", "onnxslim")
MOST_DIFFERENCE = 1e-4

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


def run(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def difference(actual, expected):
    worst = 0.0
    for a, e in zip(actual, expected):
        a, e = np.asarray(a), np.asarray(e)
        if a.shape != e.shape:
            return float("inf")
        if e.dtype.kind == "f" and e.size:
            worst = max(worst, float(np.max(np.abs(a - e)) / max(np.max(np.abs(e)), 1e-30)))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    worse = []
    print(f"{'model':<40} {'nodes':>5}  " + "  ".join(f"{tool:<24}" for tool in TOOLS))
    for name in options.models or model_cases.names():
        path = Path(name) if name.endswith(".onnx") else model_cases.make(name)
        inputs = model_cases.inputs_for(path.stem, onnx.load(path, load_external_data=False).graph)
        with tempfile.TemporaryDirectory() as folder:
            row = compare(path, inputs, options.rounds, Path(folder))
        print(f"{path.stem:<40} {row['before']:>5}  " + "  ".join(f"{text(row[tool]):<24}" for tool in TOOLS), flush=True)
        ours, peers = row["tenon"], [row[tool] for tool in TOOLS[1:] if "problem" not in row[tool]]
        if "problem" in ours or ours["difference"] > MOST_DIFFERENCE or any(p["nodes"] < ours["nodes"] for p in peers):
            worse.append(path.stem)
    print(f"\nworse than one of them: {', '.join(worse) or 'none'}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
