"""A quantized network on the stand-in for NVIDIA's libraries (tests/cuda): it computes on codes alone, as the CPU does, and its kernels are what
NVIDIA's own compiler takes."""
import json
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import onnx
import pytest
from conftest import ROOT
from onnx import TensorProto, helper, numpy_helper

EMULATED = ROOT / "build" / "cuda_emulated"


def network(path):
    """Convolutions with windows, points and one channel each, a residual sum, a function, a pool, a mean and a product."""
    rng = np.random.default_rng(0)
    nodes, weights = [], []

    def constant(name, *shape):
        weights.append(numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name))
        return name

    def conv(x, y, outputs, channels, kernel, groups=1, stride=1):
        names = [x, constant(f"{y}_w", outputs, channels // groups, kernel, kernel), constant(f"{y}_b", outputs)]
        nodes.append(helper.make_node("Conv", names, [y], y, group=groups, strides=[stride] * 2, pads=[kernel // 2] * 4))

    conv("x", "stem", 16, 3, 3, stride=2)
    nodes.append(helper.make_node("Relu", ["stem"], ["a"]))
    nodes.append(helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2]))
    conv("b", "depthwise", 16, 16, 3, groups=16)
    nodes.append(helper.make_node("HardSwish", ["depthwise"], ["c"]))
    conv("c", "points", 16, 16, 1)
    nodes.append(helper.make_node("Add", ["points", "b"], ["d"]))
    nodes.append(helper.make_node("Relu", ["d"], ["e"]))
    conv("e", "grouped", 32, 16, 3, groups=2)
    nodes.append(helper.make_node("GlobalAveragePool", ["grouped"], ["f"]))
    nodes.append(helper.make_node("Flatten", ["f"], ["g"]))
    nodes.append(helper.make_node("Gemm", ["g", constant("w", 32, 10), constant("bias", 10)], ["y"]))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "network", [value("x", TensorProto.FLOAT, [1, 3, 17, 17])], [value("y", TensorProto.FLOAT, [1, 10])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


@pytest.fixture(scope="module")
def quantized(tmp_path_factory, tenon):
    folder = tmp_path_factory.mktemp("codes")
    network(folder / "float.onnx")
    subprocess.run([tenon, "quantize", folder / "float.onnx", "-o", folder / "model.onnx", "--max-loss", "none", "--no-measure"], check=True,
                   capture_output=True)
    return folder


def call(tenon, folder, command, *arguments, **environment):
    if not EMULATED.exists():
        pytest.skip("the stand-in for NVIDIA's libraries is not built")
    run = subprocess.run([tenon, command, folder / "model.onnx", *arguments, "--json"], capture_output=True, text=True, timeout=300,
                         env={**os.environ, "TENON_CUDA_PATH": str(EMULATED), "TENON_KERNEL_CACHE": str(folder / "kernels"),
                              "TENON_EMULATED_SOURCES": str(folder), **environment})
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout)


def test_computes_on_codes_as_the_cpu_does(tenon, quantized):
    nodes = call(tenon, quantized, "inspect", "--placement", "--provider", "cuda,cpu")["placement"]["nodes"]
    assert {node["provider"] for node in nodes} == {"cuda"}
    operators = Counter(node["op_type"] for node in nodes)
    assert operators["QLinearConv"] == 4 and operators["MatMulIntegerToFloat"] == 1
    assert not set(operators) & {"QuantizeLinear", "DequantizeLinear", "Transpose", "Conv", "ChannelsLastConv", "Add", "QLinearAdd", "HardSwish"}
    call(tenon, quantized, "compare", "--provider", "cpu,cuda+cpu", "--outputs-only", "--rtol", "0", "--atol", "0")


def test_gpus_without_8_bit_tensor_cores_compute_the_same(tenon, quantized):
    nodes = call(tenon, quantized, "inspect", "--placement", "--provider", "cuda,cpu", TENON_EMULATED_MAJOR="7")["placement"]["nodes"]
    assert {node["provider"] for node in nodes} == {"cuda"}
    assert not {"MatMulIntegerToFloat", "Conv"} & {node["op_type"] for node in nodes}
    call(tenon, quantized, "compare", "--provider", "cpu,cuda+cpu", "--outputs-only", "--rtol", "1e-6", TENON_EMULATED_MAJOR="7")


@pytest.mark.parametrize("major, architecture", [("8", "sm_80"), ("9", "sm_90a")])
def test_kernels_are_what_nvidias_compiler_takes(tenon, quantized, tmp_path, major, architecture):
    call(tenon, quantized, "compare", "--provider", "cpu,cuda+cpu", "--outputs-only", "--rtol", "0", "--atol", "0", TENON_EMULATED_MAJOR=major,
         TENON_EMULATED_SOURCES=str(tmp_path), TENON_KERNEL_CACHE=str(tmp_path / "kernels"))
    texts = "".join(path.read_text() for path in tmp_path.glob("*.cu"))
    assert ("#define WARP_GROUPS 1" in texts, "#define WARP_GROUPS 0" in texts) == (major == "9", major == "8")
    result = subprocess.run([sys.executable, ROOT / "tests/cuda/compile_kernels.py", "--architecture", architecture, tmp_path],
                            capture_output=True, text=True)
    if result.returncode == 3:
        pytest.skip("NVRTC, the compiler, is not installed")
    assert result.returncode == 0 and "spill" not in result.stdout, result.stdout
