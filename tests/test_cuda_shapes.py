"""CUDA kernels on sizes that the ONNX suite does not have, beside the CPU's: rows that one warp, several or many blocks share, lines too
long to be sorted at once, attention by streams, tiles and products. The stand-in for NVIDIA's libraries (tests/cuda) runs them."""
import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

F = TensorProto.FLOAT


def ints(*values):
    return np.array(values, np.int64)


def numbers(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def attention(heads, kv_heads, queries, keys, size, past=0, **attributes):
    shapes = [[2, heads, queries, size], [2, kv_heads, keys, size], [2, kv_heads, keys, size]]
    inputs = [*shapes, None, *[[2, kv_heads, past, size]] * 2] if past else shapes
    return "Attention", inputs, attributes


# Operator, inputs (a shape is an input of the model, an array a constant, None is left out), attributes.
CASES = {
    **{f"rows_of_{n}": ("ReduceSum", [[6, n], ints(1)], {}) for n in (3, 31, 65, 200, 300, 1030, 5000, 70000)},
    "columns": ("ReduceMax", [[700, 37], ints(0)], {}),
    "divided_columns": ("ReduceSum", [[9000, 5], ints(0)], {}),
    "both_ends": ("ReduceMean", [[3, 130, 5, 33], ints(0, 2)], {}),
    "all": ("ReduceLogSumExp", [[300, 700]], {}),
    "argmax_rows": ("ArgMax", [[4, 9000]], {"axis": 1}),
    "argmin_columns": ("ArgMin", [[4, 500, 9]], {"axis": 1}),
    "softmax_many": ("Softmax", [[1100, 300]], {"axis": -1}),
    "softmax_columns": ("Softmax", [[3, 130, 17]], {"axis": 1}),
    "softmax_long": ("LogSoftmax", [[2, 40000]], {"axis": -1}),
    "layer_norm_two_warps": ("LayerNormalization", [[6, 200], numbers(200), numbers(200)], {}),
    "layer_norm_broadcast": ("LayerNormalization", [[4, 6, 40], numbers(6, 1), numbers(4, 1, 40)], {}),
    "rms_norm_long": ("RMSNormalization", [[2, 50000], numbers(50000)], {}),
    "group_norm": ("GroupNormalization", [[3, 6, 19, 19], numbers(6), numbers(6)], {"num_groups": 2}),
    "max_pool": ("MaxPool", [[2, 3, 17, 19]], {"kernel_shape": [3, 2], "strides": [2, 3], "dilations": [2, 1], "ceil_mode": 1}),
    "average_pool": ("AveragePool", [[2, 3, 17, 19]],
                     {"kernel_shape": [4, 4], "strides": [3, 3], "pads": [1, 2, 2, 1], "dilations": [2, 2], "ceil_mode": 1,
                      "count_include_pad": 1}),
    "resize_smooth": ("Resize", [[2, 3, 19, 21], None, None, ints(2, 3, 7, 5)], {"mode": "cubic", "antialias": 1}),
    "cumsum_row": ("CumSum", [[3, 3000], np.array(1)], {"exclusive": 1, "reverse": 1}),
    "cumsum_columns": ("CumSum", [[3, 40, 50], np.array(1)], {}),
    "top_k_sorted": ("TopK", [[5, 2000], ints(50)], {}),
    "top_k_selected": ("TopK", [[2, 5000, 3], ints(33)], {"axis": 1, "largest": 0}),
    "top_k_of_most": ("TopK", [[2, 3000], ints(2500)], {}),
    "attention_streams": attention(8, 2, 1, 1, 128, past=1000),
    "attention_odd": attention(4, 2, 2, 300, 33),
    "attention_tiles": attention(4, 2, 33, 90, 128, is_causal=1),
    "attention_large_heads": attention(2, 1, 33, 50, 200),
    "attention_products": attention(6, 2, 70, 70, 24, past=21, is_causal=1),
    "attention_window": attention(2, 2, 64, 300, 16, left_window_size=20, right_window_size=0, softcap=2.0),
}


def write_model(path, op, inputs, attributes):
    names, given, constants = [], [], []
    for i, value in enumerate(inputs):
        names.append("" if value is None else f"x{i}")
        if isinstance(value, list):
            given.append(helper.make_tensor_value_info(names[-1], F, value))
        elif value is not None:
            constants.append(numpy_helper.from_array(value, names[-1]))
    outputs = {"TopK": [F, TensorProto.INT64], "ArgMax": [TensorProto.INT64], "ArgMin": [TensorProto.INT64]}.get(op, [F])
    made = [helper.make_tensor_value_info(f"y{i}", kind, None) for i, kind in enumerate(outputs)]
    node = helper.make_node(op, names, [value.name for value in made], **attributes)
    graph = helper.make_graph([node], "shapes", given, made, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11), path)


@pytest.mark.parametrize("name", CASES)
def test_equals_cpu(tenon, tmp_path, name):
    libraries = tenon.parent / "cuda_emulated"
    if not libraries.exists():
        pytest.skip("the stand-in for NVIDIA's libraries is not built")
    write_model(tmp_path / "model.onnx", *CASES[name])
    environment = {**os.environ, "TENON_CUDA_PATH": str(libraries), "TENON_KERNEL_CACHE": str(tmp_path)}

    def call(command, *arguments):
        run = subprocess.run([tenon, command, tmp_path / "model.onnx", *arguments, "--json"], capture_output=True, text=True,
                             env=environment, timeout=300)
        assert run.returncode == 0, run.stdout + run.stderr
        return json.loads(run.stdout)

    nodes = call("inspect", "--placement", "--provider", "cuda,cpu")["placement"]["nodes"]
    assert {node["provider"] for node in nodes} == {"cuda"}
    call("compare", "--provider", "cpu,cuda+cpu", "--outputs-only", "--rtol", "1e-4")
