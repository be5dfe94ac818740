#!/usr/bin/env python3
"""Runs the ONNX backend suite with `tenon test` and compares with the lists in tests/conformance/.

usage: conformance.py [--binary build/tenon] [--threads N] [--provider NAMES] [--decompose NAMES] [--level LEVEL]
                      [--disable PASSES] [--lift-steps] [--compile] [--update] [CASE…]

    expected.txt      the cases that pass today, one a line. One of them not passing is a failure; a case that passes and
                      is not listed is reported, and --update writes it in.
    comparisons.txt   how the outputs of a case are compared where the suite's own tolerances do not fit, with the reason;
                      tests/onnx_suite.py puts it into the case's folder, where `tenon test` finds it.

A CASE is a folder of build/suite, such as node/test_abs or light/resnet50; without any, all are run.

The command is called as `tenon test CASE… --json` and prints one document:

    {"cases": [{"name": "node/test_abs",        the folder, as it was given
                "result": "passed",             or "failed" or "skipped"
                "reason": "…"}],                what differed or what is not supported; absent or empty when passed
     "passed": 1, "failed": 0, "skipped": 0}
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from onnx_suite import ROOT, write_suite  # noqa: E402

LISTS = Path(__file__).resolve().parent / "conformance"
CASES_PER_CALL = 200
SECONDS_PER_CALL = 600


def read_expected(path):
    return {line for line in (raw.split("#")[0].strip() for raw in path.read_text().splitlines()) if line}


def write_expected(path, names):
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    path.write_text("\n".join([*comments, *sorted(names)]) + "\n")


def run_cases(binary, suite, names, options=()):
    """{name: (result, reason)}. A call that gives no document is halved until the case that is to blame stands alone."""
    if not names:
        return {}
    if len(names) > CASES_PER_CALL:
        return {**run_cases(binary, suite, names[:CASES_PER_CALL], options),
                **run_cases(binary, suite, names[CASES_PER_CALL:], options)}
    try:
        run = subprocess.run([binary, "test", *names, "--json", *options], cwd=suite, capture_output=True, text=True,
                             errors="replace", timeout=SECONDS_PER_CALL)
        cases = json.loads(run.stdout)["cases"]
        results = {case["name"]: (case["result"], case.get("reason") or "") for case in cases}
        if set(results) == set(names):
            return results
        problem = f"its document names other cases: {sorted(set(results) ^ set(names))[:3]}"
    except subprocess.TimeoutExpired:
        problem = f"took longer than {SECONDS_PER_CALL} s"
    except (json.JSONDecodeError, KeyError, TypeError):
        problem = f"ended with status {run.returncode} and no result: {run.stderr.strip()[-500:]}"
    if len(names) == 1:
        return {names[0]: ("failed", f"tenon test {problem}")}
    half = len(names) // 2
    return {**run_cases(binary, suite, names[:half], options), **run_cases(binary, suite, names[half:], options)}


def all_cases(suite):
    return sorted(str(model.parent.relative_to(suite)) for model in suite.glob("*/*/model.onnx"))


class Outcome:
    """What a run means, given the lists."""

    def __init__(self, results, known, expected):
        passed = {name for name, (result, _) in results.items() if result == "passed"}
        self.results = results
        self.passed = sorted(passed)
        self.broken = sorted((expected & set(results)) - passed)
        self.unlisted = sorted(passed - expected)
        self.unknown = sorted(expected - set(known))

    @property
    def ok(self):
        return not (self.broken or self.unknown)

    def report(self):
        lines = []
        for name in self.broken:
            result, reason = self.results[name]
            lines.append(f"{name} is listed in expected.txt and {result}: {reason}")
        lines += [f"{name} is listed, and the suite has no such case" for name in self.unknown]
        if self.unlisted:
            some = ", ".join(self.unlisted[:5]) + (", …" if len(self.unlisted) > 5 else "")
            lines.append(f"{len(self.unlisted)} cases pass and are not listed: {some}; "
                         "run tests/conformance.py --update")
        others = [result for result, _ in self.results.values() if result != "passed"]
        lines.append(f"{len(self.passed)} passed, {others.count('failed')} failed, "
                     f"{others.count('skipped')} skipped; {len(self.broken)} of those expected to pass do not")
        return "\n".join(lines)


def run(binary, options=(), names=None, lists=LISTS):
    suite = write_suite()
    known = all_cases(suite)
    expected = read_expected(lists / "expected.txt")
    return Outcome(run_cases(str(binary), suite, names or known, options), known, expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("TENON_BINARY", str(ROOT / "build" / "tenon")))
    parser.add_argument("--threads", help="passed on to tenon")
    parser.add_argument("--provider", help="passed on to tenon")
    parser.add_argument("--decompose", help="passed on to tenon")
    parser.add_argument("--level", help="passed on to tenon")
    parser.add_argument("--disable", help="passed on to tenon")
    parser.add_argument("--lift-steps", action="store_true", help="passed on to tenon")
    parser.add_argument("--compile", action="store_true", help="passed on to tenon")
    parser.add_argument("--update", action="store_true", help="write the cases that pass into expected.txt")
    parser.add_argument("--failures", action="store_true", help="print every case that does not pass, with its reason")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    options = []
    for name in ("threads", "provider", "decompose", "level", "disable"):
        if value := getattr(arguments, name):
            options += [f"--{name}", value]
    if arguments.lift_steps:
        options.append("--lift-steps")
    if arguments.compile:
        options.append("--compile")
    binary = Path(arguments.binary).resolve()
    if not binary.exists():
        sys.exit(f"{binary} does not exist: run `make build` first")
    outcome = run(binary, options, [c.strip("/") for c in arguments.cases])
    if arguments.failures:
        for name, (result, reason) in sorted(outcome.results.items()):
            if result != "passed":
                print(f"{name} {result}: {reason}")
    if arguments.update:
        file = LISTS / "expected.txt"
        write_expected(file, read_expected(file) | set(outcome.passed))
        print(f"{len(outcome.unlisted)} cases added to {file.relative_to(ROOT)}")
    print(outcome.report())
    return 0 if outcome.ok else 1


if __name__ == "__main__":
    sys.exit(main())
