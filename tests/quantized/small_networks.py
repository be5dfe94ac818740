"""Small float networks to quantize, one of each kind, with inputs for them."""
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLES = 24


@dataclass
class Network:
    model: onnx.ModelProto
    calibration: list[dict[str, np.ndarray]]
    held_out: list[dict[str, np.ndarray]]


def made_of(text, weights, inputs):
    """The graph with opset 21 in ONNX's text format, random weights of these shapes, and random inputs of these shapes."""
    rng = np.random.default_rng(3)
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    for name, shape in weights.items():
        value = rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]) if len(shape) > 1 else 30)
        model.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    for node, number in zip(model.graph.node, range(len(model.graph.node))):
        node.name = f"{node.op_type}_{number}"
    model = onnx.shape_inference.infer_shapes(model)
    samples = [{name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()} for _ in range(SAMPLES)]
    return Network(model, samples[:SAMPLES // 2], samples[SAMPLES // 2:])


def perceptron():
    return made_of("""mlp (float[n, 40] x) => (float[n, 10] y) {
        a = Gemm(x, w1, b1)  b = Relu(a)  c = Gemm<transB=1>(b, w2, b2)  d = Sigmoid(c)  p = MatMul(d, w3)  y = Add(p, b3)
    }""", {"w1": (40, 64), "b1": (64,), "w2": (48, 64), "b2": (48,), "w3": (48, 10), "b3": (10,)}, {"x": (5, 40)})


def recurrent():
    return made_of("""lstm (float[12, n, 16] x) => (float[n, 6] y) {
        all, last, cell = LSTM<hidden_size=24>(x, w, r, b)  axes = Constant<value_ints=[0]>()
        state = Squeeze(last, axes)  p = MatMul(state, v)  y = Add(p, c)
    }""", {"w": (1, 96, 16), "r": (1, 96, 24), "b": (1, 192), "v": (24, 6), "c": (6,)}, {"x": (12, 3, 16)})


def transformer():
    return made_of("""block (float[n, 9, 32] x) => (float[n, 9, 32] y) {
        shape = Constant<value_ints=[0, 9, 4, 8]>()  back = Constant<value_ints=[0, 9, 32]>()  scale = Constant<value_float=0.3535534>()
        q0 = MatMul(x, wq)  q1 = Add(q0, bq)  q2 = Reshape(q1, shape)  q = Transpose<perm=[0, 2, 1, 3]>(q2)
        k0 = MatMul(x, wk)  k1 = Add(k0, bk)  k2 = Reshape(k1, shape)  k = Transpose<perm=[0, 2, 3, 1]>(k2)
        v0 = MatMul(x, wv)  v1 = Add(v0, bv)  v2 = Reshape(v1, shape)  v = Transpose<perm=[0, 2, 1, 3]>(v2)
        s0 = MatMul(q, k)  s1 = Mul(s0, scale)  s = Softmax(s1)  a0 = MatMul(s, v)  a1 = Transpose<perm=[0, 2, 1, 3]>(a0)
        a2 = Reshape(a1, back)  a3 = MatMul(a2, wo)  a4 = Add(a3, bo)  r = Add(x, a4)  n1 = LayerNormalization(r, g1, h1)
        f0 = MatMul(n1, w1)  f1 = Add(f0, b1)  f2 = Gelu(f1)  f3 = MatMul(f2, w2)  f4 = Add(f3, b2)  t = Add(n1, f4)
        y = LayerNormalization(t, g2, h2)
    }""", {**{f"w{name}": (32, 32) for name in "qkvo"}, **{f"b{name}": (32,) for name in "qkvo"}, "g1": (32,), "h1": (32,), "g2": (32,), "h2": (32,),
           "w1": (32, 64), "b1": (64,), "w2": (64, 32), "b2": (32,)}, {"x": (2, 9, 32)})


def convolutional():
    """The one that bench/accuracy trains, kept as it once came out: training gives other weights, and so other errors, on another machine."""
    sys.path.insert(0, str(ROOT / "bench" / "accuracy"))
    import digits
    model, held_out = onnx.load(ROOT / "tests" / "quantized" / "digits.onnx"), digits.held_out_images()
    return Network(onnx.shape_inference.infer_shapes(model), digits.calibration_images(), [{"image": held_out[i:i + 20]} for i in range(0, 200, 20)])


NETWORKS = {"convolutional": convolutional, "perceptron": perceptron, "recurrent": recurrent, "transformer": transformer}
