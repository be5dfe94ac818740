#!/usr/bin/env python3
"""Converts the node cases of the ONNX suite to other opsets, up and down, and runs what comes out.

usage: conversion.py [--pairs N] [--seed N] [--opsets 7,13] [--binary build/tenon] [--onnx] [--update] [--failures] [CASE…]

A pair is a case and an opset, 7 to 27, that is not its own. Its model is converted with tenon.convert, must be valid for
the opset (onnx.checker, which knows the attributes, inputs and types of each operator's version), and must compute what
the case expects (tenon test). Without --pairs all pairs are tried, with it a seeded choice. --onnx tries the same pairs with
onnx.version_converter and prints its count beside ours.

    conversion/blockers.txt   the pairs that cannot be converted, by reason: a line with the reason, and below it, indented,
                              the cases with their opsets. A pair that is not listed must convert; one that is listed and
                              converts is reported. --update writes the file anew, when all pairs are tried.
    conversion/checker.txt    in the same form: pairs of which onnx.checker says that they are not valid, though they are.
"""
import argparse
import collections
import os
import random
import re
import signal
import sys
from pathlib import Path

import onnx
from onnx import version_converter

sys.path.insert(0, str(Path(__file__).resolve().parent))
from conformance import run_cases  # noqa: E402
from onnx_suite import ROOT, write_suite  # noqa: E402

LISTS = Path(__file__).resolve().parent / "conversion"
FOLDER = ROOT / "build" / "conversion"
OPSETS = range(7, 28)


def opset_of(path, domains=("", "ai.onnx")):
    model = onnx.load(path, load_external_data=False)
    return max((o.version for o in model.opset_import if o.domain in domains), default=None)


def all_pairs(suite, cases=None, opsets=OPSETS):
    """[(case, opset)] of the cases whose models import ai.onnx."""
    names = sorted(folder.name for folder in (suite / "node").iterdir())
    own = {name: opset_of(suite / "node" / name / "model.onnx") for name in names if not cases or name in cases}
    return [(name, opset) for name, version in own.items() if version for opset in opsets if opset != version]


def numbers_of(text):
    """{7, 8, 10} of "7-8,10"."""
    ends = [part.split("-") for part in text.split(",")]
    return {number for part in ends for number in range(int(part[0]), int(part[-1]) + 1)}


def text_of(numbers):
    """The inverse."""
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs)


def read_list(path):
    """{(case, opset): reason}"""
    pairs, reason = {}, None
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            reason = line.strip()
            continue
        case, opsets = line.split()
        pairs.update({(case, opset): reason for opset in numbers_of(opsets)})
    return pairs


def write_list(path, pairs):
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    by_reason = collections.defaultdict(lambda: collections.defaultdict(set))
    for (case, opset), reason in pairs.items():
        by_reason[reason][case].add(opset)
    lines = [*comments]
    for reason, cases in sorted(by_reason.items()):
        lines += ["", reason, *(f"  {case} {text_of(opsets)}" for case, opsets in sorted(cases.items()))]
    path.write_text("\n".join(lines) + "\n")


def plain(reason):
    """A reason for all opsets: what it says of the one that was tried is left out."""
    reason = re.sub(r" (in|of) opset \d+", "", reason)
    reason = re.sub(r"^opset \d+ does not have", "older opsets do not have", reason)
    return re.sub(r"opset \d+ does not have", "the opset does not have", reason)


def prepare_folder(suite, case, opset):
    """A case folder with the data of the suite's, in which the converted model will be."""
    folder = FOLDER / str(opset) / case  # `opset` is a number, or a name for another domain's
    folder.mkdir(parents=True, exist_ok=True)
    for file in (suite / "node" / case).iterdir():
        if file.name != "model.onnx" and not (folder / file.name).is_symlink():
            (folder / file.name).symlink_to(file)
    (folder / "model.onnx").unlink(missing_ok=True)
    return folder


