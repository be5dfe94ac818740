#!/usr/bin/env python3
"""What a call from Python costs beside the run itself: CPU time of a call of a model with one small node, beside onnxruntime.

Run it with the Python of .venv, after `make python`.
"""
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime
import tenon

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "python"))
from small_models import add  # noqa: E402


def microseconds(call, repeat=7, count=3000):
    """CPU time of one call: the least of several measurements."""
    call()
    best = float("inf")
    for _ in range(repeat):
        start = time.thread_time()
        for _ in range(count):
            call()
        best = min(best, time.thread_time() - start)
    return best / count * 1e6


def print_calls():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    other = onnxruntime.InferenceSession(add(), options)
    model = tenon.load(add(), threads=1)
    x, out = np.ones((1, 4), np.float32), np.zeros((1, 4), np.float32)
    feed = {"left": x, "right": x}
    print("µs per call of one node with two inputs")
    for name, call in {"tenon, mapping": lambda: model.run(feed), "tenon, keywords": lambda: model.run(left=x, right=x),
                       "tenon, in order": lambda: model(x, x), "tenon, into": lambda: model.run(feed, into={"sum": out}),
                       "onnxruntime": lambda: other.run(None, feed)}.items():
        print(f"  {name:16} {microseconds(call):6.2f}")


if __name__ == "__main__":
    print_calls()
