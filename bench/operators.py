#!/usr/bin/env python3
"""Times one node of each operator in Tenon and in onnxruntime, side by side, with sizes as real models have them.

usage: operators.py [--rounds N] [--threads N] [--binary build/tenon] [--above RATIO] [--json FILE] [OPERATOR…]

`tenon run --repeat` has the timer on Tenon's side, Python's clock is on onnxruntime's (a call costs it some 10 µs, so nodes take more than
that). The two take turns, and the best round of each counts, since machines are shared. The ratio is Tenon's time over
onnxruntime's: below 1 Tenon is faster. Exit code 1 if any ratio is above --above (default 3).
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
OPSET = 21


class Input:
    def __init__(self, *shape, low=-2.0, high=2.0, dtype=np.float32, values=None, constant=False):
        self.shape, self.low, self.high, self.dtype, self.values, self.constant = shape, low, high, dtype, values, constant

    def draw(self, rng):
        if self.values is not None:
            return np.array(self.values, dtype=self.dtype)
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

# (operator, what is special, inputs, attributes)
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
OUTPUTS = {"TopK": 2, "Split": 3, "DynamicQuantizeLinear": 3, "LSTM": 3, "GRU": 2, "RNN": 2, "Unique": 1}


def model_of(operator, inputs, attributes, rng):
    names, infos, initializers, feeds = [], [], [], {}
    for i, value in enumerate(inputs):
        if value is None:
            names.append("")
            continue
        name, array = f"in{i}", value.draw(rng)
        names.append(name)
        if value.constant:
            initializers.append(numpy_helper.from_array(array, name))
        else:
            infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
            feeds[name] = array
    outputs = [f"out{i}" for i in range(OUTPUTS.get(operator, 1))]
    node = helper.make_node(operator, names, outputs, **attributes)
    graph = helper.make_graph([node], operator, infos, [helper.make_empty_tensor_value_info(o) for o in outputs], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10), feeds


def time_onnxruntime(session, feeds, seconds):
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        start = time.perf_counter()
        session.run(None, feeds)
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def time_tenon(binary, folder, feeds, threads, repeat):
    command = [binary, "run", folder / "model.onnx", "--json", "--repeat", str(repeat), "--threads", str(threads)]
    for name in feeds:
        command += ["--input", f"{name}={folder / name}.npy"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip() or run.stdout.strip())
    return json.loads(run.stdout)["run_ms"] * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.15, help="of each round on each side")
    parser.add_argument("--above", type=float, default=3.0)
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    parser.add_argument("--json", help="write the table there")
    parser.add_argument("operators", nargs="*")
    options = parser.parse_args()

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.log_severity_level = 4
    rng = np.random.default_rng(0)
    rows, slow = [], 0
    print(f"{'operator':44} {'tenon µs':>10} {'ort µs':>10} {'ratio':>7}")
    for operator, what, inputs, attributes in CASES:
        if options.operators and operator not in options.operators:
            continue
        model, feeds = model_of(operator, inputs, attributes, rng)
        label = f"{operator} {what}".strip()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            onnx.save(model, folder / "model.onnx")
            for key, array in feeds.items():
                np.save(folder / f"{key}.npy", array)
            try:
                session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
                theirs = time_onnxruntime(session, feeds, 0.02)
            except Exception as error:  # noqa: BLE001
                print(f"{label:44} onnxruntime does not run it: {str(error).splitlines()[0][:80]}")
                continue
            ours, repeat = time_tenon(options.binary, folder, feeds, options.threads, 3), 0
            for _ in range(options.rounds):
                repeat = max(3, min(5000, int(options.seconds * 1e6 / max(1, ours))))
                ours = min(ours, time_tenon(options.binary, folder, feeds, options.threads, repeat))
                theirs = min(theirs, time_onnxruntime(session, feeds, options.seconds))
        ratio = ours / theirs
        rows.append({"operator": operator, "case": what, "tenon_us": ours, "onnxruntime_us": theirs, "ratio": ratio})
        slow += ratio > options.above
        print(f"{label:44} {ours:10.1f} {theirs:10.1f} {ratio:7.2f}{'  <-- slow' if ratio > options.above else ''}", flush=True)
    ratios = sorted(row["ratio"] for row in rows)
    if ratios:
        print(f"{len(rows)} cases, median ratio {ratios[len(ratios) // 2]:.2f}, {slow} above {options.above:g}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
