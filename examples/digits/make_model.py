#!/usr/bin/env python3
"""Trains the digit reader and draws the picture that `make demo` reads. Run by `make digits`; takes about a quarter of a minute.

Writes, beside this file:
    digits.onnx    picture: uint8 [height, 80]  ->  digits: int64 [lines, 5], confidence: float [lines, 5]
    picture.pgm    two lines of five handwritten digits that the model was not trained on
    picture.png    the same, four times as large, for looking at

Everything is seeded: the same versions of numpy, onnx and scikit-learn on the same machine give the same files.
"""
import struct
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent
CELL = 16  # pixels of a digit's side
PER_LINE = 5
TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
EPOCHS = 40
BATCH = 32
RNG = np.random.default_rng(7)


# --- data ------------------------------------------------------------------------------------------------------------

def enlarge(images):
    """[n, 8, 8] with values 0…16 to [n, 16, 16] with values 0…255, linearly interpolated."""
    position = np.clip((np.arange(CELL) + 0.5) / 2 - 0.5, 0, 7)
    low = np.floor(position).astype(int)
    high = np.minimum(low + 1, 7)
    part = (position - low)[:, None]
    rows = images[:, low, :] * (1 - part) + images[:, high, :] * part
    return (rows[:, :, low] * (1 - part.T) + rows[:, :, high] * part.T) * (255 / 16)


def load(held_out=300):
    """Training and held-out images and labels: the last ones of scikit-learn's 1797 are held out."""
    data = load_digits()
    images = np.rint(enlarge(data.images)).astype(np.uint8)
    return images[:-held_out], data.target[:-held_out], images[-held_out:], data.target[-held_out:]


# --- the network, forwards and backwards, in numpy -------------------------------------------------------------------

