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

# Two layers, and the same in 8 bits, as a quantizer writes them that saw one odd sample: what lies between the layers has a scale for
# numbers up to 1000, and reaches 3.
DENSE = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)


def layers(names):
    x, first, hidden, second = names
    return [helper.make_node("MatMul", [x, first], ["sums"], "dense_1"), helper.make_node("Relu", ["sums"], ["hidden"], "relu"),
            helper.make_node("MatMul", [hidden, second], ["y"], "dense_2")]


def rounded(value, scale, constant=False):
    """What makes VALUE_rounded of a value, or of the integers VALUE_int8."""
    nodes = [] if constant else [helper.make_node("QuantizeLinear", [value, scale, "zero"], [f"{value}_int8"], f"{value}_quantize")]
    return nodes + [helper.make_node("DequantizeLinear", [f"{value}_int8", scale, "zero"], [f"{value}_rounded"], f"{value}_dequantize")]


save("layers", layers(["x", "w1", "hidden", "w2"]), {"x": ["rows", 4]}, {"y": ["rows", 4]}, {"w1": DENSE[0], "w2": DENSE[1]})
first, relu, second = layers(["x_rounded", "w1_rounded", "hidden_rounded", "w2_rounded"])
save("layers_int8", rounded("x", "x_scale") + rounded("w1", "w_scale", True) + [first, relu] + rounded("hidden", "hidden_scale")
     + rounded("w2", "w_scale", True) + [second], {"x": ["rows", 4]}, {"y": ["rows", 4]},
     {"x_scale": np.float32(1 / 127), "w_scale": np.float32(3 / 127), "hidden_scale": np.float32(1000 / 127), "zero": np.int8(0),
      "w1_int8": np.rint(DENSE[0] * 127 / 3).astype(np.int8), "w2_int8": np.rint(DENSE[1] * 127 / 3).astype(np.int8)})

# What they are run on.
np.save(FOLDER / "rows.npy", np.array([[1, 2, 3, 4], [0, 0, 0, 0]], np.float32))
np.save(FOLDER / "numbers.npy", np.array([1, 2, 3], np.float32))
