"""What bench/operators.py times: one node of each operator, with sizes as real models have them."""
from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto, helper

ML = "ai.onnx.ml"


@dataclass
class Case:
    operator: str
    what: str  # what is special about it
    inputs: list
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    opset: int = 21
    domain: str = ""


class Input:
    def __init__(self, *shape, low=-2.0, high=2.0, dtype=np.float32, values=None, constant=False):
        self.shape, self.low, self.high, self.dtype, self.values, self.constant = shape, low, high, dtype, values, constant

    def draw(self, rng):
        if self.values is not None:
            return np.array(self.values, dtype=self.dtype)
        if self.dtype == np.str_:
            return np.array([f"word {i % 97}" for i in range(int(np.prod(self.shape)))], dtype=object).reshape(self.shape)
        if self.dtype == np.bool_:
            return rng.random(self.shape) < 0.5
        if np.issubdtype(self.dtype, np.floating):
            return rng.uniform(self.low, self.high, self.shape).astype(self.dtype)
        return rng.integers(int(self.low), int(self.high) + 1, self.shape).astype(self.dtype)


def f(*shape, **more):
    return Input(*shape, **more)


def weights(*shape, **more):
    return Input(*shape, low=-0.1, high=0.1, constant=True, **more)


def ints(*values):
    return Input(values=values, dtype=np.int64, constant=True)


def u8(*shape, **more):
    return Input(*shape, low=0, high=255, dtype=np.uint8, **more)


def index(*shape, high):
    return Input(*shape, low=0, high=high, dtype=np.int64)


def truth(*shape):
    return Input(*shape, dtype=np.bool_)


IMAGE, TOKENS = (1, 64, 56, 56), (1, 128, 768)
UNARY = {name: {} for name in
         ["Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "HardSwish",
          "Identity", "IsInf", "IsNaN", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
          "Softsign", "Sqrt", "Tan", "Tanh"]}
UNARY |= {"Elu": {"alpha": 0.5}, "Selu": {}, "Celu": {"alpha": 0.7}, "LeakyRelu": {"alpha": 0.1}, "HardSigmoid": {}, "ThresholdedRelu": {},
          "Shrink": {"lambd": 0.5}, "Gelu": {}}
RANGES = {"Acos": (-1, 1), "Asin": (-1, 1), "Acosh": (1, 4), "Atanh": (-0.9, 0.9), "Log": (0.1, 5), "Sqrt": (0, 5)}
BINARY = ["Add", "Sub", "Mul", "Div", "PRelu", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]
LOGIC = ["And", "Or", "Xor"]
BITS = ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]
REDUCE = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
          "ReduceSumSquare"]

# (operator, what is special, inputs, attributes, number of outputs, opset, domain)
CASES = [(name, "", [f(*IMAGE, low=RANGES.get(name, (-2, 2))[0], high=RANGES.get(name, (-2, 2))[1])], attributes)
         for name, attributes in UNARY.items()]
