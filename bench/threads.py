#!/usr/bin/env python3
"""How runs of several Python threads on one session add up: the GIL is released, so they should as far as there are CPUs.

usage: threads.py [--threads 8] [--seconds 2]

Runs per second of a model of products, each run on the thread that calls it, and the share of their time in which the
threads neither ran nor waited for a CPU: that is what they waited for each other, also on a busy machine. Run it with the
Python of .venv, after `make python`.
"""
import argparse
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import tenon
import tenon.onnxruntime

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "python"))
from small_models import heavy  # noqa: E402


def on_cpu_or_queue():
    """Seconds that this thread has run, or waited for a CPU."""
    running, waiting, _ = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()
    return (int(running) + int(waiting)) / 1e9


def run_side_by_side(calls, seconds):
    """Runs per second, each of the calls in a thread of its own, and the share of the threads' time in which they were blocked."""
    counts, blocked = [0] * len(calls), [0.0] * len(calls)

    def work(i):
        before, start = on_cpu_or_queue(), time.perf_counter()
        while time.perf_counter() - start < seconds:
            calls[i]()
            counts[i] += 1
        blocked[i] = 1 - (on_cpu_or_queue() - before) / (time.perf_counter() - start)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(len(calls))]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - start), sum(blocked) / len(calls)


def print_threads(name, call, threads, seconds):
    print(f"{name}\n  threads  runs/s  times  blocked")
    alone, blocked = run_side_by_side([call], seconds)
    print(f"  {1:7} {alone:7.1f}  {1:5.2f}  {100 * blocked:5.1f} %")
    rate, blocked = run_side_by_side([call] * threads, seconds)
    print(f"  {threads:7} {rate:7.1f}  {rate / alone:5.2f}  {100 * blocked:5.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    model, x = heavy(depth=40), np.eye(192, dtype=np.float32)
    own, options = tenon.load(model, threads=1), tenon.onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = tenon.onnxruntime.InferenceSession(model, options)
    print(f"{len(os.sched_getaffinity(0))} CPUs, load {os.getloadavg()[0]:.1f}")
    print_threads("tenon.Model.run", lambda: own.run(x=x), arguments.threads, arguments.seconds)
    print_threads("tenon.onnxruntime.InferenceSession.run", lambda: session.run(None, {"x": x}), arguments.threads, arguments.seconds)


if __name__ == "__main__":
    main()
