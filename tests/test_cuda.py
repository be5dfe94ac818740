"""The CUDA provider, on the stand-in for NVIDIA's libraries of tests/cuda; `make test-cuda` runs the whole suite."""
import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import ROOT
from onnx import helper

EMULATED = ROOT / "build" / "cuda_emulated"
CASES = """abs add_bcast argmax_keepdims_example averagepool_2d_same_upper basic_conv_with_padding cast_FLOAT_to_FLOAT16 clip_example
concat_3d_axis_1 convtranspose_pads cumsum_2d_axis_1 depthtospace_example dequantizelinear_axis dynamicquantizelinear einsum_batch_matmul
expand_dim_changed gather_0 gather_elements_1 gathernd_example_float32 gemm_all_attributes gru_defaults
layer_normalization_2d_axis1 logsoftmax_axis_1 lstm_defaults matmul_3d matmulinteger maxpool_2d_default nonzero_example constant_pad
pow quantizelinear_axis reduce_sum_keepdims_example resize_upsample_scales_linear scatter_elements_with_axis scatternd_add
slice softmax_axis_2 split_equal_parts_2d tile top_k transpose_all_permutations_3 triu unsqueeze_axis_1 where_example""".split()


def emulated(*arguments, code=0, program=ROOT / "build" / "tenon", **environment):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=600,
                            env={**os.environ, "TENON_CUDA_PATH": str(EMULATED), "TENON_KERNEL_CACHE": str(EMULATED / "kernels"),
                                 **environment})
    assert result.returncode == code, result.stderr + result.stdout[-2000:]
    return result


def test_cases_of_every_kind_of_kernel():
    folders = [ROOT / "build" / "suite" / "node" / f"test_{name}" for name in CASES]
    report = json.loads(emulated("test", "--provider", "cuda,cpu", "--json", *folders).stdout)
    assert [case["name"] for case in report["cases"] if case["nodes"].get("cpu") or not case["nodes"].get("cuda")] == []
    assert report["passed"] == len(CASES)


def test_kernels_are_what_nvidias_compiler_takes(tmp_path):
    """The stand-in compiles their text as C++ for the CPU; this is the real thing, where it is installed."""
    names = ["abs", "attention_4d_fp16", "basic_conv_with_padding", "layer_normalization_2d_axis1", "softmax_axis_2", "transpose_all_permutations_3"]
    folders = [ROOT / "build" / "suite" / "node" / f"test_{name}" for name in names]
    emulated("test", "--provider", "cuda,cpu", "--json", *folders, TENON_EMULATED_SOURCES=str(tmp_path), TENON_KERNEL_CACHE=str(tmp_path / "kernels"))
    result = subprocess.run([sys.executable, ROOT / "tests/cuda/compile_kernels.py", tmp_path], capture_output=True, text=True)
    if result.returncode == 3:
        pytest.skip("NVRTC, the compiler, is not installed")
    assert result.returncode == 0, result.stdout


