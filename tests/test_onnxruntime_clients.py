"""What clients of onnxruntime do with real exports, done with it and with tenon.onnxruntime."""
import model_cases
import numpy as np
import onnx
import onnxruntime
import pytest
import tenon.onnxruntime as tenon_onnxruntime
from conftest import ROOT

SMALL = ["bilstm", "crnn_ocr", "dlrm", "llama_tiny_gqa_kv", "minilm_l6", "mlp", "mobilenet_v3_large", "resnet18_dynamo"]


def load(ort, path, **settings):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    for name, setting in settings.items():
        setattr(options, name, setting)
    return ort.InferenceSession(path, sess_options=options, providers=["CPUExecutionProvider"])


def assert_close(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=model_cases.TOLERANCE * np.abs(expected).max(initial=0))


@pytest.mark.parametrize("name", SMALL)
def test_sessions_describe_and_run_alike(name, tmp_path):
    path = model_cases.make(name)
    ours, real = load(tenon_onnxruntime, path), load(onnxruntime, path)
    assert [(arg.name, arg.type, arg.shape) for arg in ours.get_inputs()] == \
        [(arg.name, arg.type, arg.shape) for arg in real.get_inputs()]
    assert [(arg.name, arg.type, len(arg.shape)) for arg in ours.get_outputs()] == \
        [(arg.name, arg.type, len(arg.shape)) for arg in real.get_outputs()]
    inputs = model_cases.inputs_for(name, onnx.load(path, load_external_data=False).graph)
    expected = real.run(None, inputs)
    for actual, other in zip(ours.run(None, inputs), expected, strict=True):
        assert_close(actual, other)
    load(tenon_onnxruntime, path, optimized_model_filepath=str(tmp_path / "optimized.onnx"))
    for actual, other in zip(load(onnxruntime, tmp_path / "optimized.onnx").run(None, inputs), expected, strict=True):
        assert_close(actual, other)


def generate(ort, steps):
    """The tokens that a model with a growing cache gives, with outputs bound as inputs of the next step."""
    path = model_cases.make("llama_tiny_gqa_kv")
    session = load(ort, path)
    caches = [arg for arg in session.get_inputs() if arg.name.startswith("past")]
    names = [arg.name for arg in session.get_outputs()]
    empty = [1 if isinstance(size, str) else size for size in caches[0].shape]
    empty[2] = 0
    past = {arg.name: ort.OrtValue.ortvalue_from_numpy(np.zeros(empty, np.float32)) for arg in caches}
    tokens, last = [], np.array([[7, 8, 9]], np.int64)
    for _ in range(steps):
        start = past[caches[0].name].shape()[2]
        binding = session.io_binding()
        binding.bind_cpu_input("input_ids", last)
        binding.bind_cpu_input("attention_mask", np.ones((1, start + last.shape[1]), np.int64))
        binding.bind_cpu_input("position_ids", np.arange(start, start + last.shape[1], dtype=np.int64)[None])
        for name, cache in past.items():
            binding.bind_ortvalue_input(name, cache)
        for name in names:
            binding.bind_output(name, "cpu")
        session.run_with_iobinding(binding)
        made = dict(zip(names, binding.get_outputs(), strict=True))
        past = {name: made[name.replace("past", "present")] for name in past}
        last = made["logits"].numpy()[:, -1].argmax(-1)[:, None]
        tokens.append(int(last[0, 0]))
    return tokens


def test_generating_with_bound_caches():
    assert generate(tenon_onnxruntime, 12) == generate(onnxruntime, 12)


def test_libraries_of_custom_operators(tenon):
    options = tenon_onnxruntime.SessionOptions()
    options.register_custom_ops_library(str(tenon.parent / "libexample_operators.so"))
    session = tenon_onnxruntime.InferenceSession(ROOT / "examples/custom_operator/model.onnx", options)
    x = np.array([[3, 6, 11]], np.float32)
    assert session.run(None, {"x": x})[0].tolist() == [[1, 1, 1]]
    with pytest.raises(tenon_onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph, match="com.example"):
        tenon_onnxruntime.InferenceSession(ROOT / "examples/custom_operator/model.onnx")