def patches(x):
    """[n, c, h, w] to [n, h, w, c * 9]: the 3 x 3 surroundings of every pixel, zero outside."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(x.shape[0], x.shape[2], x.shape[3], -1)


def convolve(x, weight, bias):
    columns = patches(x)
    y = columns @ weight.reshape(weight.shape[0], -1).T + bias
    return y.transpose(0, 3, 1, 2), columns


def convolve_backward(columns, weight, dy):
    """The gradients of weight and bias."""
    flat = dy.transpose(0, 2, 3, 1).reshape(-1, dy.shape[1])
    return (flat.T @ columns.reshape(-1, columns.shape[-1])).reshape(weight.shape), flat.sum(axis=0)


def convolve_backward_to_input(weight, dy):
    turned = weight[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)  # the gradient of a convolution is one with turned weights
    return convolve(dy, turned, np.zeros(weight.shape[1], np.float32))[0]


def pool(x):
    """The maximum of each 2 x 2 square, and which pixels were it."""
    n, c, h, w = x.shape
    squares = x.reshape(n, c, h // 2, 2, w // 2, 2)
    y = squares.max(axis=(3, 5))
    chosen = squares == y[:, :, :, None, :, None]
    return y, chosen / chosen.sum(axis=(3, 5), keepdims=True)


def pool_backward(chosen, dy):
    n, c, h, _, w, _ = chosen.shape
    return (chosen * dy[:, :, :, None, :, None]).reshape(n, c, h * 2, w * 2).astype(np.float32)


def normal(*shape, fan_in):
    return (RNG.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)


def start():
    return {
        "conv1.weight": normal(8, 1, 3, 3, fan_in=9), "conv1.bias": np.zeros(8, np.float32),
        "conv2.weight": normal(16, 8, 3, 3, fan_in=72), "conv2.bias": np.zeros(16, np.float32),
        "classes.weight": normal(256, 10, fan_in=256), "classes.bias": np.zeros(10, np.float32),
    }


def loss_backward(logits, labels):
    """The gradient of the cross entropy."""
    likely = np.exp(logits - logits.max(axis=1, keepdims=True))
    likely /= likely.sum(axis=1, keepdims=True)
    likely[np.arange(len(labels)), labels] -= 1
    return likely / len(labels)


def gradients(p, x, labels):
    a1, columns1 = convolve(x, p["conv1.weight"], p["conv1.bias"])
    p1, chosen1 = pool(np.maximum(a1, 0))
    a2, columns2 = convolve(p1, p["conv2.weight"], p["conv2.bias"])
    p2, chosen2 = pool(np.maximum(a2, 0))
    flat = p2.reshape(len(x), -1)
    dlogits = loss_backward(flat @ p["classes.weight"] + p["classes.bias"], labels)
    g = {"classes.weight": flat.T @ dlogits, "classes.bias": dlogits.sum(axis=0)}
    da2 = pool_backward(chosen2, (dlogits @ p["classes.weight"].T).reshape(p2.shape)) * (a2 > 0)
    g["conv2.weight"], g["conv2.bias"] = convolve_backward(columns2, p["conv2.weight"], da2)
    da1 = pool_backward(chosen1, convolve_backward_to_input(p["conv2.weight"], da2)) * (a1 > 0)
    g["conv1.weight"], g["conv1.bias"] = convolve_backward(columns1, p["conv1.weight"], da1)
    return g


def shifted(images):
    """Each image moved by up to two pixels, so that the model does not depend on the exact place."""
    moved = np.zeros_like(images)
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    for i, (dy, dx) in enumerate(RNG.integers(0, 5, (len(images), 2))):
        moved[i] = padded[i, dy:dy + CELL, dx:dx + CELL]
    return moved


def train(images, labels, p, gradients, epochs=EPOCHS):
    """Adam, the usual settings, from the parameters p."""
    mean = {k: np.zeros_like(v) for k, v in p.items()}
    square = {k: np.zeros_like(v) for k, v in p.items()}
    step = 0
    for epoch in range(epochs):
        order = RNG.permutation(len(images))
        moved = shifted(images).astype(np.float32)[:, None] / 255
        rate = 2e-3 * (1 - epoch / epochs)
        for begin in range(0, len(order), BATCH):
            batch = order[begin:begin + BATCH]
            step += 1
            for name, g in gradients(p, moved[batch], labels[batch]).items():
                mean[name] = 0.9 * mean[name] + 0.1 * g
                square[name] = 0.999 * square[name] + 0.001 * g * g
                change = mean[name] / (1 - 0.9**step) / (np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8)
                p[name] = (p[name] - rate * change).astype(np.float32)
    return p


# --- the model as ONNX -----------------------------------------------------------------------------------------------

def as_onnx(p):
    """The whole way from the picture to the digits, so that whoever runs the model needs to know nothing about it."""
    constants = {
        "white": np.array(255, np.float32),
        "grid": np.array([-1, CELL, PER_LINE, CELL], np.int64),
        "cells": np.array([-1, 1, CELL, CELL], np.int64),
        "line": np.array([-1, PER_LINE], np.int64),
        "class_axis": np.array([1], np.int64),
    }
    node = helper.make_node
    nodes = [
        node("Cast", ["picture"], ["pixels"], "to_float", to=TensorProto.FLOAT),
        node("Div", ["pixels", "white"], ["brightness"], "scale"),
        node("Reshape", ["brightness", "grid"], ["lines_and_columns"], "cut"),
        node("Transpose", ["lines_and_columns"], ["digit_by_digit"], "bring_cells_together", perm=[0, 2, 1, 3]),
        node("Reshape", ["digit_by_digit", "cells"], ["images"], "one_image_per_digit"),
        node("Conv", ["images", "conv1.weight", "conv1.bias"], ["strokes"], "find_strokes",
             kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", ["strokes"], ["strokes_found"], "keep_strokes"),
        node("MaxPool", ["strokes_found"], ["strokes_small"], "shrink_strokes", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["strokes_small", "conv2.weight", "conv2.bias"], ["shapes"], "find_shapes",
             kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", ["shapes"], ["shapes_found"], "keep_shapes"),
        node("MaxPool", ["shapes_found"], ["shapes_small"], "shrink_shapes", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["shapes_small"], ["features"], "flatten", axis=1),
        node("Gemm", ["features", "classes.weight", "classes.bias"], ["scores"], "score_digits"),
        node("Softmax", ["scores"], ["likelihoods"], "to_likelihoods", axis=1),
        node("ArgMax", ["likelihoods"], ["best"], "pick_best", axis=1, keepdims=0),
        node("ReduceMax", ["likelihoods", "class_axis"], ["best_likelihood"], "how_sure", keepdims=0),
        node("Reshape", ["best", "line"], ["digits"], "digits_by_line"),
        node("Reshape", ["best_likelihood", "line"], ["confidence"], "confidence_by_line"),
    ]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("picture", TensorProto.UINT8, ["height", CELL * PER_LINE])],
        [helper.make_tensor_value_info("digits", TensorProto.INT64, ["lines", PER_LINE]),
         helper.make_tensor_value_info("confidence", TensorProto.FLOAT, ["lines", PER_LINE])],
        [numpy_helper.from_array(value, name) for name, value in {**constants, **p}.items()],
        doc_string="Reads lines of five handwritten digits, each 16 x 16 pixels, white on black.")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8, producer_name="tenon",
                              doc_string="See examples/digits/README.md.")
    onnx.checker.check_model(model, full_check=True)
    return model


# --- the picture -----------------------------------------------------------------------------------------------------

def draw(images, labels):
    """TEXT in lines, each digit the next one of its kind among the images."""
    left = {digit: iter(images[labels == digit]) for digit in range(10)}
    cells = [next(left[digit]) for digit in TEXT]
    return np.vstack([np.hstack(cells[i:i + PER_LINE]) for i in range(0, len(cells), PER_LINE)])


def write_pgm(path, picture):
    height, width = picture.shape
    path.write_bytes(b"P5\n%d %d\n255\n" % (width, height) + picture.tobytes())


def write_png(path, picture):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = picture.shape
    rows = b"".join(b"\0" + row.tobytes() for row in picture)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def main():
    train_images, train_labels, test_images, test_labels = load()
    model = as_onnx(train(train_images, train_labels, start(), gradients))
    onnx.save(model, HERE / "digits.onnx")
    picture = draw(test_images, test_labels)
    write_pgm(HERE / "picture.pgm", picture)
    write_png(HERE / "picture.png", picture.repeat(4, axis=0).repeat(4, axis=1))

    import onnxruntime
    session = onnxruntime.InferenceSession(HERE / "digits.onnx", providers=["CPUExecutionProvider"])
    lines = test_images.reshape(-1, PER_LINE, CELL, CELL).transpose(0, 2, 1, 3).reshape(-1, PER_LINE * CELL)
    right = (session.run(["digits"], {"picture": lines})[0].ravel() == test_labels).sum()
    print(f"{right} of {len(test_labels)} held-out digits are read correctly")
    digits, confidence = session.run(None, {"picture": picture})
    print(digits, confidence.round(3), sep="\n")


if __name__ == "__main__":
    main()
