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

import tenon

from compare import find_model
from threads import run_side_by_side

LEAST_SHARE = 0.9


def measure(path, feeds, options):
    kwargs = {"threads": options.threads} if options.threads else {}
    sessions = [tenon.load(path, **kwargs) for _ in range(options.sessions)]
    calls = [lambda session=session: session.run(feeds) for session in sessions]
    for call in calls:
        call()
    ratios, best = [], [0, 0]
    for _ in range(options.rounds):
        alone = statistics.mean(run_side_by_side([call], options.seconds / options.sessions)[0] for call in calls)
        together, _ = run_side_by_side(calls, options.seconds)
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
