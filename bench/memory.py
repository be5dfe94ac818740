#!/usr/bin/env python3
"""Peak memory of one run of each model of tests/models, beside onnxruntime's, with one thread.

What a model with a single node takes is taken off on both sides: libraries, the interpreter.

    .venv/bin/python bench/memory.py [--level LEVEL] [MODEL…]
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

# Runs commands for this process: what a process has in memory when it starts another one counts as the other one's.
LAUNCHER = """
import json, os, sys
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        command = json.loads(line)
        os.execv(command[0], command)
    _, status, usage = os.wait4(process, 0)
    print(json.dumps([status, usage.ru_maxrss * 1024]), flush=True)
"""
launcher = subprocess.Popen([sys.executable, "-S", "-c", LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from model_cases import SOURCES, inputs_for, make, names  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

LEVELS = {"none": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "all": "ORT_ENABLE_ALL"}

RUN_ONNXRUNTIME = """
import sys
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, sys.argv[2])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = dict(argument.split("=", 1) for argument in sys.argv[3:])
session.run(None, {name: numpy.load(path) for name, path in feeds.items()})
"""


def peak_of(command):
    """The most bytes that a command had in memory."""
    print(json.dumps([str(part) for part in command]), file=launcher.stdin, flush=True)
    status, peak = json.loads(launcher.stdout.readline())
    if status != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return peak


def peaks(binary, level, model, inputs, folder):
    """(of Tenon, of onnxruntime)"""
    feeds = []
    for index, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"{index}.npy", value)
        feeds.append(f"{name}={folder / f'{index}.npy'}")
    tenon = [binary, "run", model, "--level", level, "--threads", "1", "--json"]
    for feed in feeds:
        tenon += ["--input", feed]
    return peak_of(tenon), peak_of([sys.executable, "-c", RUN_ONNXRUNTIME, model, LEVELS[level], *feeds])


def write_smallest_model(path):
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "smallest", info[:1], info[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", default="extended", choices=LEVELS)
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    parser.add_argument("models", nargs="*", metavar="MODEL")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        smallest = folder / "smallest.onnx"
        write_smallest_model(smallest)
        base = peaks(arguments.binary, arguments.level, smallest, {"x": np.ones(1, np.float32)}, folder)
        print(f"{'model':40}{'file MB':>9}{'tenon MB':>10}{'ort MB':>9}{'ratio':>8}")
        higher = 0
        for model in arguments.models or names():
            path = make(model)
            graph = onnx.load(SOURCES / f"{model}.graph.onnx", load_external_data=False).graph
            ours, theirs = peaks(arguments.binary, arguments.level, path, inputs_for(model, graph), folder)
            ours, theirs = ours - base[0], theirs - base[1]
            higher += ours > theirs
            print(f"{model:40}{path.stat().st_size / 1e6:9.1f}{ours / 1e6:10.1f}{theirs / 1e6:9.1f}{ours / theirs:8.2f}"
                  f"{'  <-- higher' if ours > theirs else ''}", flush=True)
        print(f"{higher} higher than onnxruntime")


if __name__ == "__main__":
    main()