def checker_says(path):
    """What onnx.checker finds wrong with a model, or ""."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
        return ""
    except Exception as error:  # its own kinds, and RuntimeError of shape inference
        return " ".join(str(error).split())


class Results:
    """What became of each pair."""

    def __init__(self):
        self.fine = set()
        self.blocked, self.invalid, self.wrong = {}, {}, {}  # pair: reason

    def problems(self, blockers, checker):
        lines = [f"{case} to opset {opset} is wrong: {why}" for (case, opset), why in self.wrong.items()]
        lines += [f"{case} to opset {opset} is not valid: {why}" for (case, opset), why in self.invalid.items()
                  if (case, opset) not in checker]
        lines += [f"{case} to opset {opset} is blocked, and not listed: {why}"
                  for (case, opset), why in self.blocked.items() if (case, opset) not in blockers]
        return lines

    def report(self, blockers):
        unlisted = sorted(pair for pair in self.fine if pair in blockers)
        lines = [f"{len(unlisted)} pairs are listed as blocked and convert: "
                 + ", ".join(f"{case} to {opset}" for case, opset in unlisted[:5])
                 + "; run tests/conversion.py --update"] if unlisted else []
        rows = collections.Counter()
        for name, pairs in (("fine", self.fine), ("blocked", self.blocked), ("invalid", self.invalid), ("wrong", self.wrong)):
            rows.update((opset, name) for _, opset in pairs)
        for opset in sorted({opset for opset, _ in rows}):
            lines.append(f"opset {opset:2}: {rows[opset, 'fine']:5} converted and passing, {rows[opset, 'blocked']:4} blocked, "
                         f"{rows[opset, 'invalid']} not valid, {rows[opset, 'wrong']} wrong")
        lines.append(f"{len(self.fine)} of {self.total} pairs converted and passing, {len(self.blocked)} blocked, "
                     f"{len(self.invalid)} not valid, {len(self.wrong)} wrong")
        return "\n".join(lines)

    @property
    def total(self):
        return len(self.fine) + len(self.blocked) + len(self.invalid) + len(self.wrong)


def blockers_of(model, opset):
    import tenon

    try:
        return tenon.conversion_blockers(model, opset=opset)
    except tenon.Error:
        return []


def convert_pair(suite, case, opset, results):
    """Whether there is a converted model to be run."""
    import tenon

    source, pair = suite / "node" / case / "model.onnx", (case, opset)
    folder = prepare_folder(suite, case, opset)
    try:
        model = tenon.read_onnx(source)
        tenon.convert(model, opset=opset).save(folder / "model.onnx")
    except tenon.Error as error:
        if blockers := blockers_of(model, opset):
            results.blocked[pair] = plain(blockers[0].reason)  # there may be more
        else:
            results.wrong[pair] = " ".join(str(error).split())
        return False
    if problem := checker_says(folder / "model.onnx"):
        results.invalid[pair] = problem
    return True


def run(binary, pairs):
    suite, results, written = write_suite(), Results(), []
    for case, opset in pairs:
        if convert_pair(suite, case, opset, results):
            written.append(f"{opset}/{case}")
    for name, (result, reason) in run_cases(str(binary), FOLDER, written).items():
        opset, case = name.split("/")
        pair = (case, int(opset))
        if result != "passed":
            results.invalid.pop(pair, None)
            results.wrong[pair] = reason
        elif pair not in results.invalid:
            results.fine.add(pair)
    return results


def converts_with_onnx(suite, case, opset):
    """Whether onnx.version_converter makes a valid model of a pair; in a process of its own, which it may end or keep busy."""
    folder = prepare_folder(suite, case, opset)
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    signal.alarm(20)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        model = onnx.load(suite / "node" / case / "model.onnx")
        onnx.save(version_converter.convert_version(model, opset), folder / "model.onnx")
        os._exit(1 if checker_says(folder / "model.onnx") else 0)
    finally:
        os._exit(1)


def count_with_onnx(binary, pairs):
    """How many pairs onnx.version_converter converts to a valid model that passes."""
    suite = write_suite()
    valid = [f"{opset}/{case}" for case, opset in pairs if converts_with_onnx(suite, case, opset)]
    return sum(result == "passed" for result, _ in run_cases(str(binary), FOLDER, valid).values())


def choose(pairs, count, seed):
    return sorted(random.Random(seed).sample(pairs, min(count, len(pairs))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("TENON_BINARY", str(ROOT / "build" / "tenon")))
    parser.add_argument("--pairs", type=int, help="as many pairs, chosen with --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opsets", help="instead of 7 to 27: 7,8,13")
    parser.add_argument("--onnx", action="store_true", help="count what onnx.version_converter does, too")
    parser.add_argument("--update", action="store_true", help="write blockers.txt anew")
    parser.add_argument("--failures", action="store_true", help="print every pair that is blocked, too")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    opsets = [int(text) for text in arguments.opsets.split(",")] if arguments.opsets else OPSETS
    pairs = all_pairs(write_suite(), {case.strip("/").split("/")[-1] for case in arguments.cases}, opsets)
    if arguments.pairs:
        pairs = choose(pairs, arguments.pairs, arguments.seed)
    results = run(Path(arguments.binary).resolve(), pairs)
    if arguments.update and not (arguments.pairs or arguments.cases or arguments.opsets):
        write_list(LISTS / "blockers.txt", results.blocked)
    blockers, checker = read_list(LISTS / "blockers.txt"), read_list(LISTS / "checker.txt")
    if arguments.failures:
        for (case, opset), reason in sorted(results.blocked.items()):
            print(f"{case} to opset {opset} is blocked: {reason}")
    problems = results.problems(blockers, checker)
    print("\n".join([*problems, results.report(blockers)]))
    if arguments.onnx:
        theirs = count_with_onnx(Path(arguments.binary).resolve(), pairs)
        print(f"onnx.version_converter: {theirs} of {len(pairs)} pairs converted and passing; Tenon: {len(results.fine)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
