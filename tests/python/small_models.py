"""Small models for the tests of the Python package."""
import numpy as np
import onnx
from onnx import TensorProto, helper


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, initializers=(), opset=21):
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in dict(initializers).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()


def identity(kind=TensorProto.FLOAT, shape=("n",)):
    """One node that copies its input."""
    return model([helper.make_node("Identity", ["x"], ["y"])], [value("x", kind, shape)], [value("y", kind, shape)])


def linear():
    """y = x @ w + b, z = -y; x is [batch, 3]."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"]),
             helper.make_node("Neg", ["y"], ["z"])]
    return model(nodes, [value("x", TensorProto.FLOAT, ["batch", 3])],
                 [value("y", TensorProto.FLOAT, ["batch", 2]), value("z", TensorProto.FLOAT, ["batch", 2])],
                 {"w": np.arange(6, dtype=np.float32).reshape(3, 2), "b": np.array([1, -1], np.float32)})


def linear_reference(x):
    y = x @ np.arange(6, dtype=np.float32).reshape(3, 2) + np.array([1, -1], np.float32)
    return y, -y


def add():
    """sum = left + right, both [batch, width]."""
    return model([helper.make_node("Add", ["left", "right"], ["sum"])],
                 [value("left", TensorProto.FLOAT, ["batch", "width"]), value("right", TensorProto.FLOAT, ["batch", "width"])],
                 [value("sum", TensorProto.FLOAT, ["batch", "width"])])


def heavy(depth=24, size=192):
    """A chain of products that takes some milliseconds."""
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"v{i}", "w"], [f"v{i + 1}" if i + 1 < depth else "y"])
             for i in range(depth)]
    weights = np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0].astype(np.float32)
    return model(nodes, [value("x", TensorProto.FLOAT, [size, size])], [value("y", TensorProto.FLOAT, [size, size])],
                 {"w": weights})
