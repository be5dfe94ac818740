#!/usr/bin/env python3
"""A chain of ten elementwise operators: as one node, one by one, and in onnxruntime.

usage: elementwise.py [--rounds N] [--threads N] [--binary build/tenon]

All take turns; the best round of each counts.
"""
import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from timing import ROOT, time_onnxruntime, time_tenon

CHEAP = [("Mul", "s"), ("Add", "x"), ("Relu",), ("Sub", "s"), ("Abs",), ("Mul", "x"), ("Neg",), ("Max", "s"), ("Div", "s"), ("Add", "x")]
COSTLY = [("Mul", "s"), ("Tanh",), ("Add", "x"), ("Exp",), ("Sub", "s"), ("Sigmoid",), ("Mul", "x"), ("Erf",), ("Sqrt",), ("Add", "s")]
CASES = [(name, size, chain) for name, chain in [("cheap", CHEAP), ("costly", COSTLY)] for size in [100, 10_000, 1_000_000]]


def model(chain, size):
    nodes = [helper.make_node(op, [f"v{i}", *more], [f"v{i + 1}"]) for i, (op, *more) in enumerate(chain)]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in ["v0", "x", f"v{len(chain)}"]]
    scalar = numpy_helper.from_array(np.array(0.7, np.float32), "s")
    graph = helper.make_graph(nodes, "chain", info[:2], info[2:], [scalar])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    options = parser.parse_args()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    print(f"{'chain':8}{'floats':>9}{'one node':>12}{'one by one':>12}{'onnxruntime':>13}  microseconds")
    with tempfile.TemporaryDirectory() as folder:
        for name, size, chain in CASES:
            path = str(Path(folder) / "chain.onnx")
            onnx.save(model(chain, size), path)
            session = onnxruntime.InferenceSession(path, settings)
            repeat = max(10, min(20_000, 20_000_000 // size // 10))
            feeds = {name: np.ones(size, np.float32) for name in ["v0", "x"]}
            best = [float("inf")] * 3
            for _ in range(options.rounds):
                times = [time_tenon(options.binary, path, repeat, threads=options.threads),
                         time_tenon(options.binary, path, repeat, "--disable", "elementwise", threads=options.threads),
                         time_onnxruntime(session, feeds, 0.3)]
                best = [min(before, 1e6 * seconds) for before, seconds in zip(best, times)]
            print(f"{name:8}{size:9}{best[0]:12.2f}{best[1]:12.2f}{best[2]:13.2f}")


if __name__ == "__main__":
    main()
