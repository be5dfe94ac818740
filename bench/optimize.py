#!/usr/bin/env python3
"""How long the optimiser takes on models of many nodes, and whether that grows faster than they do.

usage: optimize.py [--binary build/tenon] [--nodes 5000] [--level all]

Each model is made with a quarter of the nodes and with all of them; the last column is the quotient of both times, which
is 4 where the work grows with the nodes.
"""
import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent


def ints(name, *numbers):
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def chain(count, make):
    """Nodes that read each other's outputs; make(i, input, output) gives one or more, and their constants."""
    nodes, constants, last = [], {}, "x"
    i = 0
    while len(nodes) < count:
        added, tensors = make(i, last, f"v{i}")
        nodes += added
        constants |= {tensor.name: tensor for tensor in tensors}
        last = f"v{i}"
        i += 1
    nodes.append(helper.make_node("Relu", [last], ["y"]))
    return nodes, list(constants.values())


def identities(i, x, y):
    return [helper.make_node("Identity", [x], [y])], []


def transposes(i, x, y):
    return [helper.make_node("Transpose", [x], [f"{y}t"], perm=[0, 2, 1]), helper.make_node("Sigmoid", [f"{y}t"], [f"{y}s"]),
            helper.make_node("Transpose", [f"{y}s"], [y], perm=[0, 2, 1])], []


def dense(i, x, y):
    weights = numpy_helper.from_array(np.eye(4, dtype=np.float32) * (i % 7 + 1), f"w{i % 7}")
    bias = numpy_helper.from_array(np.full(4, i, np.float32), f"b{i}")
    return [helper.make_node("MatMul", [x, weights.name], [f"{y}m"]), helper.make_node("Add", [f"{y}m", bias.name], [f"{y}a"]),
            helper.make_node("Relu", [f"{y}a"], [y])], [weights, bias]


def shapes(i, x, y):
    """What exporters write for x.reshape(n, -1, 4)."""
    return [helper.make_node("Shape", [x], [f"{y}s"]), helper.make_node("Gather", [f"{y}s", "zero"], [f"{y}g"]),
            helper.make_node("Unsqueeze", [f"{y}g", "zeros"], [f"{y}u"]),
            helper.make_node("Concat", [f"{y}u", "minus", "four"], [f"{y}c"], axis=0),
            helper.make_node("Reshape", [x, f"{y}c"], [f"{y}r"]), helper.make_node("Relu", [f"{y}r"], [y])], [
                numpy_helper.from_array(np.array(0, np.int64), "zero"), ints("zeros", 0), ints("minus", -1), ints("four", 4)]


def shared_constant(i, x, y):
    return [helper.make_node("Mul", [x, "c"], [y])], [numpy_helper.from_array(np.array(1.5, np.float32), "c")]


def equal_constants(i, x, y):
    constant = numpy_helper.from_array(np.array(1.5, np.float32), f"c{i}")
    return [helper.make_node("Mul", [x, constant.name], [y])], [constant]


def constants(i, x, y):
    last = f"k{i - 1}" if i else "k"
    nodes = [helper.make_node("Add", [last, "k"], [f"k{i}"])]
    return nodes + [helper.make_node("Mul", [x, f"k{i}"], [y])], [numpy_helper.from_array(np.array(1, np.float32), "k")]


MODELS = [identities, transposes, dense, shapes, shared_constant, equal_constants, constants]


def seconds(binary, level, kind, count, folder):
    nodes, tensors = chain(count, kind)
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, 4])
    graph = helper.make_graph(nodes, "bench", [value], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    command = [binary, "optimize", folder / "model.onnx", "--level", level, "-o", folder / "out.onnx", "--json"]
    environment = {**os.environ, "TENON_THREADS": "1"}
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout) for _ in range(3)]
    return min(run["seconds"] for run in runs), runs[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--level", default="all")
    arguments = parser.parse_args()
    print(f"{'model':<18}{'nodes':>8}{'after':>8}{'rewrites':>10}{'ms':>9}{'growth':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in MODELS:
            small, _ = seconds(arguments.binary, arguments.level, kind, arguments.nodes // 4, Path(folder))
            large, run = seconds(arguments.binary, arguments.level, kind, arguments.nodes, Path(folder))
            print(f"{kind.__name__:<18}{run['nodes_before']:>8}{run['nodes_after']:>8}{len(run['rewrites']):>10}"
                  f"{large * 1e3:>9.1f}{large / small:>8.1f}")


if __name__ == "__main__":
    main()
