#!/usr/bin/env python3
"""How near nodes that compute little come to the speed of memory: bytes read and written per second, out of cache, as a share of what one
thread copies with memcpy (whose bytes count twice too).

usage: bandwidth.py [--rounds N] [--seconds S] [KIND…]

Tensors have 50 MB and more. memcpy and the nodes take turns; the best run of each counts. Exit code 1 if a kind is below the share that is
asked of it.
"""
import argparse
import sys
import time

import numpy as np

from operator_cases.case import Case, f, i64, ints, weights
from operators import Tenon, model_of

LARGE = (64, 256, 768)  # 50 MB
IMAGES = (16, 64, 112, 112)
CHAIN = [("Mul", "in1"), ("Add", "in2"), ("Relu",), ("Sub", "in2")]


def chain(length):
    nodes = [f"v{i + 1} = {op} ({', '.join([f'v{i}', *more])})" for i, (op, *more) in enumerate(CHAIN[:length])]
    text = " ".join(nodes).replace("v0", "in0").replace(f"v{length} ", "out0 ")
    return Case("Mul", f"chain of {length}", [f(*LARGE), f(1, low=0.5, high=0.6), f(1)][:3], nodes=text)


# kind: (the share that is asked of it, cases)
KINDS = {
    "LayerNormalization": (0.70, [Case("LayerNormalization", "", [f(*LARGE), weights(768), weights(768)])]),
    "RMSNormalization": (0.70, [Case("RMSNormalization", "", [f(*LARGE), weights(768)], opset=23), Case("RMSNormalization", "4096", [f(4096, 4096), weights(4096)], opset=23)]),
    "reductions": (0.70, [Case(op, what, [f(*LARGE), ints(*axes)]) for op in ["ReduceSum", "ReduceMax", "ReduceMean"]
                          for what, axes in [("last axis", [2]), ("middle axis", [1]), ("first axis", [0]), ("all", [0, 1, 2])]]
                   + [Case("ReduceMean", "images", [f(*IMAGES), ints(2, 3)])]),
    "elementwise chains": (0.70, [chain(length) for length in [1, 2, 3, 4]]),
    "row gathers": (0.70, [Case("Gather", "768", [f(60000, 768), i64(30000, high=59999)]), Case("Gather", "128", [f(400000, 128), i64(200000, high=399999)])]),
    "transposes": (0.50, [Case("Transpose", what, [f(*shape)], {"perm": perm}) for what, shape, perm in [
        ("matrix", (4096, 4096), [1, 0]), ("NCHW to NHWC", IMAGES, [0, 2, 3, 1]), ("NHWC to NCHW", (16, 112, 112, 64), [0, 3, 1, 2]),
        ("split heads", (16, 1024, 12, 64), [0, 2, 1, 3]), ("join heads", (16, 12, 1024, 64), [0, 2, 1, 3]), ("keys", (16, 1024, 12, 64), [0, 2, 3, 1]),
        ("image to planes", (16, 1024, 1024, 3), [0, 3, 1, 2])]]),
    "Softmax": (0.40, [Case("Softmax", "512", [f(48, 512, 512)]), Case("Softmax", "4096", [f(4096, 4096)])]),
    "erf-Gelu": (0.30, [Case("Gelu", "", [f(*LARGE)])]),
}


def bytes_of(case, model, feeds, outputs):
    written = sum(array.nbytes for array in outputs.values())
    if case.operator == "Gather":
        return 2 * written + feeds["in1"].nbytes
    return written + sum(array.nbytes for array in feeds.values())


def best_copy(source, target, seconds):
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.06)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    source = rng.random(LARGE, np.float32)
    target = np.zeros_like(source)
    below = 0
    print(f"{'':44}{'ms':>8}{'GB/s':>8}{'memcpy':>8}{'share':>8}{'asked':>8}")
    for kind, (asked, cases) in KINDS.items():
        if options.kinds and kind not in options.kinds:
            continue
        for case in cases:
            model, feeds = model_of(case, rng)
            tenon = Tenon(model, feeds, 1)
            size = bytes_of(case, model, feeds, tenon.model.run(feeds))
            best = copy = float("inf")
            for _ in range(options.rounds):
                copy = min(copy, best_copy(source, target, options.seconds))
                best = min(best, tenon.best(options.seconds))
            speed, most = size / best / 1e9, 2 * source.nbytes / copy / 1e9
            below += speed < asked * most
            label = f"{kind}: {case.operator} {case.what}" if len(cases) > 1 else kind
            print(f"{label:44}{1e3 * best:8.2f}{speed:8.1f}{most:8.1f}{speed / most:8.0%}{asked:8.0%}"
                  f"{'  <-- below' if speed < asked * most else ''}", flush=True)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
