"""Runs cases in the OpenVINO that is first on PYTHONPATH, on its CPU device. As onnxruntime_worker.py otherwise.

usage: openvino_worker.py CASES RESULTS [FIRST]
"""
import base64
import io
import json
import signal
import sys

import numpy as np
import openvino

SECONDS = 20  # a case that takes longer hangs


def decode(value):
    if value is None or "list" in value or "map" in value:
        raise NotImplementedError("inputs are tensors")
    if "strings" in value:
        return np.array(value["strings"]).reshape(value["shape"])
    return np.frombuffer(base64.b64decode(value["data"]), dtype=value["dtype"]).reshape(value["shape"])


def verdict(core, case):
    try:
        feeds = {name: decode(value) for name, value in case["inputs"].items()}
        model = core.read_model(io.BytesIO(base64.b64decode(case["model"])))
        known = {name for port in model.inputs for name in port.get_names()}  # an input that nothing needs is gone
        model.reshape({name: list(value.shape) for name, value in feeds.items() if name in known})  # ranks must be known
        compiled = core.compile_model(model, "CPU")
    except Exception as error:  # noqa: BLE001
        return "no", error
    try:
        request = compiled.create_infer_request()
        for name, value in feeds.items():
            if name in known:
                request.set_tensor(name, openvino.Tensor(value.copy()))
        request.infer()
    except Exception as error:  # noqa: BLE001
        return "run", error
    return "ran", ""


def main():
    cases, results, first = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": 1})
    with open(cases) as lines, open(results, "a") as file:
        for number, line in enumerate(lines):
            if number < first:
                continue
            signal.alarm(SECONDS)  # ends the process
            what, error = verdict(core, json.loads(line))
            file.write(f"{number}\t{what}\t{' '.join(str(error).split())[:300]}\n")
            file.flush()


if __name__ == "__main__":
    main()
