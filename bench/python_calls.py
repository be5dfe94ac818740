#!/usr/bin/env python3
"""What a call from Python costs beside the run itself, and how runs of several threads add up.

usage: python_calls.py [--threads 8]

The first table is the CPU time of a call of a model with one small node, beside onnxruntime. The second one is runs per
second of a model of products on one session, each run on the thread that calls it, and the share of their time in which
the threads neither ran nor waited for a CPU: that is what they waited for each other, also on a busy machine. Run it
with the Python of .venv, after `make python`.
"""
import argparse
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnxruntime
import tenon

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "python"))
from small_models import add, heavy  # noqa: E402


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


def on_cpu_or_queue():
    """Seconds that this thread has run, or waited for a CPU."""
    running, waiting, _ = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()
    return (int(running) + int(waiting)) / 1e9


def run_side_by_side(call, threads, seconds=2.0):
    """Runs per second, and the share of the threads' time in which they were blocked."""
    counts, blocked = [0] * threads, [0.0] * threads

    def work(i):
        before, start = on_cpu_or_queue(), time.perf_counter()
        while time.perf_counter() - start < seconds:
            call()
            counts[i] += 1
        blocked[i] = 1 - (on_cpu_or_queue() - before) / (time.perf_counter() - start)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - start), sum(blocked) / threads


def print_threads(most):
    model = tenon.load(heavy(depth=40), threads=1)
    x = np.eye(192, dtype=np.float32)
    print(f"one model by threads that call it; {len(os.sched_getaffinity(0))} CPUs")
    print("  threads  runs/s  times  blocked")
    alone = None
    for threads in sorted({1, 2, 4, most}):
        rate, blocked = run_side_by_side(lambda: model.run(x=x), threads)
        alone = alone or rate
        print(f"  {threads:7} {rate:7.1f}  {rate / alone:5.2f}  {100 * blocked:5.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=8)
    arguments = parser.parse_args()
    print_calls()
    print_threads(arguments.threads)


if __name__ == "__main__":
    main()
