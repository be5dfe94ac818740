#!/usr/bin/env python3
"""Programs that use onnxruntime, as they are, with onnxruntime and with Tenon in its place: both must say the same.

usage: run.py [NAME…]

Each program of programs/ runs in the environment that requirements/ has for it, in one process with onnxruntime and in
another after tenon.onnxruntime.install(). Texts and whole numbers must be equal, and other numbers within 1e-4 of the
largest one beside them.
"""
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from environments import FOLDER, make_environment, make_wheel

HERE = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in (HERE / "programs").glob("*.py"))
TOLERANCE = 1e-4


def run(runtime, name, python):
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "results.json"
        done = subprocess.run([python, HERE / "call.py", runtime, name, output], cwd=folder, capture_output=True,
                              text=True, timeout=1800)
        if done.returncode:
            raise RuntimeError(f"{name} with {runtime} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
        return json.loads(output.read_text())


def leaves(value, path=""):
    """Where each text and number of nested lists and mappings is, and what it is."""
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, f"{path}[{key}]")
    else:
        yield path, value


def differences(expected, actual):
    """What is not the same in two results of a program, one sentence each."""
    problems = [] if expected.keys() == actual.keys() else [f"{list(expected)} became {list(actual)}"]
    for name in expected.keys() & actual.keys():
        left, right = dict(leaves(expected[name], name)), dict(leaves(actual[name], name))
        largest = max((abs(v) for v in left.values() if isinstance(v, float) and math.isfinite(v)), default=0.0)
        if left.keys() != right.keys():
            problems.append(f"{name}: {len(left)} values became {len(right)}, or are nested differently")
            continue
        for place, value in left.items():
            close = (isinstance(value, float) and isinstance(right[place], float)
                     and abs(value - right[place]) <= TOLERANCE * largest)
            if not close and value != right[place]:
                problems.append(f"{place}: {value!r} became {right[place]!r}")
    return problems


def compare(name, wheel):
    """Runs a program both ways: how many values were compared, and what differs."""
    python = make_environment(name, wheel)
    expected = run("onnxruntime", name, python)
    return len(list(leaves(expected))), differences(expected, run("tenon", name, python))


def main():
    names = sys.argv[1:] or NAMES
    if unknown := set(names) - set(NAMES):
        sys.exit(f"no such program: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    wheel, failed = make_wheel(), False
    for name in names:
        count, problems = compare(name, wheel)
        failed |= bool(problems)
        print(f"{name}: {count} values, " + (f"{len(problems)} differ" if problems else "all the same"), flush=True)
        for problem in problems[:20]:
            print("  " + problem)
    sys.exit(failed)


if __name__ == "__main__":
    main()
