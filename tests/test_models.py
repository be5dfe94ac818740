"""Real exports against onnxruntime. A few in `make test`; all of them, with several thread counts, with TENON_ALL=1."""
import os
import subprocess

import model_cases
import numpy as np
import onnx
import pytest

SMALL = ["bilstm", "crnn_ocr", "dlrm", "gru", "llama_tiny_gqa_kv", "llama_tiny_gqa_kv_dynamo", "lstm_state", "minilm_l6",
         "mlp", "mobilenet_v3_large", "mobilenet_v3_large_dynamo", "resnet18_dynamo", "squeezenet1_1", "tcn",
         "yolov8n_like"]
ALL = os.environ.get("TENON_ALL") == "1"
THREADS = [None, 1, 4] if ALL else [None]


def difference(actual, expected, tolerance=model_cases.TOLERANCE, absolute=0.0):
    """What makes the outputs unequal, or None."""
    if actual.dtype != expected.dtype:
        return f"is {actual.dtype}, not {expected.dtype}"
    if actual.shape != expected.shape:
        return f"has shape {actual.shape}, not {expected.shape}"
    if not np.issubdtype(expected.dtype, np.floating):
        unequal = np.flatnonzero(actual != expected)
        return f"differs in {unequal.size} of {expected.size} places, first at {unequal[0]}" if unequal.size else None
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return "has NaN or infinity in other places"
    errors = np.abs(a - b)[finite]
    limit = max(absolute, tolerance * np.abs(b[finite]).max(initial=0))
    if errors.size and errors.max() > limit:
        at = tuple(int(i) for i in np.argwhere(finite)[errors.argmax()])
        return f"is off by {errors.max():.3g} at {at} ({a[at]:.6g}, not {b[at]:.6g}); allowed are {limit:.3g}"
    return None


def run_tenon(tenon, model, inputs, threads, folder):
    """{output: array}, through the command line."""
    folder.mkdir()
    command = [tenon, "run", model, "--output-dir", folder / "outputs"]
    for i, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"{i}.npy", value)
        command += ["--input", f"{name}={folder / f'{i}.npy'}"]
    if threads:
        command += ["--threads", str(threads)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, f"tenon run ended with {run.returncode}\n{run.stdout[-2000:]}{run.stderr[-4000:]}"
    return {path.stem: np.load(path) for path in (folder / "outputs").glob("*.npy")}


@pytest.mark.parametrize("name", model_cases.names() if ALL else SMALL)
def test_equals_onnxruntime(tenon, tmp_path, name):
    problems = []
    for part in model_cases.parts(name, tmp_path):
        for threads in THREADS:
            actual = run_tenon(tenon, part.model, part.inputs, threads, tmp_path / f"{part.what}, threads {threads}")
            for output, value in part.expected.items():
                file = output.replace("/", "_").replace(":", "_")
                problem = difference(actual[file], value, part.tolerance(output)) if file in actual else "is missing"
                if problem:
                    problems.append(f"{part.what}, threads {threads or 'default'}: output {output} {problem}")
    assert not problems, f"{name}, {len(problems)} outputs differ from onnxruntime's:\n" + "\n".join(problems)


@pytest.mark.parametrize("name", model_cases.names() if ALL else SMALL)
def test_same_bits_for_any_number_of_threads(tenon, tmp_path, name):
    model = model_cases.make(name)
    graph = onnx.load(model_cases.SOURCES / f"{name}.graph.onnx", load_external_data=False).graph
    inputs = model_cases.inputs_for(name, graph)
    one, *others = [run_tenon(tenon, model, inputs, threads, tmp_path / str(threads)) for threads in (1, 2, 5)]
    for outputs in others:
        assert one.keys() == outputs.keys()
        assert not [key for key in one if one[key].tobytes() != outputs[key].tobytes()]


F = np.float32


@pytest.mark.parametrize("actual, expected, says", [
    (F([1, 2]), F([1, 2.0001]), None),
    (F([1, 2]), F([1, 2.001]), "is off by 0.001 at (1,)"),
    (F([0, 1000]), F([0.05, 1000]), None),
    (F([1]), F([1, 2]), "has shape (1,), not (2,)"),
    (F([1]), np.float64([1]), "is float32, not float64"),
    (F([np.nan, 1]), F([np.nan, 1]), None),
    (F([np.nan, 1]), F([0, 1]), "NaN or infinity"),
    (F([np.inf]), F([-np.inf]), "NaN or infinity"),
    (np.int64([1, 2]), np.int64([1, 3]), "differs in 1 of 2 places, first at 1"),
    (F([]), F([]), None),
])
def test_difference(actual, expected, says):
    found = difference(actual, expected)
    assert found is None if says is None else says in found