def relu(path):
    value = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], name="only")], "g", [value("x", 1, [2])], [value("y", 1, [2])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


def distinct(path):
    """Relu runs on a GPU, Unique does not; the sizes that Reshape reads are computed on the host."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="first"), helper.make_node("Shape", ["a"], ["sizes"]),
             helper.make_node("Reshape", ["a", "sizes"], ["b"]), helper.make_node("Unique", ["b"], ["y"], name="second")]
    graph = helper.make_graph(nodes, "g", [value("x", 1, ["n", 2])], [value("y", 1, ["m"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


@pytest.mark.parametrize("strict", [["--strict"], ["--config", "session.disable_cpu_ep_fallback=1"]], ids=["flag", "config"])
def test_strictness_names_the_node_and_the_reason(tmp_path, strict):
    model = distinct(tmp_path / "m.onnx")
    emulated("run", model, "--provider", "cuda,cpu", "--dim", "n=2")
    for command in (["run"], ["bench"], ["inspect", "--placement"]):
        error = emulated(*command, model, "--provider", "cuda,cpu", *strict, code=3).stderr
        assert "Unique 'second'" in error and "cuda: there is no CUDA kernel for Unique" in error
    assert "nothing to be strict about" in emulated("run", model, *strict, code=2).stderr
    emulated("run", relu(tmp_path / "relu.onnx"), "--provider", "cuda,cpu", *strict)


def test_strictness_of_test_and_compare(tmp_path):
    model = distinct(tmp_path / "m.onnx")
    case = ROOT / "build" / "suite" / "node" / "test_unique_sorted_without_axis"
    assert json.loads(emulated("test", "--provider", "cuda,cpu", "--json", case).stdout)["passed"] == 1
    assert "no CUDA kernel for Unique" in emulated("test", "--provider", "cuda,cpu", "--strict", case, code=1).stdout
    emulated("compare", model, "--provider", "cpu,cuda+cpu")
    assert "no CUDA kernel for Unique" in emulated("compare", model, "--provider", "cpu,cuda+cpu", "--strict", code=3).stderr
    emulated("compare", relu(tmp_path / "relu.onnx"), "--provider", "cpu,cuda+cpu", "--strict")
    assert "nothing to be strict about" in emulated("compare", model, "--strict", code=2).stderr


def test_without_the_libraries(tmp_path):
    """Each library that was looked for, the paths tried and the fix; nothing runs on the CPU instead."""
    model = relu(tmp_path / "m.onnx")
    if "GPU cannot be used" not in subprocess.run([ROOT / "build/tenon", "doctor", "--no-measure"], capture_output=True, text=True).stdout:
        pytest.skip("this machine has a GPU")
    error = subprocess.run([ROOT / "build/tenon", "run", model, "--provider", "cuda"], capture_output=True, text=True)
    assert error.returncode == 4 and "libcuda.so.1" in error.stderr and "install the NVIDIA driver" in error.stderr
    assert "no CUDA-capable device" in emulated("run", model, "--provider", "cuda", code=4, TENON_EMULATED_NO_DEVICE="1").stderr


def test_placement_and_onnxruntimes_name(tmp_path):
    model = relu(tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([-1, 2], np.float32))
    text = emulated("run", model, "--provider", "CUDAExecutionProvider", "--input", f"x={tmp_path / 'x.npy'}", "--placement").stdout
    assert "[0, 2]" in text and "Relu 'only'" in text and "cuda" in text
    lines = emulated("doctor", "--no-measure").stdout
    assert "emulated GPU" in lines and f"{EMULATED}/libcuda.so.1" in lines


def test_several_gpus(tmp_path):
    model = relu(tmp_path / "m.onnx")
    two = dict(TENON_EMULATED_DEVICES="2")
    assert "cuda:1" in emulated("run", model, "--provider", "cuda:1", "--placement", **two).stdout
    emulated("bench", model, "--provider", "cuda:1", "--on-device", "--runs", 3, **two)
    assert "there is no GPU 2: there are 2" in emulated("run", model, "--provider", "cuda:2", code=4, **two).stderr
    assert "there is no GPU 1: there is 1" in emulated("run", model, "--provider", "cuda:1", code=4).stderr
    gpus = json.loads(emulated("doctor", "--no-measure", "--json", **two).stdout)["GPU"]
    assert gpus["GPUs"] == "2" and gpus["cuda:1"] == "emulated GPU, compute capability 9.0, 8192 MiB"


def run_beside_the_cpu(tmp_path, model, **inputs):
    """What the model makes of the inputs with the stand-in, which works when it is waited for, compared with the CPU's."""
    path, arguments = tmp_path / "model.onnx", []
    onnx.save(model, path)
    for name, values in inputs.items():
        np.save(tmp_path / f"{name}.npy", values)
        arguments += ["--input", f"{name}={tmp_path / name}.npy"]
    results = []
    for provider in ("cpu", "cuda,cpu"):
        folder = tmp_path / provider[:4]
        emulated("run", path, "--provider", provider, "--output-dir", folder, *arguments, TENON_EMULATED_ORDER="late")
        results.append({file.name: np.load(file) for file in sorted(folder.glob("*.npy"))})
    for name, expected in results[0].items():
        np.testing.assert_allclose(results[1][name], expected, rtol=1e-5)
    return results[1]


def test_outputs_without_elements(tmp_path):
    """Where only the run shows how large they are."""
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 17]>
        g (float[n,4] x, bool[n] wanted, int64[4] sizes) => (float[a,4] p, float[b,4] q, float[c,4] r, float[d,4] s)
        { y = Relu(x)
          kept = Compress<axis = 0>(y, wanted)
          p, q, r, s = Split<axis = 0>(kept, sizes) }""")
    x, wanted = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32), np.array([True, False, True, True, False])
    parts = run_beside_the_cpu(tmp_path, model, x=x, wanted=wanted, sizes=np.array([0, 2, 0, 1]))
    assert [part.shape[0] for part in parts.values()] == [0, 2, 0, 1]


def test_sizes_that_the_gpu_computes_are_there_before_they_are_read(tmp_path):
    """In a loop no node of the host comes between the copy of the sizes and Expand, which runs on the GPU and reads them on the host."""
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 17]>
        g (float[k,2,9] x, int64 n, float[0] start) => (float[m] y)
        { going = Constant<value = bool {1}>()
          scores = Relu(x)
          y = Loop (n, going, start) <body = b (int64 i, bool c, float[m2] before) => (bool still, float[m3] after)
            { still = Identity(c)
              own = Gather(scores, i)
              sizes = ArgMax<axis = 1, keepdims = 0>(own)
              two = Constant<value = float {2.0}>()
              part = Expand(two, sizes)
              sum = ReduceSum<keepdims = 0>(part)
              flat = Constant<value = int64[1] {1}>()
              one = Reshape(sum, flat)
              after = Concat<axis = 0>(before, one) }> }""")
    x = np.zeros((3, 2, 9), np.float32)
    for i, sizes in enumerate([(4, 5), (8, 2), (6, 6)]):
        x[i, [0, 1], sizes] = 1
    y = run_beside_the_cpu(tmp_path, model, x=x, n=np.array(3), start=np.zeros(0, np.float32))
    assert y["y.npy"].tolist() == [40, 32, 72]


