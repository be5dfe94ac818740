"""Models of tests/models, compiled to a file: what is loaded from there gives the same bits and reports as the .onnx."""
import json
import os

import model_cases
import numpy as np
import onnx
import pytest

ALL = os.environ.get("TENON_ALL") == "1"
SMALL = ["bilstm", "crnn_ocr", "gru", "llama_tiny_gqa_kv", "minilm_l6", "mobilenet_v3_large", "resnet18_dynamo", "tcn"]


@pytest.mark.parametrize("name", model_cases.names() if ALL else SMALL)
def test_same_bits_and_reports(call, tmp_path, name):
    model, compiled = model_cases.make(name), tmp_path / f"{name}.tenon"
    call("compile", model, "-o", compiled)
    arguments = []
    inputs = model_cases.inputs_for(name, onnx.load(model, load_external_data=False).graph)
    for i, (input_name, value) in enumerate(inputs.items()):
        np.save(tmp_path / f"{i}.npy", value)
        arguments += ["--input", f"{input_name}={tmp_path / f'{i}.npy'}"]
    printed = {}
    for path in (model, compiled):
        run = call("run", path, *arguments, "--placement", "--json", "--output-dir", tmp_path / path.suffix)
        assert "cannot be used" not in run.stderr
        printed[path] = json.loads(run.stdout)["placement"]
    assert printed[compiled] == printed[model]
    outputs = sorted(file.name for file in (tmp_path / ".onnx").iterdir())
    assert outputs and outputs == sorted(file.name for file in (tmp_path / ".tenon").iterdir())
    for file in outputs:
        assert (tmp_path / ".onnx" / file).read_bytes() == (tmp_path / ".tenon" / file).read_bytes(), file
