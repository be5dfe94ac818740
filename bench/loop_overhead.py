#!/usr/bin/env python3
"""What an iteration costs: a Loop of 10,000 additions, in Tenon and in onnxruntime, one thread.

usage: loop_overhead.py [--rounds N] [--iterations N] [--binary build/tenon]

Both take turns; the best round of each counts.
"""
import argparse
import sys
import tempfile
from pathlib import Path

import onnx
import onnxruntime
from onnx import TensorProto, helper
from step_overhead import feeds
from timing import ROOT, time_onnxruntime, time_tenon


def loop(iterations):
    scalar = lambda name, kind: helper.make_tensor_value_info(name, kind, [])  # noqa: E731
    vector = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])  # noqa: E731
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "y"], ["next"]), helper.make_node("Identity", ["going"], ["goes_on"])], "body",
        [scalar("i", TensorProto.INT64), scalar("going", TensorProto.BOOL), vector("state")], [scalar("goes_on", TensorProto.BOOL), vector("next")])
    count = helper.make_tensor("count", TensorProto.INT64, [], [iterations])
    graph = helper.make_graph([helper.make_node("Loop", ["count", "", "v0"], ["end"], body=body)], "loop", [vector("v0"), vector("y")],
                              [vector("end")], [count])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    options = parser.parse_args()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    model = loop(options.iterations)
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    ours = theirs = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "loop.onnx"
        onnx.save(model, path)
        for _ in range(options.rounds):
            ours = min(ours, 1e9 * time_tenon(options.binary, path, 30))
            theirs = min(theirs, 1e9 * time_onnxruntime(session, feeds(), 0.3))
    print(f"tenon {ours / options.iterations:.0f} ns an iteration, onnxruntime {theirs / options.iterations:.0f} ns: {theirs / ours:.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
