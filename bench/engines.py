"""A model in one engine, in a process of its own that compare.py talks to: a JSON document per line, in and out.

    engines.py ENGINE MODEL INPUTS.npz THREADS [--precision fp32|fast] [--torch SCRIPT]

First it says how long it took to load the model, or why it cannot. Then, per line it reads:
    {"seconds": 0.5}            runs for so long, at least once, and says the best time of a run
    {"outputs": "file.npz"}     saves the outputs by name
    {"memory": true}            says the most memory it had, beyond what it had before the model was loaded
"""
import argparse
import json
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


class Tenon:
    def __init__(self, options, inputs):
        import tenon
        self.version = tenon.__version__
        self.tenon = tenon

    def load(self, options, inputs):
        precision = "fast" if options.precision == "fast" else "full"
        self.model = self.tenon.load(options.model, threads=options.threads, precision=precision)

    def run(self, inputs):
        return self.model.run(inputs)


class OnnxRuntime:
    def __init__(self, options, inputs):
        import onnxruntime
        self.version = onnxruntime.__version__
        self.onnxruntime = onnxruntime

    def load(self, options, inputs):
        settings = self.onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        settings.inter_op_num_threads = 1
        if options.precision == "fast":
            settings.add_session_config_entry("mlas.enable_gemm_fastmath_arm64_bfloat16", "1")
        self.session = self.onnxruntime.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]

    def run(self, inputs):
        return dict(zip(self.names, self.session.run(None, inputs)))


class OpenVino:
    def __init__(self, options, inputs):
        import openvino
        self.version = openvino.__version__.split("-")[0]
        self.openvino = openvino

    def load(self, options, inputs):
        core = self.openvino.Core()
        model = core.read_model(options.model)
        try:
            model.reshape({name: list(array.shape) for name, array in inputs.items()})
        except RuntimeError:
            pass  # some models cannot be fixed to a shape; they run with dynamic ones
        settings = {"INFERENCE_NUM_THREADS": options.threads, "PERFORMANCE_HINT": "LATENCY"}
        if options.precision == "fp32":
            settings["INFERENCE_PRECISION_HINT"] = "f32"
        self.request = core.compile_model(model, "CPU", settings).create_infer_request()

    def run(self, inputs):
        results = self.request.infer(inputs, share_inputs=True, share_outputs=True)
        return {output.get_any_name(): array for output, array in results.items()}


class Mnn:
    """The model is converted before; that time is not counted."""

    def __init__(self, options, inputs):
        import MNN
        import MNN.expr
        import MNN.nn
        self.version = MNN.version()
        self.expr, self.nn = MNN.expr, MNN.nn
        self.folder = tempfile.TemporaryDirectory()
        self.path = f"{self.folder.name}/model.mnn"
        # Not by its command mnnconvert, which installs a package of its maker and reports to a service of theirs.
        script = "import sys, MNN, _tools; _tools.mnnconvert(sys.argv)"
        convert = subprocess.run([sys.executable, "-c", script, "-f", "ONNX", "--modelFile", options.model,
                                  "--MNNModel", self.path, "--bizCode", "-"], capture_output=True, text=True)
        if not Path(self.path).exists():
            lines = [line for line in (convert.stdout + convert.stderr).split("\n") if line.strip()]
            reasons = [line for line in lines if "Not Support" in line or "rror" in line] or lines[-1:] or ["no reason"]
            raise RuntimeError(f"its converter fails: {reasons[0].strip()}")

    def load(self, options, inputs):
        precision = "high" if options.precision == "fp32" else "low"
        manager = self.nn.create_runtime_manager(
            ({"backend": "CPU", "precision": precision, "numThread": options.threads},))
        self.module = self.nn.load_module_from_file(self.path, list(inputs), [], dynamic=False, shape_mutable=False,
                                                    runtime_manager=manager)
        self.names = self.module.get_info()["outputNames"]

    def run(self, inputs):
        types = {"float32": self.expr.float, "int64": self.expr.int, "int32": self.expr.int}
        variables = []
        for array in inputs.values():
            if array.dtype == np.int64:
                array = array.astype(np.int32)
            variables.append(self.expr.const(array, list(array.shape), self.expr.NCHW, types[str(array.dtype)]))
        return dict(zip(self.names, [output.read() for output in self.module.forward(variables)]))


class Torch:
    """What SCRIPT's function `module(name)` returns, which takes the inputs in order."""

    def __init__(self, options, inputs):
        import torch
        self.version = torch.__version__
        self.torch = torch
        if not options.torch:
            raise RuntimeError("no script gives the module (--torch SCRIPT)")

    def load(self, options, inputs):
        self.torch.set_num_threads(options.threads)
        self.module = runpy.run_path(options.torch)["module"](Path(options.model).stem).eval()
        self.tensors = [self.torch.from_numpy(array) for array in inputs.values()]

    def run(self, inputs):
        with self.torch.inference_mode():
            result = self.module(*self.tensors)
        outputs = result if isinstance(result, (tuple, list)) else [result]
        return {str(i): output.numpy() for i, output in enumerate(outputs)}


ENGINES = {"tenon": Tenon, "onnxruntime": OnnxRuntime, "openvino": OpenVino, "mnn": Mnn, "torch": Torch}


def memory_now():
    """Bytes of this process that are in memory and not of a file that others may map too."""
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("threads", type=int)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "fast"])
    parser.add_argument("--torch", help="a script with a function module(name)")
    options = parser.parse_args()
    # Engines print as they like, from C++ too; what goes to compare.py does not mix with it.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**what):
        print(json.dumps(what), file=answers, flush=True)

    with np.load(options.inputs) as archive:
        inputs = {name: np.ascontiguousarray(archive[name]) for name in archive.files}
    try:
        engine = ENGINES[options.engine](options, inputs)
        before = memory_now()
        start = time.perf_counter()
        engine.load(options, inputs)
        load_seconds = time.perf_counter() - start
        engine.run(inputs)
    except Exception as error:  # whatever it is, the other engines go on
        text = str(error).strip()
        return answer(error=text.split("\n")[0] if text else type(error).__name__)
    answer(version=engine.version, load_seconds=load_seconds)
    for line in sys.stdin:
        command = json.loads(line)
        if "outputs" in command:
            outputs = {name: np.asarray(value) for name, value in engine.run(inputs).items()}
            np.savez(command["outputs"], **outputs)
            answer(names=list(outputs))
        elif "memory" in command:
            answer(bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)
        else:
            best, end = float("inf"), time.perf_counter() + command["seconds"]
            while best == float("inf") or time.perf_counter() < end:
                start = time.perf_counter()
                engine.run(inputs)
                best = min(best, time.perf_counter() - start)
            answer(best=best)


if __name__ == "__main__":
    main()
