"""Writes model.onnx: Standardize and Clamp of domain com.example, one after the other."""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Standardize", ["x", "mean", "deviation"], ["standard"], name="standardize", domain="com.example"),
    helper.make_node("Clamp", ["standard"], ["y"], name="clamp", domain="com.example", limit=2.0),
]
graph = helper.make_graph(
    nodes, "custom_operators",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 3])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 3])],
    [numpy_helper.from_array(np.array([1, 2, 3], np.float32), "mean"),
     numpy_helper.from_array(np.array([2, 4, 8], np.float32), "deviation")])
opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.example", 1)]
onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="tenon"),
          Path(__file__).parent / "model.onnx")
