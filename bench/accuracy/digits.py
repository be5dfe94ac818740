"""Handwritten digits of scikit-learn, read by a convolutional network that is trained here."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from task import BUILD, ROOT, Task
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(ROOT / "examples" / "digits"))

import make_model as example  # noqa: E402

HELD_OUT = 500
CALIBRATION = 100
EPOCHS = 20
WIDTHS = {"conv1": 8, "conv2": 24, "hidden": 96}


def start():
    one, two, hidden = WIDTHS.values()
    features = two * 16  # 16 x 16 pixels, halved twice
    return {
        "conv1.weight": example.normal(one, 1, 3, 3, fan_in=9), "conv1.bias": np.zeros(one, np.float32),
        "conv2.weight": example.normal(two, one, 3, 3, fan_in=9 * one), "conv2.bias": np.zeros(two, np.float32),
        "hidden.weight": example.normal(features, hidden, fan_in=features), "hidden.bias": np.zeros(hidden, np.float32),
        "classes.weight": example.normal(hidden, 10, fan_in=hidden), "classes.bias": np.zeros(10, np.float32),
    }


def gradients(p, x, labels):
    a1, columns1 = example.convolve(x, p["conv1.weight"], p["conv1.bias"])
    p1, chosen1 = example.pool(np.maximum(a1, 0))
    a2, columns2 = example.convolve(p1, p["conv2.weight"], p["conv2.bias"])
    p2, chosen2 = example.pool(np.maximum(a2, 0))
    flat = p2.reshape(len(x), -1)
    hidden = np.maximum(flat @ p["hidden.weight"] + p["hidden.bias"], 0)

    dlogits = example.loss_backward(hidden @ p["classes.weight"] + p["classes.bias"], labels)
    dhidden = (dlogits @ p["classes.weight"].T) * (hidden > 0)
    g = {"classes.weight": hidden.T @ dlogits, "classes.bias": dlogits.sum(axis=0),
         "hidden.weight": flat.T @ dhidden, "hidden.bias": dhidden.sum(axis=0)}
    da2 = example.pool_backward(chosen2, (dhidden @ p["hidden.weight"].T).reshape(p2.shape)) * (a2 > 0)
    g["conv2.weight"], g["conv2.bias"] = example.convolve_backward(columns2, p["conv2.weight"], da2)
    da1 = example.pool_backward(chosen1, example.convolve_backward_to_input(p["conv2.weight"], da2)) * (a1 > 0)
    g["conv1.weight"], g["conv1.bias"] = example.convolve_backward(columns1, p["conv1.weight"], da1)
    return g


def as_onnx(p):
    node = helper.make_node
    nodes = []
    for number, image in ((1, "image"), (2, "pool1")):
        name = f"conv{number}"
        nodes += [node("Conv", [image, f"{name}.weight", f"{name}.bias"], [name], name, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                  node("Relu", [name], [f"relu{number}"], f"relu{number}"),
                  node("MaxPool", [f"relu{number}"], [f"pool{number}"], f"pool{number}", kernel_shape=[2, 2], strides=[2, 2])]
    nodes += [node("Flatten", ["pool2"], ["features"], "flatten", axis=1),
              node("MatMul", ["features", "hidden.weight"], ["hidden.product"], "hidden"),
              node("Add", ["hidden.product", "hidden.bias"], ["hidden.sum"], "hidden_bias"),
              node("Relu", ["hidden.sum"], ["hidden.relu"], "hidden_relu"),
              node("MatMul", ["hidden.relu", "classes.weight"], ["classes.product"], "classes"),
              node("Add", ["classes.product", "classes.bias"], ["scores"], "classes_bias")]
    graph = helper.make_graph(
        nodes, "digits", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 1, 16, 16])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(value, name) for name, value in p.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def as_input(images):
    return images[:, None].astype(np.float32) / 255


def held_out_images():
    return as_input(example.load(HELD_OUT)[2])


def calibration_images():
    images = example.load(HELD_OUT)[0]
    return [{"image": as_input(images[i:i + 1])} for i in range(CALIBRATION)]


def make():
    images, labels, held_out, held_out_labels = example.load(HELD_OUT)
    path = BUILD / "digits.onnx"
    if not path.exists():
        with threadpool_limits(1):  # the matrices are too small for several threads
            onnx.save(as_onnx(example.train(images, labels, start(), gradients, EPOCHS)), path)

    def evaluate(run):
        return float((run({"image": as_input(held_out)})[0].argmax(axis=1) == held_out_labels).mean())

    return Task("digits", f"share of {HELD_OUT} held-out digits read rightly", path, calibration_images(), evaluate)
