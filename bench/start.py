#!/usr/bin/env python3
"""Times how long a session takes to be made: onnxruntime's, Tenon's, and Tenon's on a compiled file.

    .venv/bin/python bench/start.py [MODEL…] [--threads 1 2] [--rounds 7] [--compiled]

A MODEL is an .onnx file or the name of a model of tests/models; without any, all of these. Every session is made in a
process of its own, with the library loaded and the model in the page cache; the engines take turns, and the best time of
each counts. Both optimise as they do by default: onnxruntime all it knows, Tenon at level `all`.
"""
import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

# Prints the milliseconds that making a session takes.
ONE_SESSION = {
    "onnxruntime": """
import sys, time, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
options.log_severity_level = 4
start = time.perf_counter()
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print((time.perf_counter() - start) * 1e3)
""",
    "tenon": """
import sys, time, tenon
start = time.perf_counter()
model = tenon.load(sys.argv[1], threads=int(sys.argv[2]))
print((time.perf_counter() - start) * 1e3)
""",
}


def start_ms(engine, path, threads):
    run = subprocess.run([sys.executable, "-c", ONE_SESSION[engine], path, str(threads)], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().splitlines()[-1])
    return float(run.stdout)


def measure(rivals, threads, rounds):
    """{name: best time} of {name: (engine, path)}."""
    best = {name: math.inf for name in rivals}
    for _ in range(rounds):
        for name, (engine, path) in rivals.items():
            best[name] = min(best[name], start_ms(engine, path, threads))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compiled", action="store_true", help="load a compiled file too")
    options = parser.parse_args()
    import model_cases
    import tenon
    print(f"{'model':<40}{'threads':>8}{'onnxruntime':>13}{'tenon':>10}{'ratio':>8}" + "  compiled" * options.compiled)
    logs = {threads: [] for threads in options.threads}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or model_cases.names():
            model = Path(name) if name.endswith(".onnx") else model_cases.make(name)
            rivals = {"onnxruntime": ("onnxruntime", model), "tenon": ("tenon", model)}
            if options.compiled:
                compiled = Path(folder) / "model.tenon"
                tenon.compile(model, compiled)
                rivals["compiled"] = ("tenon", compiled)
            for threads in options.threads:
                best = measure(rivals, threads, options.rounds)
                ratio = best["onnxruntime"] / best["tenon"]
                logs[threads].append(math.log(ratio))
                print(f"{model.stem:<40}{threads:>8}{best['onnxruntime']:>10.1f} ms{best['tenon']:>7.1f} ms{ratio:>8.2f}"
                      + (f"{best['compiled']:>7.1f} ms" if options.compiled else ""), flush=True)
    for threads, values in logs.items():
        print(f"{threads} thread{'s' * (threads > 1)}: {math.exp(sum(values) / len(values)):.2f} times as fast in the geometric mean")


if __name__ == "__main__":
    main()
