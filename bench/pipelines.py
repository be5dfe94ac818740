#!/usr/bin/env python3
"""Calls of small models from Python, beside onnxruntime: a network of 20 nodes and pipelines of scikit-learn, a row at a time.

usage: pipelines.py [--rounds N]

Both run in this process with one thread and take turns; the best round of each counts. Tenon is called as itself and in
onnxruntime's own words (tenon.onnxruntime). Exit code 1 if a call of Tenon's own takes more than half of onnxruntime's time. Run it
with the Python of .venv, after `make bench`, which installs scikit-learn and skl2onnx.
"""
import argparse
import sys
import time

import numpy as np
import onnx
import onnxruntime
import tenon
import tenon.onnxruntime
from onnx import helper, numpy_helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

MOST_SHARE = 0.5


def perceptron(rng, width=32, layers=10):
    """Ten products with their activations: 20 nodes."""
    nodes, weights, value = [], [], "x"
    for i in range(layers):
        weights.append(numpy_helper.from_array(rng.standard_normal((width, width), np.float32) / 6, f"w{i}"))
        weights.append(numpy_helper.from_array(rng.standard_normal(width, np.float32), f"b{i}"))
        nodes.append(helper.make_node("Gemm", [value, f"w{i}", f"b{i}"], [f"product{i}"]))
        value = "y" if i + 1 == layers else f"value{i}"
        nodes.append(helper.make_node("Relu" if i + 1 < layers else "Sigmoid", [f"product{i}"], [value]))
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", width]) for name in "xy"]
    graph = helper.make_graph(nodes, "perceptron", infos[:1], infos[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, {"x": rng.standard_normal((1, width), np.float32)}


def numbers(rng, rows=400, columns=12):
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(np.int64)


def scaled_regression(rng):
    x, y = numbers(rng)
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(x, y)
    return to_onnx(pipeline, x[:1], target_opset=17), {"X": x[:1]}


def forest(rng):
    x, y = numbers(rng)
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(50, max_depth=8, random_state=0)).fit(x, y)
    return to_onnx(pipeline, x[:1], options={"zipmap": False}, target_opset=17), {"X": x[:1]}


def boosted_trees(rng):
    x, y = numbers(rng)
    pipeline = make_pipeline(StandardScaler(), GradientBoostingRegressor(random_state=0)).fit(x, y.astype(np.float32))
    return to_onnx(pipeline, x[:1], target_opset=17), {"X": x[:1]}


def columns_of_two_kinds(rng):
    """Numbers and words, each encoded in its own way, as in most tables."""
    x, y = numbers(rng, columns=6)
    words = rng.choice(np.array(["red", "green", "blue", "white"], object), (len(x), 2))
    table = np.concatenate([x.astype(object), words], axis=1)
    encode = ColumnTransformer([("numbers", make_pipeline(SimpleImputer(), StandardScaler()), list(range(6))),
                                ("words", OneHotEncoder(handle_unknown="ignore"), [6, 7])])
    pipeline = make_pipeline(encode, LogisticRegression()).fit(table, y)
    kinds = [(f"n{i}", FloatTensorType([None, 1])) for i in range(6)] + [(f"w{i}", StringTensorType([None, 1])) for i in range(2)]
    feed = {f"n{i}": x[:1, i:i + 1] for i in range(6)} | {f"w{i}": words[:1, i:i + 1] for i in range(2)}
    return to_onnx(pipeline, initial_types=kinds, target_opset=17), feed


MODELS = {"20-node perceptron": perceptron, "scaler, logistic regression": scaled_regression, "scaler, random forest": forest,
          "scaler, boosted trees": boosted_trees, "two kinds of columns": columns_of_two_kinds}


def one_thread(module):
    options = module.SessionOptions()
    options.intra_op_num_threads = 1
    return options


def seconds_of(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def best_times(calls, rounds):
    """The best time of each call, which take turns of a few milliseconds."""
    counts = {name: max(1, int(0.005 / seconds_of(call, 20))) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            best[name] = min(best[name], seconds_of(call, counts[name]))
    return best


def are_equal(mine, others):
    for a, b in zip(mine, others, strict=True):
        if isinstance(b, list):  # of dictionaries, as ZipMap makes
            a, b = [list(row.values()) for row in a], [list(row.values()) for row in b]
        if not np.allclose(a, b, rtol=1e-4, atol=1e-5):
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(0)
    failed = False
    print(f"{'µs per call':30}{'nodes':>6}{'tenon':>9}{'share':>7}{'its onnxruntime':>17}{'share':>7}{'onnxruntime':>13}")
    for name, make in MODELS.items():
        model, feed = make(rng)
        data = model.SerializeToString()
        mine = tenon.load(data, threads=1)
        same = tenon.onnxruntime.InferenceSession(data, one_thread(tenon.onnxruntime))
        other = onnxruntime.InferenceSession(data, one_thread(onnxruntime), providers=["CPUExecutionProvider"])
        calls = {"tenon": lambda: mine.run(feed), "same": lambda: same.run(None, feed), "other": lambda: other.run(None, feed)}
        if not are_equal(calls["same"](), calls["other"]()):
            print(f"{name}: outputs are not onnxruntime's")
            failed = True
        best = best_times(calls, rounds)
        mine_share, same_share = best["tenon"] / best["other"], best["same"] / best["other"]
        failed |= mine_share > MOST_SHARE
        print(f"{name:30}{len(model.graph.node):6}{best['tenon'] * 1e6:9.2f}{mine_share:7.2f}{best['same'] * 1e6:17.2f}{same_share:7.2f}"
              f"{best['other'] * 1e6:13.2f}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
