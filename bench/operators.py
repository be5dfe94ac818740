#!/usr/bin/env python3
"""Times one node of each operator in Tenon and in onnxruntime, side by side, with sizes as real models have them.

usage: operators.py [--rounds N] [--threads N] [--binary build/tenon] [--above RATIO] [--json FILE] [OPERATOR…]

`tenon run --repeat` has the timer on Tenon's side, Python's clock is on onnxruntime's (a call costs it some 10 µs, so nodes take more than
that). The two take turns, and the best round of each counts, since machines are shared. The ratio is Tenon's time over
onnxruntime's: below 1 Tenon is faster. Exit code 1 if any ratio is above --above (default 3).
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from operator_cases import CASES
from timing import time_onnxruntime, time_tenon

ROOT = Path(__file__).resolve().parent.parent
def model_of(case, rng):
    names, infos, initializers, feeds = [], [], [], {}
    for i, value in enumerate(case.inputs):
        if value is None:
            names.append("")
            continue
        name, array = f"in{i}", value.draw(rng)
        names.append(name)
        if value.constant:
            initializers.append(numpy_helper.from_array(array, name))
        else:
            infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
            feeds[name] = array
    outputs = [f"out{i}" for i in range(case.outputs)]
    node = helper.make_node(case.operator, names, outputs, domain=case.domain, **case.attributes)
    graph = helper.make_graph([node], case.operator, infos, [helper.make_empty_tensor_value_info(o) for o in outputs], initializers)
    opsets = [helper.make_opsetid(case.domain, case.opset)] + ([helper.make_opsetid("", 21)] if case.domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def time_case(binary, folder, feeds, threads, repeat):
    inputs = [word for name in feeds for word in ("--input", f"{name}={folder / name}.pb")]
    return 1e6 * time_tenon(binary, folder / "model.onnx", repeat, *inputs, threads=threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.15, help="of each round on each side")
    parser.add_argument("--above", type=float, default=3.0)
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    parser.add_argument("--json", help="write the table there")
    parser.add_argument("operators", nargs="*")
    options = parser.parse_args()

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.log_severity_level = 4
    rng = np.random.default_rng(0)
    rows, slow = [], 0
    print(f"{'operator':44} {'tenon µs':>10} {'ort µs':>10} {'ratio':>7}")
    for case in CASES:
        if options.operators and case.operator not in options.operators:
            continue
        model, feeds = model_of(case, rng)
        label = f"{case.operator} {case.what}".strip()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            onnx.save(model, folder / "model.onnx")
            for key, array in feeds.items():
                (folder / f"{key}.pb").write_bytes(numpy_helper.from_array(array, key).SerializeToString())
            try:
                session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
                theirs = 1e6 * time_onnxruntime(session, feeds, 0.02)
            except Exception as error:  # noqa: BLE001
                print(f"{label:44} onnxruntime does not run it: {str(error).splitlines()[0][:80]}")
                continue
            ours, repeat = time_case(options.binary, folder, feeds, options.threads, 3), 0
            for _ in range(options.rounds):
                repeat = max(3, min(5000, int(options.seconds * 1e6 / max(1, ours))))
                ours = min(ours, time_case(options.binary, folder, feeds, options.threads, repeat))
                theirs = min(theirs, 1e6 * time_onnxruntime(session, feeds, options.seconds))
        ratio = ours / theirs
        rows.append({"operator": case.operator, "case": case.what, "tenon_us": ours, "onnxruntime_us": theirs, "ratio": ratio})
        slow += ratio > options.above
        print(f"{label:44} {ours:10.1f} {theirs:10.1f} {ratio:7.2f}{'  <-- slow' if ratio > options.above else ''}", flush=True)
    ratios = sorted(row["ratio"] for row in rows)
    if ratios:
        print(f"{len(rows)} cases, median ratio {ratios[len(ratios) // 2]:.2f}, {slow} above {options.above:g}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
