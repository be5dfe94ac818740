"""Options of onnxruntime's providers for GPUs, on the stand-in for NVIDIA's libraries of tests/cuda."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenon.onnxruntime as ours
from tenon.onnxruntime import _provider_options
from tenon.onnxruntime._provider_options import CUDA, OPTIONS, TENSORRT

ROOT = Path(__file__).resolve().parent.parent.parent
EMULATED = ROOT / "build" / "cuda_emulated"
InvalidArgument = ours.capi.onnxruntime_pybind11_state.InvalidArgument

# What a process with two GPUs does: `result` is printed with the notes it logged.
PROGRAM = """
import json, logging, os, sys
import numpy as np
import onnx
from onnx import helper
notes = []
class Handler(logging.Handler):
    def emit(self, record):
        notes.append(record.getMessage())
logging.getLogger("tenon.onnxruntime").addHandler(Handler())
import tenon.onnxruntime as ort
value = helper.make_tensor_value_info
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Erf", ["a"], ["b"]),
                           helper.make_node({last!r}, ["b"], ["y"], name="last")], "g", [value("x", 1, ["n", 2])], [value("y", 1, None)],
                          [onnx.numpy_helper.from_array(np.ones((2, 2), np.float32), "w")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()
def session(*providers, **config):
    options = ort.SessionOptions()
    for key, text in config.items():
        options.add_session_config_entry("session." + key, text)
    return ort.InferenceSession(model, options, providers=list(providers))
def where(loaded):
    return sorted(set(node.provider for node in loaded.placement()))
{code}
print(json.dumps([result, notes]))
"""


def on_gpus(code, last="Relu", **environment):
    environment = {**os.environ, "TENON_CUDA_PATH": str(EMULATED), "TENON_KERNEL_CACHE": str(EMULATED / "kernels"),
                   "TENON_EMULATED_DEVICES": "2", **environment}
    environment = {key: value for key, value in environment.items() if value}
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(code=code, last=last)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_device_id_chooses_the_gpu():
    result, notes = on_gpus("""
first, second = session(("CUDAExecutionProvider", {"device_id": 0})), session(("CUDAExecutionProvider", {"device_id": "1"}))
x = np.array([[1, -2]], np.float32)
outputs = [one.run(None, {"x": x})[0].tolist() for _ in range(3) for one in (first, second)]
assert all(one == outputs[0] for one in outputs)
try:
    session(("CUDAExecutionProvider", {"device_id": 2}))
except Exception as error:
    missing = str(error)
first.set_providers(["CUDAExecutionProvider"], [{"device_id": 1}])
result = [where(first), where(second), missing, second.get_providers(), second.get_provider_options()]
""")
    first, second, missing, providers, options = result
    assert (first, second, notes) == (["cuda:1"], ["cuda:1"], []) and providers == [CUDA, "CPUExecutionProvider"]
    assert "there is no GPU 2: there are 2, and numbers begin with 0" in missing
    assert options[CUDA] == {"device_id": "1", "use_tf32": "0", "enable_cuda_graph": "1", "do_copy_in_default_stream": "0"}


def test_options_without_an_effect_are_noted_and_not_listed():
    result, notes = on_gpus("""
loaded = session(("CUDAExecutionProvider", {"gpu_mem_limit": 1 << 30, "cudnn_conv_algo_search": "EXHAUSTIVE", "enable_cuda_graph": "0",
                                            "do_copy_in_default_stream": True, "use_tf32": "1"}))
result = loaded.get_provider_options()["CUDAExecutionProvider"]
""")
    assert result == {"device_id": "0", "use_tf32": "1", "enable_cuda_graph": "1", "do_copy_in_default_stream": "0"}
    assert [note.split(":")[0] for note in notes] == ["the provider option gpu_mem_limit=1073741824 has no effect",
                                                      "the provider option enable_cuda_graph=0 has no effect"]


def test_tensorrt_is_the_cuda_provider_and_says_so(tmp_path):
    """Kernels are in the engine cache's folder when the session is there, and a run with a profile's shapes adds none."""
    result, notes = on_gpus(f"""
folder = {str(tmp_path)!r}
loaded = session(("TensorrtExecutionProvider", {{"trt_engine_cache_enable": True, "trt_engine_cache_path": folder, "trt_fp16_enable": "1",
                                                 "trt_profile_min_shapes": "x:1x2", "trt_profile_opt_shapes": "x:4x2",
                                                 "trt_profile_max_shapes": "x:8x2", "trt_int8_enable": 0, "trt_dla_core": 1}}),
                 "CUDAExecutionProvider", "CPUExecutionProvider")
before = sorted(os.listdir(folder))
loaded.run(None, {{"x": np.ones((4, 2), np.float32)}})
result = [before, sorted(os.listdir(folder)), loaded.get_providers(), loaded.get_provider_options()["CUDAExecutionProvider"]["use_tf32"]]
""", TENON_KERNEL_CACHE="")
    before, after, providers, tf32 = result
    assert before == after != [] and providers == [CUDA, "CPUExecutionProvider"] and tf32 == "1"
    assert notes[0] == "TensorrtExecutionProvider is Tenon's CUDA provider here: TensorRT is not used"
    assert notes[1].startswith("the provider option trt_fp16_enable=1 means here: precision `fast`") and "--dtype fp16" in notes[1]
    assert notes[2].startswith("the provider option trt_dla_core=1 has no effect") and len(notes) == 3


def test_profiles_that_cannot_be_prepared_are_noted():
    _, notes = on_gpus("""
session(("TensorrtExecutionProvider", {"trt_profile_opt_shapes": "x:4x3,z:1"}))
result = 0
""")
    assert "the shape of 'z' has no effect: the model's inputs are x" in notes
    assert any(note.startswith("nothing is prepared for the shapes {'x': (4, 3), 'z': (1,)}") for note in notes)


def test_strict_sessions_name_what_the_gpu_does_not_run():
    result, _ = on_gpus("""
result = [where(session("CUDAExecutionProvider", "CPUExecutionProvider"))]
for providers in (["CUDAExecutionProvider", "CPUExecutionProvider"], ["CPUExecutionProvider"]):
    try:
        session(*providers, disable_cpu_ep_fallback="1")
    except Exception as error:
        result.append(str(error))
""", last="Unique")
    assert result[0] == ["cpu", "cuda"]
    assert "Unique 'last'" in result[1] and "there is no CUDA kernel for Unique" in result[1]
    assert "there is nothing to be strict about" in result[2]


@pytest.mark.parametrize("provider, options, text", [
    (CUDA, {"device_ids": 1}, "did you mean 'device_id'?"),
    (TENSORRT, {"trt_fp16": 1}, "did you mean 'trt_fp16_enable'?"),
    (CUDA, {"trt_fp16_enable": 1}, "CUDAExecutionProvider has no option 'trt_fp16_enable'"),
    (CUDA, {"device_id": "first"}, "is the number of a GPU, not 'first'"),
    (CUDA, {"use_tf32": "yes"}, "is 0 or 1, not 'yes'"),
    (TENSORRT, {"trt_profile_opt_shapes": "x:1xn"}, "such as 'x:1x3x224x224,y:1x8', not 'x:1xn'"),
])
def test_options_that_make_no_sense_are_errors(provider, options, text):
    with pytest.raises(InvalidArgument) as caught:
        ours.InferenceSession(b"", providers=[(provider, options)])
    assert text in str(caught.value)


def test_one_session_is_on_one_gpu():
    with pytest.raises(InvalidArgument, match="device_id 0 and 1"):
        ours.InferenceSession(b"", providers=[(TENSORRT, {"device_id": 1}), (CUDA, {"device_id": 0})])


def test_profiles_begin_again_with_a_name():
    assert _provider_options._shapes("o", "x:1x3,y:2,x:4x3,y:5") == [{"x": (1, 3), "y": (2, )}, {"x": (4, 3), "y": (5, )}]


@pytest.mark.parametrize("provider", OPTIONS)
def test_every_option_is_documented(provider):
    rows = {}
    for name, option in OPTIONS[provider].items():
        rows.setdefault(("" if option.has_effect else "no effect: ") + option.text, []).append(f"`{name}`")
    table = "".join(f"| {', '.join(names)} | {text} |\n" for text, names in rows.items())
    assert f"\n| `{provider}` | here |\n|---|---|\n{table}\n" in (ROOT / "docs/gpu.md").read_text()
