#!/usr/bin/env python3
"""Times nodes of each operator in Tenon and in onnxruntime, side by side, with sizes as real models have them.

usage: operators.py [--rounds N] [--threads N] [--below RATIO] [--json FILE] [--audit] [OPERATOR…]

Both run in this process and take turns; the best run of each counts, since machines are shared. Both read inputs where they lie and make
new outputs in every run, which C++ keeps to itself: arrays of Python are made by neither. (onnxruntime's cannot be given strings,
so they are constants of its model, which it does not optimise then.) What a call itself costs, the time of an Identity of one number, is subtracted on both sides. The ratio is onnxruntime's time over Tenon's: above 1 Tenon is faster. Exit code 1 if
a ratio is below --below (0.95) where onnxruntime takes more than 20 µs, or if an operator that both have has no case (--audit looks for
nothing else).
"""
import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tenon
from onnx import helper, numpy_helper

from operator_cases import CASES, KINDS, NOT_TIMED
from operator_cases.case import Case, f

ROOT = Path(__file__).resolve().parent.parent
SHORT = 20e-6  # where onnxruntime takes less, a ratio says more about calls than about operators


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
    if case.nodes:
        nodes = list(onnx.parser.parse_graph(f"nodes () => () {{ {case.nodes} }}").node)
    else:
        nodes = [helper.make_node(case.operator, names, outputs, domain=case.domain, **case.attributes)]
    graph = helper.make_graph(nodes, "case", infos, [helper.make_empty_tensor_value_info(o) for o in outputs], initializers)
    opsets = [helper.make_opsetid(case.domain, case.opset)] + ([helper.make_opsetid("", 21)] if case.domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def with_constant_strings(model, feeds):
    """(the model, the other inputs), or as they are where no input has strings"""
    strings = {name for name, array in feeds.items() if array.dtype == object}
    if not strings:
        return model, feeds
    graph = model.graph
    initializers = [*graph.initializer, *(numpy_helper.from_array(feeds[name], name) for name in strings)]
    graph = helper.make_graph(graph.node, graph.name, [info for info in graph.input if info.name not in strings], graph.output, initializers)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), {n: a for n, a in feeds.items() if n not in strings}


class OnnxRuntime:
    def __init__(self, model, feeds, threads):
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        settings.log_severity_level = 4
        model, tensors = with_constant_strings(model, feeds)
        if len(tensors) < len(feeds):
            settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in session.get_outputs()]
        # The class behind the session: its own method of this name takes 100 µs for what it checks.
        self.run = session._sess.run_with_ort_values
        self.feeds = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array)._ortvalue for name, array in tensors.items()}

    def best(self, seconds):
        run, names, feeds, clock = self.run, self.names, self.feeds, time.perf_counter
        best, end = math.inf, clock() + seconds
        while True:
            start = clock()
            run(feeds, names, None)
            now = clock()
            best = min(best, now - start)
            if now > end:
                return best


class Tenon:
    def __init__(self, model, feeds, threads):
        self.model, self.feeds = tenon.load(model.SerializeToString(), threads=threads), feeds

    def best(self, seconds):
        return self.model.bench(self.feeds, seconds=seconds, warmup=1).latency.min


def measure(model, feeds, threads, rounds, seconds):
    """The best seconds of a run: (Tenon's, onnxruntime's)."""
    rivals = [Tenon(model, feeds, threads), OnnxRuntime(model, feeds, threads)]
    best = [math.inf] * 2
    for _ in range(rounds):
        for i, rival in enumerate(rivals):
            best[i] = min(best[i], rival.best(seconds))
            if threads > 1:
                time.sleep(0.01)  # threads that wait awake give up by then
    return best


def call_costs(threads):
    model, feeds = model_of(Case("Identity", "", [f(1)]), np.random.default_rng(0))
    return measure(model, feeds, threads, 5, 0.05)


def operators_without_case():
    """Operators that onnxruntime's CPU has a kernel for, and Tenon, and that no case times."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def
    theirs = {(kernel.domain, kernel.op_name) for kernel in get_all_opkernel_def() if kernel.provider == "CPUExecutionProvider"}
    ours = {(o.domain, o.name) for o in tenon.operators()}
    timed = {(case.domain, case.operator) for case in CASES}
    return sorted(name for domain, name in (theirs & ours) - timed if name not in NOT_TIMED)


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def print_summary(rows, slow, below):
    long = [row["ratio"] for row in rows if row["onnxruntime_us"] > SHORT * 1e6]
    if not long:
        return
    print(f"{len(rows)} cases, {len({row['operator'] for row in rows})} operators; of the {len(long)} that take onnxruntime more than"
          f" {SHORT * 1e6:.0f} µs: geometric mean {mean(long):.2f}, least {min(long):.2f}, {len(slow)} below {below:g}")
    kinds = {case.label: kind for kind, cases in KINDS.items() for case in cases}
    for kind in KINDS:
        ratios = [row["ratio"] for row in rows if row["onnxruntime_us"] > SHORT * 1e6 and kinds[f"{row['operator']} {row['case']}".strip()] == kind]
        if ratios:
            print(f"  {kind:28} {len(ratios):4} cases, geometric mean {mean(ratios):5.2f}, {sum(ratio < below for ratio in ratios):3} below {below:g}")
    for row in sorted(slow, key=lambda row: row["ratio"]):
        print(f"  {row['ratio']:5.2f}  {row['operator']} {row['case']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.03, help="of each round on each side")
    parser.add_argument("--below", type=float, default=0.95)
    parser.add_argument("--json", help="write the table there")
    parser.add_argument("--audit", action="store_true", help="only say which operators have no case")
    parser.add_argument("operators", nargs="*", help="an operator, or text that its case contains")
    options = parser.parse_args()

    missing = [] if options.operators else operators_without_case()
    for name in missing:
        print(f"no case times {name}")
    if options.audit:
        return 1 if missing else 0

    costs = call_costs(options.threads)
    rng, rows = np.random.default_rng(0), []
    print(f"a call: tenon {1e6 * costs[0]:.1f} µs, onnxruntime {1e6 * costs[1]:.1f} µs")
    print(f"{'operator':56} {'tenon µs':>10} {'ort µs':>10} {'ratio':>7}")
    for case in CASES:
        if options.operators and not any(word in (case.operator, case.what, case.label) for word in options.operators):
            continue
        model, feeds = model_of(case, rng)
        try:
            times = measure(model, feeds, options.threads, options.rounds, options.seconds)
        except Exception as error:  # noqa: BLE001
            print(f"{case.label:56} {type(error).__name__}: {str(error).splitlines()[0][:100]}")
            continue
        ours, theirs = (1e6 * max(1e-7, time - cost) for time, cost in zip(times, costs))
        ratio = theirs / ours
        rows.append({"operator": case.operator, "case": case.what, "tenon_us": ours, "onnxruntime_us": theirs, "ratio": ratio})
        note = "  short" if theirs < SHORT * 1e6 else "  <-- slow" if ratio < options.below else ""
        print(f"{case.label:56} {ours:10.1f} {theirs:10.1f} {ratio:7.2f}{note}", flush=True)
    slow = [row for row in rows if row["ratio"] < options.below and row["onnxruntime_us"] > SHORT * 1e6]
    print_summary(rows, slow, options.below)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if slow or missing else 0


if __name__ == "__main__":
    sys.exit(main())
