#!/usr/bin/env python3
"""What one more node costs: the slope between chains of 100 and 1,000 tiny Adds, in Tenon and in onnxruntime, one thread.

usage: step_overhead.py [--rounds N] [--binary build/tenon]

The Adds are of four floats, and each reads the one before it and a second input, so that nothing can be folded or merged. The pass that
fuses them is off.
Both take turns; the best round of each counts.
"""
import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from timing import ROOT, time_onnxruntime, time_tenon

SIZES = [100, 1000]


def chain(length):
    nodes = [helper.make_node("Add", [f"v{i}", "y"], [f"v{i + 1}"]) for i in range(length)]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ["v0", "y", f"v{length}"]]
    graph = helper.make_graph(nodes, "chain", info[:2], info[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def feeds():
    return {name: np.ones(4, np.float32) for name in ["v0", "y"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    options = parser.parse_args()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    best = {name: [float("inf")] * 2 for name in ["tenon", "onnxruntime"]}
    with tempfile.TemporaryDirectory() as folder:
        models = [chain(size) for size in SIZES]
        paths = [Path(folder) / f"chain{size}.onnx" for size in SIZES]
        for model, path in zip(models, paths):
            onnx.save(model, path)
        sessions = [onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"]) for model in models]
        for _ in range(options.rounds):
            for i, size in enumerate(SIZES):
                best["tenon"][i] = min(best["tenon"][i], 1e9 * time_tenon(options.binary, paths[i], 200_000 // size, "--disable", "elementwise"))
                best["onnxruntime"][i] = min(best["onnxruntime"][i], 1e9 * time_onnxruntime(sessions[i], feeds(), 0.2))
    slope = {name: (times[1] - times[0]) / (SIZES[1] - SIZES[0]) for name, times in best.items()}
    for name in best:
        print(f"{name:12} {best[name][0] / 1e3:9.1f} µs for {SIZES[0]}, {best[name][1] / 1e3:9.1f} µs for {SIZES[1]}: {slope[name]:7.1f} ns a node")
    print(f"onnxruntime / tenon: {slope['onnxruntime'] / slope['tenon']:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
