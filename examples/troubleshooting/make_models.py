"""Writes the models of docs/troubleshooting.md: each has a fault that its page finds.

usage: .venv/bin/python examples/troubleshooting/make_models.py
"""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).parent


def save(name, nodes, inputs, outputs, weights=None, opset=17):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
                              [numpy_helper.from_array(array, n) for n, array in (weights or {}).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="tenon")
    onnx.save(model, FOLDER / f"{name}.onnx")


# A normalisation that divides by zero where a row is all zeros: the export left out its epsilon.
save("norm", [helper.make_node("Mul", ["x", "x"], ["squares"], "norm/square"),
              helper.make_node("ReduceMean", ["squares"], ["mean"], "norm/mean", axes=[1], keepdims=1),
              helper.make_node("Sqrt", ["mean"], ["root"], "norm/root"),
              helper.make_node("Div", ["x", "root"], ["normal"], "norm/divide"),
              helper.make_node("MatMul", ["normal", "w"], ["y"], "dense")],
     {"x": ["rows", 4]}, {"y": ["rows", 3]}, {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)})

# The batch is a name in its inputs and a number in its Reshape.
save("baked", [helper.make_node("Reshape", ["x", "shape"], ["flat"], "flatten"),
               helper.make_node("MatMul", ["flat", "w"], ["y"], "dense")],
     {"x": ["batch", 2, 4]}, {"y": ["batch", 3]},
     {"shape": np.array([1, 8]), "w": np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)})

# Squares of numbers beyond 256 do not fit into float16.
save("large", [helper.make_node("Mul", ["x", "hundred"], ["scaled"], "scale"),
               helper.make_node("Mul", ["scaled", "scaled"], ["squares"], "square"),
               helper.make_node("Div", ["squares", "many"], ["y"], "scale_back")],
     {"x": ["n"]}, {"y": ["n"]}, {"hundred": np.array([100], np.float32), "many": np.array([5e4], np.float32)})

# What they are run on.
np.save(FOLDER / "rows.npy", np.array([[1, 2, 3, 4], [0, 0, 0, 0]], np.float32))
np.save(FOLDER / "numbers.npy", np.array([1, 2, 3], np.float32))