def test_a_kernel_that_fails_is_noticed_later_and_can_be_named(tmp_path):
    value = helper.make_tensor_value_info
    names = ["x", "a", "b", "y"]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]], name=op.lower()) for i, op in enumerate(["Relu", "Exp", "Sqrt"])]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [2])], [value("y", 1, [2])])
    model = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), model)
    run = ["run", model, "--provider", "cuda", "--level", "none"]
    unnamed = emulated(*run, code=4, TENON_EMULATED_FAILURE="2").stderr
    assert "device-lost: the GPU 0 ('emulated GPU') is lost" in unnamed and "CUDA_ERROR_ILLEGAL_ADDRESS" in unnamed
    assert all(word in unnamed for word in ("CUDA_LAUNCH_BLOCKING=1", "nvidia-smi", "Xid", "start the process again")) and "(node" not in unnamed
    for number, node in enumerate(["Relu 'relu' (node 0)", "Exp 'exp' (node 1)", "Sqrt 'sqrt' (node 2)"]):
        failure = dict(TENON_EMULATED_FAILURE=str(number + 1))
        assert f"device-lost in {node}: the GPU 0 ('emulated GPU') is lost" in emulated(*run, code=4, CUDA_LAUNCH_BLOCKING="1", **failure).stderr
        assert f"in {node}" in emulated(*run, "--watch-nan", code=4, **failure).stderr
    emulated(*run, CUDA_LAUNCH_BLOCKING="1")


def test_a_lost_gpu_from_python(tmp_path):
    """Reported by the run that waits, and after a run that did not by the next one or by who waits."""
    model = relu(tmp_path / "m.onnx")
    script = """
import ctypes, sys, numpy as np, tenon
model, early, how = sys.argv[1], sys.argv[2] == "early", sys.argv[3]
stream = ctypes.c_void_p()
driver = ctypes.CDLL(sys.argv[4])
y = tenon.Tensor.empty([2], "float32", "cuda")  # opens the GPU
assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
loaded = tenon.load(model, providers=["cuda", "cpu"], stream=stream.value)
x = tenon.Tensor(np.ones(2, np.float32)).to("cuda")
if early:
    loaded.run(x=x, into={"y": y}, wait=False)
try:
    if how == "run":
        loaded.run(x=x, into={"y": y})
    else:
        tenon.wait_for_cuda()
except tenon.DeviceLostError as error:
    assert isinstance(error, tenon.UnavailableError) and error.code == "device-lost"
    print("lost")
"""
    for early, how in (("late", "run"), ("early", "run"), ("early", "wait")):
        result = emulated("-c", script, model, early, how, EMULATED / "libcuda.so.1", program=sys.executable, TENON_EMULATED_FAILURE="1")
        assert result.stdout == "lost\n"


def test_what_the_gpu_takes_for_each_node(tmp_path):
    profile = json.loads(emulated("bench", relu(tmp_path / "m.onnx"), "--provider", "cuda", "--on-device", "--operators", "--runs", 2, "--json").stdout)["profile"]
    assert [node["op_type"] for node in profile["nodes"] if node.get("device_seconds", 0) > 0] == ["Relu"]
    assert "on device" in emulated("bench", tmp_path / "m.onnx", "--provider", "cuda", "--on-device", "--operators", "--runs", 2).stdout
    assert "on device" not in emulated("bench", tmp_path / "m.onnx", "--provider", "cuda", "--operators", "--runs", 2).stdout


def test_shares_of_what_the_card_can_do():
    """The arithmetic of bench/gpu.py --shares: a product at half of its rate, a copy at a quarter, and one out of the cache."""
    sys.path.insert(0, str(ROOT / "bench"))
    import gpu_shares
    def node(op, seconds, flops, moved):
        return {"op_type": op, "device_seconds": 2 * seconds, "flops": 2 * flops, "bytes": 2 * moved, "inputs": [], "outputs": []}
    nodes = [node("MatMul", 2e-3, 1e12, 1e6), node("Softmax", 1e-3, 1e6, 2.5e9), node("Softmax", 1e-3, 1e6, 2e10), {"op_type": "Unique"}]
    shares = gpu_shares.Shares({"runs": 2, "nodes": nodes}, product=1e15, copy=1e13)
    assert shares.summary(True) == pytest.approx((0.5, 0.5)) and shares.summary(False) == pytest.approx((0.5, 0.625))
    assert [row[0] for row in shares.rows()] == ["MatMul", "Softmax"] and shares.left_out == [{"op_type": "Unique"}]


def test_tensors_from_python():
    """DLPack, outputs on the GPU, IO binding, streams of the caller."""
    emulated("-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "tests/cuda/tensors_from_python.py", program=sys.executable,
             TENON_EMULATED_DEVICES="2")