CASES += [(name, "", [f(*IMAGE, low=0.5), f(*IMAGE, low=0.5)], {}) for name in BINARY]
CASES += [(name, "by channel", [f(*IMAGE, low=0.5), f(64, 1, 1, low=0.5)], {}) for name in ["Add", "Mul"]]
CASES += [(name, "", [truth(*IMAGE), truth(*IMAGE)], {}) for name in LOGIC]
CASES += [(name, "", [Input(*IMAGE, dtype=np.int32, low=0, high=1000)] * 2, {}) for name in BITS]
CASES += [(name, "last axis", [f(*TOKENS, low=0.1), ints(-1)], {}) for name in REDUCE]
CASES += [(name, "spatial", [f(*IMAGE, low=0.1), ints(2, 3)], {}) for name in ["ReduceMean", "ReduceMax", "ReduceSum"]]
CASES += [
    ("Pow", "square", [f(*IMAGE), Input(values=2, dtype=np.float32, constant=True)], {}),
    ("Pow", "2.5", [f(*IMAGE, low=0.1), Input(values=2.5, dtype=np.float32, constant=True)], {}),
    ("Mod", "int64", [index(*IMAGE, high=1000), Input(*IMAGE, low=1, high=7, dtype=np.int64)], {}),
    ("Mod", "fmod", [f(*IMAGE), f(*IMAGE, low=0.5)], {"fmod": 1}),
    ("BitShift", "", [Input(*IMAGE, low=0, high=100, dtype=np.uint32), Input(*IMAGE, low=0, high=7, dtype=np.uint32)], {"direction": "LEFT"}),
    ("BitwiseNot", "", [Input(*IMAGE, dtype=np.int32, low=0, high=1000)], {}),
    ("Not", "", [truth(*IMAGE)], {}),
    ("Max", "", [f(*IMAGE), f(*IMAGE)], {}), ("Min", "", [f(*IMAGE), f(*IMAGE)], {}),
    ("Sum", "", [f(*IMAGE), f(*IMAGE), f(*IMAGE)], {}), ("Mean", "", [f(*IMAGE), f(*IMAGE), f(*IMAGE)], {}),
    ("Clip", "", [f(*IMAGE), Input(values=0, dtype=np.float32, constant=True), Input(values=1, dtype=np.float32, constant=True)], {}),
    ("Where", "", [truth(*IMAGE), f(*IMAGE), f(*IMAGE)], {}),
    ("Where", "mask", [truth(1, 1, 128, 128), f(1, 12, 128, 128), Input(values=-1e9, dtype=np.float32, constant=True)], {}),
    ("Cast", "to float16", [f(*IMAGE)], {"to": 10}), ("Cast", "to int64", [f(*IMAGE)], {"to": 7}), ("Cast", "from uint8", [u8(*IMAGE)], {"to": 1}),
    ("CumSum", "", [f(*TOKENS), Input(values=1, dtype=np.int64, constant=True)], {}),
    ("ArgMax", "", [f(128, 50257)], {"axis": -1}), ("ArgMin", "first axis", [f(256, 768)], {"axis": 0}),
    ("Softmax", "attention", [f(1, 12, 128, 128)], {}), ("Softmax", "vocabulary", [f(16, 50257)], {}),
    ("Softmax", "middle axis", [f(1, 21, 64, 64)], {"axis": 1}),
    ("LogSoftmax", "", [f(16, 50257)], {}), ("Hardmax", "", [f(128, 768)], {}),
    ("MatMul", "small", [f(128, 64), f(64, 128)], {}), ("MatMul", "weights", [f(*TOKENS), weights(768, 768)], {}),
    ("MatMul", "batched", [f(12, 128, 64), f(12, 64, 128)], {}), ("MatMul", "vector", [f(1, 768), weights(768, 3072)], {}),
    ("Gemm", "", [f(32, 1024), weights(1000, 1024), weights(1000)], {"transB": 1}),
    ("Conv", "3x3", [f(*IMAGE), weights(64, 64, 3, 3), weights(64)], {"pads": [1, 1, 1, 1]}),
    ("Conv", "1x1", [f(1, 256, 28, 28), weights(128, 256, 1, 1)], {}),
    ("Conv", "stem", [f(1, 3, 224, 224), weights(64, 3, 7, 7)], {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
    ("Conv", "depthwise", [f(1, 96, 56, 56), weights(96, 1, 3, 3)], {"pads": [1, 1, 1, 1], "group": 96}),
    ("Conv", "depthwise stride 2", [f(1, 96, 56, 56), weights(96, 1, 3, 3)], {"pads": [1, 1, 1, 1], "group": 96, "strides": [2, 2]}),
    ("Conv", "1d", [f(1, 80, 500), weights(256, 80, 3)], {"pads": [1, 1]}),
    ("Conv", "grouped", [f(1, 64, 28, 28), weights(64, 8, 3, 3)], {"pads": [1, 1, 1, 1], "group": 8}),
    ("ConvTranspose", "", [f(1, 64, 28, 28), weights(64, 32, 2, 2)], {"strides": [2, 2]}),
    ("ConvInteger", "", [u8(1, 32, 28, 28), Input(32, 32, 3, 3, dtype=np.uint8, low=0, high=255, constant=True)], {"pads": [1, 1, 1, 1]}),
    ("MatMulInteger", "", [u8(128, 768), Input(768, 768, dtype=np.uint8, low=0, high=255, constant=True)], {}),
    ("MaxPool", "3x3 stride 2", [f(1, 64, 112, 112)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("MaxPool", "5x5", [f(1, 128, 20, 20)], {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}),
    ("AveragePool", "", [f(1, 64, 56, 56)], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("LpPool", "", [f(1, 64, 56, 56)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("GlobalAveragePool", "", [f(1, 512, 14, 14)], {}), ("GlobalMaxPool", "", [f(1, 512, 14, 14)], {}),
    ("BatchNormalization", "", [f(*IMAGE), weights(64), weights(64), weights(64), Input(64, low=0.5, high=1.0, constant=True)], {}),
    ("InstanceNormalization", "", [f(*IMAGE), weights(64), weights(64)], {}),
    ("LayerNormalization", "", [f(*TOKENS), weights(768), weights(768)], {}),
    ("GroupNormalization", "", [f(*IMAGE), weights(64), weights(64)], {"num_groups": 8}),
    ("LRN", "", [f(1, 96, 55, 55)], {"size": 5}), ("LpNormalization", "", [f(128, 768)], {}),
    ("MeanVarianceNormalization", "", [f(*IMAGE)], {}),
    ("LSTM", "", [f(50, 1, 128), weights(1, 512, 128), weights(1, 512, 128)], {"hidden_size": 128}),
    ("GRU", "", [f(50, 1, 128), weights(1, 384, 128), weights(1, 384, 128)], {"hidden_size": 128}),
    ("RNN", "", [f(50, 1, 128), weights(1, 128, 128), weights(1, 128, 128)], {"hidden_size": 128}),
    ("Transpose", "heads", [f(1, 128, 12, 64)], {"perm": [0, 2, 1, 3]}), ("Transpose", "last two", [f(12, 128, 64)], {"perm": [0, 2, 1]}),
    ("Transpose", "NCHW to NHWC", [f(*IMAGE)], {"perm": [0, 2, 3, 1]}),
    ("Reshape", "", [f(*IMAGE), ints(1, -1)], {}), ("Flatten", "", [f(*IMAGE)], {}),
    ("Concat", "channels", [f(1, 64, 56, 56), f(1, 32, 56, 56)], {"axis": 1}), ("Concat", "last", [f(128, 768), f(128, 768)], {"axis": -1}),
    ("Slice", "", [f(*IMAGE), ints(0), ints(32), ints(1)], {}),
    ("Slice", "strided", [f(*IMAGE), ints(0, 0), ints(56, 56), ints(2, 3), ints(2, 2)], {}),
    ("Split", "", [f(128, 2304), ints(768, 768, 768)], {"axis": -1}),
    ("Pad", "constant", [f(*IMAGE), ints(0, 0, 1, 1, 0, 0, 1, 1)], {}), ("Pad", "reflect", [f(*IMAGE), ints(0, 0, 1, 1, 0, 0, 1, 1)], {"mode": "reflect"}),
    ("Expand", "", [f(1, 12, 1, 128), ints(1, 12, 128, 128)], {}), ("Tile", "", [f(1, 64, 28, 28), ints(1, 1, 2, 2)], {}),
    ("Gather", "embedding", [weights(30522, 768), index(1, 128, high=30521)], {}), ("Gather", "last axis", [f(512, 512), index(256, high=511)], {"axis": 1}),
    ("GatherElements", "", [f(256, 512), index(256, 512, high=255)], {}), ("GatherND", "", [f(64, 64, 128), index(1000, 2, high=63)], {}),
    ("ScatterElements", "", [f(256, 512), index(256, 512, high=255), f(256, 512)], {"reduction": "add"}),
    ("ScatterND", "", [f(64, 64, 128), index(1000, 2, high=63), f(1000, 128)], {}),
    ("OneHot", "", [index(1000, high=99), Input(values=100, dtype=np.int64, constant=True), Input(values=[0, 1], dtype=np.float32, constant=True)], {}),
    ("TopK", "vocabulary", [f(1, 50257), ints(50)], {}), ("TopK", "detections", [f(1, 8400), ints(300)], {}),
    ("NonZero", "", [truth(512, 512)], {}), ("Unique", "", [index(20000, high=5000)], {"sorted": 1}),
    ("Compress", "", [f(1000, 256), truth(1000)], {"axis": 0}), ("DepthToSpace", "", [f(1, 64, 56, 56)], {"blocksize": 2}),
    ("SpaceToDepth", "", [f(1, 64, 56, 56)], {"blocksize": 2}), ("Trilu", "", [f(1, 512, 512)], {}), ("EyeLike", "", [f(512, 512)], {}),
    ("ReverseSequence", "", [f(128, 8, 256), Input(8, low=1, high=128, dtype=np.int64)], {}),
    ("Range", "", [Input(values=0, dtype=np.int64), Input(values=100000, dtype=np.int64), Input(values=1, dtype=np.int64)], {}),
    ("ConstantOfShape", "", [Input(values=[512, 512], dtype=np.int64)], {}),
    ("Resize", "linear", [f(1, 32, 56, 56), None, Input(values=[1, 1, 2, 2], dtype=np.float32, constant=True)], {"mode": "linear"}),
    ("Resize", "nearest", [f(1, 64, 40, 40), None, Input(values=[1, 1, 2, 2], dtype=np.float32, constant=True)],
     {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    ("Resize", "cubic", [f(1, 3, 112, 112), None, Input(values=[1, 1, 2, 2], dtype=np.float32, constant=True)], {"mode": "cubic"}),
    ("GridSample", "", [f(1, 32, 56, 56), f(1, 56, 56, 2, low=-1, high=1)], {}),
    ("RoiAlign", "", [f(1, 64, 50, 50), f(100, 4, low=0, high=50), index(100, high=0)], {"output_height": 7, "output_width": 7, "sampling_ratio": 2}),
    ("NonMaxSuppression", "", [f(1, 1000, 4, low=0, high=1), f(1, 1, 1000, low=0, high=1), ints(100), Input(values=[0.5], dtype=np.float32),
                               Input(values=[0.3], dtype=np.float32)], {}),
    ("Einsum", "", [f(1, 12, 128, 64), f(1, 12, 128, 64)], {"equation": "bhid,bhjd->bhij"}), ("Det", "", [f(1000, 4, 4)], {}),
    ("QuantizeLinear", "", [f(*IMAGE), Input(values=0.02, dtype=np.float32, constant=True), Input(values=128, dtype=np.uint8, constant=True)], {}),
    ("DequantizeLinear", "", [u8(*IMAGE), Input(values=0.02, dtype=np.float32, constant=True), Input(values=128, dtype=np.uint8, constant=True)], {}),
    ("DequantizeLinear", "by channel", [Input(768, 768, low=-100, high=100, dtype=np.int8), weights(768)], {"axis": 0}),
    ("DynamicQuantizeLinear", "", [f(*IMAGE)], {}), ("Size", "", [f(*IMAGE)], {}), ("Shape", "", [f(*IMAGE)], {}),
    ("Dropout", "", [f(*IMAGE)], {}), ("SoftmaxCrossEntropyLoss", "", [f(128, 1000), index(128, high=999)], {}),
    ("MaxRoiPool", "", [f(1, 64, 50, 50), Input(values=[[0, 0, 0, 20, 20]] * 50, dtype=np.float32)], {"pooled_shape": [7, 7]}),
    ("CenterCropPad", "", [f(*IMAGE), ints(48, 48)], {"axes": [2, 3]}), ("Col2Im", "", [f(1, 64 * 9, 784), ints(28, 28), ints(3, 3)], {"pads": [1, 1, 1, 1]}),
]
OUTPUTS = {"TopK": 2, "Split": 3, "DynamicQuantizeLinear": 3, "LSTM": 3, "GRU": 2, "RNN": 2}
CASES = [Case(*case, outputs=OUTPUTS.get(case[0], 1)) for case in CASES]


def half(*shape, **more):
    return f(*shape, dtype=np.float16, **more)


def text(*shape):
    return Input(*shape, dtype=np.str_)


def scalar(value, dtype=np.float32):
    return Input(values=value, dtype=dtype, constant=True)


def body(operator):
    """A subgraph for Scan: state + slice, given out as the state and as what is collected."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [256]) for name in ["state", "slice", "next", "collected"]]
    nodes = [helper.make_node(operator, ["state", "slice"], ["next"]), helper.make_node("Identity", ["next"], ["collected"])]
    return helper.make_graph(nodes, "body", info[:2], info[2:])


def trees(count, depth, features, classes=0):
    """Attributes of a forest of full trees."""
    rng = np.random.default_rng(1)
    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    tree = [(t, n) for t in range(count) for n in range(nodes)]
    leaves = [(t, n) for t, n in tree if n >= inner]
    kind = "class" if classes else "target"
    attributes = {
        "nodes_treeids": [t for t, _ in tree], "nodes_nodeids": [n for _, n in tree],
        "nodes_modes": ["BRANCH_LEQ" if n < inner else "LEAF" for _, n in tree],
        "nodes_featureids": rng.integers(0, features, len(tree)).tolist(), "nodes_values": rng.uniform(-1, 1, len(tree)).tolist(),
        "nodes_truenodeids": [2 * n + 1 if n < inner else 0 for _, n in tree],
        "nodes_falsenodeids": [2 * n + 2 if n < inner else 0 for _, n in tree],
        f"{kind}_treeids": [t for t, _ in leaves], f"{kind}_nodeids": [n for _, n in leaves],
        f"{kind}_ids": [i % max(1, classes) for i in range(len(leaves))], f"{kind}_weights": rng.uniform(-1, 1, len(leaves)).tolist(),
    }
    return attributes | ({"classlabels_int64s": list(range(classes)), "post_transform": "SOFTMAX"} if classes else {"n_targets": 1})


def support_vectors(count, features):
    rng = np.random.default_rng(2)
    return {"kernel_type": "RBF", "kernel_params": [0.1, 0.0, 3.0], "rho": [0.2], "coefficients": rng.uniform(-1, 1, count).tolist(),
            "support_vectors": rng.uniform(-1, 1, count * features).tolist()}


CASES += [Case(*case) for case in [
    # transformers
    ("Attention", "BERT", [f(1, 12, 128, 64)] * 3, {}, 1, 23), ("Attention", "causal", [f(1, 12, 256, 64)] * 3, {"is_causal": 1}, 1, 23),
    ("Attention", "grouped queries, one token", [f(1, 32, 1, 64), f(1, 8, 512, 64), f(1, 8, 512, 64)], {}, 1, 23),
    ("RotaryEmbedding", "", [f(1, 12, 128, 64), f(1, 128, 32), f(1, 128, 32)], {}, 1, 23),
    ("RMSNormalization", "", [f(*TOKENS), weights(768)], {}, 1, 23), ("Swish", "", [f(*IMAGE)], {}, 1, 24),
    ("TensorScatter", "", [f(1, 12, 1024, 64), f(1, 12, 8, 64), Input(values=[100], dtype=np.int64)], {}, 1, 24),
    # half precision
    ("Add", "float16", [half(*IMAGE), half(*IMAGE)]), ("Relu", "float16", [half(*IMAGE)]), ("Sigmoid", "float16", [half(*IMAGE)]),
    ("MatMul", "float16", [half(*TOKENS), weights(768, 768, dtype=np.float16)]), ("Softmax", "float16", [half(1, 12, 128, 128)]),
    ("Conv", "float16", [half(*IMAGE), weights(64, 64, 3, 3, dtype=np.float16)], {"pads": [1, 1, 1, 1]}),
    ("LayerNormalization", "float16", [half(*TOKENS), weights(768, dtype=np.float16), weights(768, dtype=np.float16)]),
    # quantized
    ("QLinearMatMul", "", [u8(128, 768), scalar(0.02), scalar(128, np.uint8), Input(768, 768, dtype=np.int8, low=-100, high=100, constant=True),
                           scalar(0.01), scalar(0, np.int8), scalar(0.1), scalar(128, np.uint8)]),
    ("QLinearConv", "", [u8(1, 64, 56, 56), scalar(0.02), scalar(128, np.uint8), Input(64, 64, 3, 3, dtype=np.int8, low=-100, high=100, constant=True),
                         scalar(0.01), scalar(0, np.int8), scalar(0.1), scalar(128, np.uint8)], {"pads": [1, 1, 1, 1]}),
    ("QLinearConv", "depthwise", [u8(1, 96, 56, 56), scalar(0.02), scalar(128, np.uint8), Input(96, 1, 3, 3, dtype=np.int8, low=-100, high=100, constant=True),
                                  scalar(0.01), scalar(0, np.int8), scalar(0.1), scalar(128, np.uint8)], {"pads": [1, 1, 1, 1], "group": 96}),
    # signals
    ("DFT", "512", [f(64, 512, 1), None, scalar(1, np.int64)], {}, 1, 20), ("DFT", "400, real to half", [f(64, 400, 1), None, scalar(1, np.int64)], {"onesided": 1}, 1, 20),
    ("STFT", "speech", [f(1, 16000, 1), scalar(160, np.int64), f(400), scalar(400, np.int64)], {}, 1, 17),
    ("HannWindow", "", [Input(values=16384, dtype=np.int64)], {}, 1, 17), ("HammingWindow", "", [Input(values=16384, dtype=np.int64)], {}, 1, 17),
    ("BlackmanWindow", "", [Input(values=16384, dtype=np.int64)], {}, 1, 17),
    ("MelWeightMatrix", "", [Input(values=v, dtype=d) for v, d in [(80, np.int64), (4096, np.int64), (16000, np.int64), (0, np.float32), (8000, np.float32)]], {}, 1, 17),
    # pictures
    ("AffineGrid", "", [f(4, 2, 3), ints(4, 3, 112, 112)], {}, 1, 20),
    ("DeformConv", "", [f(1, 32, 28, 28), weights(32, 32, 3, 3), f(1, 18, 28, 28)], {"pads": [1, 1, 1, 1]}, 1, 22),
    ("MaxUnpool", "", [f(1, 64, 28, 28), index(1, 64, 28, 28, high=100000), ints(1, 64, 56, 56)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("GlobalLpPool", "", [f(1, 512, 14, 14)]), ("Upsample", "", [f(1, 64, 40, 40), Input(values=[1, 1, 2, 2], dtype=np.float32, constant=True)], {"mode": "nearest"}, 1, 9),
    ("ConvTranspose", "4x4 stride 2", [f(1, 64, 28, 28), weights(64, 32, 4, 4)], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    # random numbers
    ("RandomNormal", "", [], {"shape": [512, 512]}), ("RandomUniform", "", [], {"shape": [512, 512]}), ("RandomNormalLike", "", [f(512, 512)]),
    ("RandomUniformLike", "", [f(512, 512)]), ("Bernoulli", "", [f(512, 512, low=0, high=1)]), ("Multinomial", "", [f(16, 1000)], {"sample_size": 100}),
    ("Dropout", "training", [f(*IMAGE), scalar(0.5), scalar(True, np.bool_)]),
    # losses and others
    ("NegativeLogLikelihoodLoss", "", [f(128, 1000, 16), index(128, 16, high=999)]), ("BitCast", "", [f(*IMAGE)], {"to": TensorProto.INT32}, 1, 26),
    ("CastLike", "", [f(*IMAGE), half(1)]), ("CumProd", "", [f(*TOKENS), scalar(1, np.int64)], {}, 1, 26),
    ("Scan", "", [f(256), f(500, 256)], {"body": body("Add"), "num_scan_inputs": 1}, 2),
    ("SplitToSequence", "", [f(128, 768), ints(*[8] * 16)]),
    # text
    ("StringConcat", "", [text(5000), text(5000)]), ("StringSplit", "", [text(5000)], {}, 2), ("RegexFullMatch", "", [text(5000)], {"pattern": r"w[a-z]+ \d*"}),
    ("StringNormalizer", "", [text(5000)], {"case_change_action": "UPPER", "locale": "C"}),
    ("TfIdfVectorizer", "", [index(64, 200, high=50)], {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 20],
                                                       "ngram_indexes": list(range(40)), "pool_int64s": list(range(20)) + [i % 50 for i in range(40)]}),
    # classical models
    ("TreeEnsembleRegressor", "one row", [f(1, 30, low=-1, high=1)], trees(200, 6, 30), 1, 3, ML), ("TreeEnsembleRegressor", "", [f(1000, 30, low=-1, high=1)], trees(100, 6, 30), 1, 3, ML),
    ("TreeEnsembleClassifier", "", [f(1000, 30, low=-1, high=1)], trees(90, 6, 30, 3), 2, 3, ML), ("SVMRegressor", "", [f(200, 30)], support_vectors(300, 30) | {"n_supports": 300}, 1, 1, ML),
    ("SVMClassifier", "", [f(200, 30)], support_vectors(300, 30) | {"vectors_per_class": [150, 150], "classlabels_ints": [0, 1]}, 2, 1, ML),
    ("LinearClassifier", "", [f(2000, 30)], {"coefficients": [0.1] * 90, "intercepts": [0.1] * 3, "classlabels_ints": [0, 1, 2], "post_transform": "SOFTMAX"}, 2, 1, ML),
    ("LinearRegressor", "", [f(2000, 30)], {"coefficients": [0.1] * 30, "intercepts": [0.1]}, 1, 1, ML),
    ("Scaler", "", [f(2000, 30)], {"offset": [0.1] * 30, "scale": [2.0] * 30}, 1, 1, ML), ("Normalizer", "", [f(2000, 30)], {"norm": "L2"}, 1, 1, ML),
    ("Imputer", "", [f(2000, 30)], {"imputed_value_floats": [0.5], "replaced_value_float": 0.0}, 1, 1, ML), ("Binarizer", "", [f(2000, 30)], {"threshold": 0.5}, 1, 1, ML),
    ("OneHotEncoder", "", [index(2000, high=19)], {"cats_int64s": list(range(20))}, 1, 1, ML), ("ArrayFeatureExtractor", "", [f(2000, 30), ints(*range(0, 30, 2))], {}, 1, 1, ML),
    ("LabelEncoder", "", [index(20000, high=99)], {"keys_int64s": list(range(100)), "values_floats": [0.5] * 100}, 1, 4, ML),
    ("LabelEncoder", "strings", [text(5000)], {"keys_strings": [f"word {i}" for i in range(97)], "values_int64s": list(range(97))}, 1, 4, ML),
    ("CategoryMapper", "", [text(5000)], {"cats_strings": [f"word {i}" for i in range(97)], "cats_int64s": list(range(97))}, 1, 1, ML),
    ("FeatureVectorizer", "", [f(2000, 10), f(2000, 20)], {"inputdimensions": [10, 20]}, 1, 1, ML),
]]
