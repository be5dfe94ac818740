#!/usr/bin/env python3
"""What running branches side by side gives: models of many small branches with and without --parallel-branches, and in onnxruntime with its
sequential and parallel execution modes.

usage: branches.py [--branches N] [--threads N] [--rounds N] [--binary build/tenon]

All take turns; the best round of each counts.
"""
import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from timing import ROOT, time_onnxruntime, time_tenon

LENGTH = 6


def model(branches, weight, node, join, shape):
    """Chains of `node`s with weights of their own, joined at the end."""
    random = np.random.default_rng(1)
    nodes, weights, ends = [], [], []
    for branch in range(branches):
        last = "x"
        for i in range(LENGTH):
            name = f"b{branch}_{i}"
            weights.append(numpy_helper.from_array((random.standard_normal(weight) * 0.05).astype(np.float32), f"w_{name}"))
            nodes.append(node(last, f"w_{name}", f"{name}_linear"))
            nodes.append(helper.make_node("Relu", [f"{name}_linear"], [name]))
            last = name
        ends.append(last)
    nodes.append(helper.make_node("Concat", ends, ["y"], axis=join))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "branches", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def matmuls(rows, size):
    def node(x, w, y):
        return helper.make_node("MatMul", [x, w], [y])

    return lambda branches: model(branches, (size, size), node, 1, [rows, size])


def convs(channels, size):
    def node(x, w, y):
        return helper.make_node("Conv", [x, w], [y], pads=[1, 1, 1, 1])

    return lambda branches: model(branches, (channels, channels, 3, 3), node, 1, [1, channels, size, size])


MODELS = {
    "MatMul 1x64x64": matmuls(1, 64),
    "MatMul 8x128x128": matmuls(8, 128),
    "MatMul 64x256x256": matmuls(64, 256),
    "MatMul 256x512x512": matmuls(256, 512),
    "Conv 3x3, 16 channels, 14x14": convs(16, 14),
    "Conv 3x3, 32 channels, 28x28": convs(32, 28),
    "Conv 3x3, 64 channels, 56x56": convs(64, 56),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--branches", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    options = parser.parse_args()
    print(f"µs a run, {options.branches} branches of {LENGTH}, {options.threads} threads")
    print(f"{'':32}{'tenon':>10}{'side by side':>14}{'onnxruntime':>14}{'parallel mode':>15}")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in MODELS.items():
            proto, path = make(options.branches), Path(folder) / "model.onnx"
            onnx.save(proto, path)
            feeds = {"x": np.ones([dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim], np.float32)}
            sessions = []
            for mode in [onnxruntime.ExecutionMode.ORT_SEQUENTIAL, onnxruntime.ExecutionMode.ORT_PARALLEL]:
                settings = onnxruntime.SessionOptions()
                settings.execution_mode = mode
                settings.intra_op_num_threads = settings.inter_op_num_threads = options.threads
                sessions.append(onnxruntime.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"]))
            once = time_tenon(options.binary, path, 3, threads=options.threads)
            repeat = max(5, int(0.2 / once))
            best = [float("inf")] * 4
            for _ in range(options.rounds):
                for i, flags in enumerate([[], ["--parallel-branches"]]):
                    best[i] = min(best[i], time_tenon(options.binary, path, repeat, *flags, threads=options.threads))
                for i, session in enumerate(sessions):
                    best[2 + i] = min(best[2 + i], time_onnxruntime(session, feeds, 0.2))
            print(f"{name:32}{1e6 * best[0]:10.1f}{1e6 * best[1]:14.1f}{1e6 * best[2]:14.1f}{1e6 * best[3]:15.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
