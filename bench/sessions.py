#!/usr/bin/env python3
"""What several sessions at once cost: their runs per second together, beside those of one session after the other.

usage: sessions.py [MODEL…] [--sessions 4] [--threads N] [--rounds 5] [--seconds 1.5]

Each session is used by a Python thread of its own, and computes with as many threads as there are CPUs, unless --threads says
otherwise. Both ways take turns; the median of the rounds' ratios counts, since machines are shared. Exit code 1 if sessions at once do
less than 90 % of what they do one after the other. Run it with the Python of .venv, after `make python`; MODEL is an .onnx file or
the name of a model of tests/models (default: mobilenet_v2 bert_base mlp).
"""
import argparse
import statistics
import sys
import threading
import time

import tenon

from compare import find_model

LEAST_SHARE = 0.9


def runs_per_second(sessions, feeds, seconds):
    """Of all of them together, each in a thread of its own."""
    counts = [0] * len(sessions)
    start = threading.Barrier(len(sessions) + 1)

    def work(i):
        start.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            sessions[i].run(feeds)
            counts[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(sessions))]
    for thread in threads:
        thread.start()
    start.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def measure(path, feeds, options):
    kwargs = {"threads": options.threads} if options.threads else {}
    sessions = [tenon.load(path, **kwargs) for _ in range(options.sessions)]
    for session in sessions:
        session.run(feeds)
    ratios, best = [], [0, 0]
    for _ in range(options.rounds):
        alone = sum(runs_per_second([session], feeds, options.seconds / options.sessions) for session in sessions) / options.sessions
        together = runs_per_second(sessions, feeds, options.seconds)
        ratios.append(together / alone)
        best = [max(best[0], alone), max(best[1], together)]
    return statistics.median(ratios), best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["mobilenet_v2", "bert_base", "mlp"])
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    options = parser.parse_args()
    least = 1e9
    print(f"{'runs per second':24}{'one at a time':>15}{f'{options.sessions} at once':>12}{'share':>8}")
    for argument in options.models:
        name, path, feeds = find_model(argument, {})
        share, (alone, together) = measure(path, feeds, options)
        least = min(least, share)
        print(f"{name:24}{alone:15.1f}{together:12.1f}{share:8.2f}")
    return int(least < LEAST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
