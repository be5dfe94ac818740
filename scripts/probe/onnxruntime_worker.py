"""Runs cases in the onnxruntime that is first on PYTHONPATH. Needs nothing but that and numpy.

usage: onnxruntime_worker.py CASES RESULTS [FIRST]

One line a case goes to RESULTS: its number, a verdict and the error. The verdicts are
  ran   a session was made and has run
  run   a session was made, running it failed
  no    no session could be made
"""
import base64
import json
import signal
import sys

import numpy as np
import onnxruntime as ort

SECONDS = 20  # a case that takes longer hangs


def decode(value):
    if value is None:
        return None
    if "list" in value:
        return [decode(item) for item in value["list"]]
    if "map" in value:
        return {decode(key).item(): decode(item).item() for key, item in value["map"]}
    if "strings" in value:
        return np.array(value["strings"], dtype=object).reshape(value["shape"])
    return np.frombuffer(base64.b64decode(value["data"]), dtype=value["dtype"]).reshape(value["shape"])


def session_options():
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # so that the node itself is what runs
    return options


def run(session, feeds):
    """Without bringing outputs to numpy, which has not all their types."""
    binding = session.io_binding()
    tensors = {name: value for name, value in feeds.items() if isinstance(value, np.ndarray) and value.dtype != object}
    if len(tensors) < len(feeds):
        session.run(None, feeds)
        return
    for name, value in tensors.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value.copy()))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    session.run_with_iobinding(binding)


def verdict(case, options):
    try:
        session = ort.InferenceSession(base64.b64decode(case["model"]), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001
        return "no", error
    try:
        run(session, {name: decode(value) for name, value in case["inputs"].items()})
    except Exception as error:  # noqa: BLE001
        return "run", error
    return "ran", ""


def main():
    cases, results, first = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
    options = session_options()
    with open(cases) as lines, open(results, "a") as file:
        for number, line in enumerate(lines):
            if number < first:
                continue
            signal.alarm(SECONDS)  # ends the process
            what, error = verdict(json.loads(line), options)
            file.write(f"{number}\t{what}\t{' '.join(str(error).split())[:300]}\n")
            file.flush()


if __name__ == "__main__":
    main()
