"""Operators of com.microsoft that quantized models carry, beside onnxruntime: one node, random numbers."""
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tenon

BYTES = [np.uint8, np.int8]


def random(rng, shape, dtype):
    if dtype == np.float32:
        return rng.normal(size=shape).astype(np.float32)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape, dtype=dtype)


def zero(rng, dtype, shape=()):
    return np.asarray(rng.integers(100, 140, shape) - (128 if dtype == np.int8 else 0)).astype(dtype)


def scale(number, shape=()):
    return np.full(shape, number, np.float32)


def run_both(op, inputs, output_type, attributes, more_outputs=()):
    """What both make of a node; inputs are arrays, or None for those that are left out. Weights are constants as often as not."""
    names = [f"i{k}" if array is not None else "" for k, array in enumerate(inputs)]
    given = {name: array for name, array in zip(names, inputs) if name}
    results = []
    for constants in (False, True):
        kept = {name for k, name in enumerate(names) if name and (not constants or k == 0)}
        graph = helper.make_graph(
            [helper.make_node(op, names, ["y", *more_outputs], domain="com.microsoft", **attributes)], "g",
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(given[name].dtype), given[name].shape) for name in given if name in kept],
            [helper.make_tensor_value_info("y", output_type, None)],
            [numpy_helper.from_array(array, name) for name, array in given.items() if name not in kept])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
        data = model.SerializeToString()
        feed = {name: given[name] for name in kept}
        expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feed)[0]
        results.append((tenon.load(data).run(feed)["y"], expected))
    return results


def check(op, inputs, output_type=None, **attributes):
    """Quantized outputs may be a step apart, where a number is between two and the sums are rounded in another order."""
    for actual, expected in run_both(op, inputs, output_type, attributes):
        assert actual.dtype == expected.dtype and actual.shape == expected.shape
        if actual.dtype == np.float32:
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)
            continue
        steps = np.abs(actual.astype(int) - expected.astype(int))
        assert steps.max() <= 1 and (steps > 0).sum() <= max(1, steps.size // 50), f"{steps.max()} steps, {(steps > 0).mean():.1%} differ"


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op, result", [("QLinearAdd", 0.07), ("QLinearMul", 0.4)])
@pytest.mark.parametrize("shapes", [((2, 3, 8), (2, 3, 8)), ((2, 3, 8), (3, 1)), ((4,), (5, 1))])
def test_binary(op, result, dtype, shapes):
    rng = np.random.default_rng(0)
    a, b = (random(rng, shape, dtype) for shape in shapes)
    check(op, [a, scale(0.05), zero(rng, dtype), b, scale(0.03), zero(rng, dtype), scale(result), zero(rng, dtype)], onnx_type(dtype))


@pytest.mark.parametrize("dtype", BYTES)
def test_binary_without_zero_points(dtype):
    rng = np.random.default_rng(0)
    a, b, none = random(rng, (64,), dtype), random(rng, (64,), dtype), np.array(0, dtype)
    # onnxruntime has them in its schema, but finds no type where they are left out.
    inputs = {"a": a, "a_scale": scale(0.05), "b": b, "b_scale": scale(0.03), "scale": scale(0.1), "none": none}
    results = []
    for zero_point in ("", "none"):
        node = helper.make_node("QLinearAdd", ["a", "a_scale", zero_point, "b", "b_scale", zero_point, "scale", zero_point], ["y"], domain="com.microsoft")
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(name, onnx_type(array.dtype), array.shape) for name, array in inputs.items()],
                                  [helper.make_tensor_value_info("y", onnx_type(dtype), None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
        results.append(tenon.load(model.SerializeToString()).run(inputs)["y"])
    np.testing.assert_array_equal(*results)
    assert results[0].dtype == dtype


@pytest.mark.parametrize("dtype", BYTES)
def test_unary(dtype):
    rng = np.random.default_rng(0)
    x = random(rng, (1000,), dtype)
    check("QLinearSigmoid", [x, scale(0.05), zero(rng, dtype), scale(1 / 256), np.array(0 if dtype == np.uint8 else -128, dtype)], onnx_type(dtype))
    check("QLinearLeakyRelu", [x, scale(0.05), zero(rng, dtype), scale(0.05), zero(rng, dtype)], onnx_type(dtype), alpha=0.2)
    check("QLinearLeakyRelu", [x, scale(0.05), zero(rng, dtype), scale(0.05), zero(rng, dtype)], onnx_type(dtype))


@pytest.mark.parametrize("dtype", BYTES)
def test_where(dtype):
    rng = np.random.default_rng(0)
    condition = rng.random((2, 8)) > 0.5
    check("QLinearWhere", [condition, random(rng, (2, 8), dtype), scale(0.05), zero(rng, dtype), random(rng, (8,), dtype), scale(0.03), zero(rng, dtype),
                           scale(0.06), zero(rng, dtype)], onnx_type(dtype))


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("opset, axis", [(13, -1), (13, 1), (11, 1), (12, 2)])
def test_softmax(dtype, opset, axis):
    rng = np.random.default_rng(0)
    lowest = np.array(np.iinfo(dtype).min, dtype)
    check("QLinearSoftmax", [random(rng, (2, 5, 7), dtype), scale(0.05), zero(rng, dtype), scale(1 / 256), lowest], onnx_type(dtype), axis=axis, opset=opset)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("axis", [1, -1])
def test_concat(dtype, axis):
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 4), (2, 3, 4), (2, 3, 4)]
    parts = []
    for i, shape in enumerate(shapes):
        parts += [random(rng, shape, dtype), scale(0.05 + 0.02 * i), zero(rng, dtype)]
    check("QLinearConcat", [scale(0.08), zero(rng, dtype), *parts], onnx_type(dtype), axis=axis)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
def test_global_average_pool(dtype, last):
    rng = np.random.default_rng(0)
    shape = (2, 5, 6, 8) if last else (2, 8, 5, 6)
    check("QLinearGlobalAveragePool", [random(rng, shape, dtype), scale(0.05), zero(rng, dtype), scale(0.02), zero(rng, dtype)], onnx_type(dtype), channels_last=last)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("attributes", [{"strides": [2, 2]}, {"pads": [1, 1, 1, 1]}, {"pads": [1, 1, 1, 1], "count_include_pad": 1},
                                        {"auto_pad": "SAME_UPPER"}, {"strides": [2, 2], "ceil_mode": 1}])
def test_average_pool(dtype, attributes):
    rng = np.random.default_rng(0)
    check("QLinearAveragePool", [random(rng, (1, 4, 9, 9), dtype), scale(0.05), zero(rng, dtype), scale(0.0437), zero(rng, dtype)], onnx_type(dtype),
          kernel_shape=[3, 3], **attributes)


@pytest.mark.parametrize("a_type", BYTES)
@pytest.mark.parametrize("b_type", BYTES)
@pytest.mark.parametrize("trans_a, trans_b, columns, output", [(0, 0, (), True), (1, 0, (), True), (0, 1, (6,), True), (0, 0, (6,), False), (1, 1, (), False)])
def test_gemm(a_type, b_type, trans_a, trans_b, columns, output):
    if (a_type, b_type) == (np.int8, np.uint8):
        pytest.skip("onnxruntime has no kernel for int8 times uint8")
    rng = np.random.default_rng(0)
    a = random(rng, (12, 5) if trans_a else (5, 12), a_type)
    b = random(rng, (6, 12) if trans_b else (12, 6), b_type)
    bias = rng.integers(-2000, 2000, 6, dtype=np.int32)
    b_zero = np.full(columns, zero(rng, b_type), b_type)
    inputs = [a, scale(0.01), zero(rng, a_type), b, scale(0.02, columns), b_zero, bias]
    inputs += [scale(0.1), zero(rng, a_type)] if output else []
    check("QGemm", inputs, onnx_type(a_type) if output else TensorProto.FLOAT, transA=trans_a, transB=trans_b, alpha=1.5)


@pytest.mark.parametrize("a_type", BYTES)
@pytest.mark.parametrize("b_type", BYTES)
@pytest.mark.parametrize("columns", [(), (6,)])
def test_matmul_integer_to_float(a_type, b_type, columns):
    if (a_type, b_type) == (np.int8, np.uint8):
        pytest.skip("onnxruntime has no kernel for int8 times uint8")
    rng = np.random.default_rng(0)
    a, b = random(rng, (2, 5, 12), a_type), random(rng, (12, 6), b_type)
    b_zero = np.full(columns, zero(rng, b_type), b_type)
    bias = random(rng, (6,), np.float32)
    check("MatMulIntegerToFloat", [a, b, scale(0.01), scale(0.02, columns), zero(rng, a_type), b_zero, bias], TensorProto.FLOAT)
    check("MatMulIntegerToFloat", [a, b, scale(0.01), scale(0.02, columns)], TensorProto.FLOAT)


@pytest.mark.parametrize("b_type", BYTES)
def test_dynamic_quantize_matmul(b_type):
    rng = np.random.default_rng(0)
    a, b = random(rng, (3, 5, 12), np.float32), random(rng, (12, 6), b_type)
    check("DynamicQuantizeMatMul", [a, b, scale(0.02), zero(rng, b_type), random(rng, (6,), np.float32)], TensorProto.FLOAT)
    check("DynamicQuantizeMatMul", [a, b, scale(0.02, (6,)), np.full(6, zero(rng, b_type), b_type)], TensorProto.FLOAT)
    check("DynamicQuantizeMatMul", [a, b, scale(0.02)], TensorProto.FLOAT)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_linear(dtype):
    rng = np.random.default_rng(0)
    x = random(rng, (4, 100), np.float32)
    zero_point = np.array(np.iinfo(dtype).max // 2, dtype)
    check("QuantizeLinear", [x, scale(0.001), zero_point], onnx_type(dtype))
    check("DequantizeLinear", [random(rng, (4, 100), dtype), scale(0.001), zero_point], TensorProto.FLOAT)
    check("DequantizeLinear", [random(rng, (4, 100), dtype), np.linspace(0.01, 0.1, 4, dtype=np.float32), np.full(4, zero_point)], TensorProto.FLOAT, axis=0)


CONVOLUTIONS = [((1, 9, 8, 16), (24, 16, 3, 3), {"pads": [1, 1, 1, 1]}), ((2, 11, 13, 3), (8, 3, 5, 5), {"strides": [2, 2], "pads": [2, 2, 2, 2]}),
                ((1, 7, 7, 20), (20, 1, 3, 3), {"group": 20, "pads": [1, 1, 1, 1]}), ((1, 6, 6, 8), (5, 8, 1, 1), {}),
                ((1, 9, 9, 8), (8, 4, 3, 3), {"group": 2}), ((1, 9, 9, 12), (16, 12, 3, 3), {"dilations": [2, 2]})]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("x, w, attributes", CONVOLUTIONS)
def test_conv_with_channels_last(dtype, by_channel, x, w, attributes):
    rng = np.random.default_rng(0)
    count = (w[0],) if by_channel else ()
    inputs = [random(rng, x, dtype), scale(0.02), zero(rng, dtype), random(rng, w, np.int8), scale(0.01, count), np.zeros(count, np.int8),
              scale(0.3), zero(rng, dtype), rng.integers(-2000, 2000, w[0], dtype=np.int32)]
    check("QLinearConv", inputs, onnx_type(dtype), channels_last=1, **attributes)


@pytest.mark.parametrize("dtype", BYTES)
def test_max_pool_with_channels_last(dtype):
    rng = np.random.default_rng(0)
    check("NhwcMaxPool", [random(rng, (2, 9, 8, 20), dtype)], onnx_type(dtype), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])


def packed(codes, bits):
    """Codes along the last axis, the lowest bits of a byte first; the last byte is filled up with zeros."""
    per_byte = 8 // bits
    missing = -codes.shape[-1] % per_byte
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, missing)]).reshape(*codes.shape[:-1], -1, per_byte)
    return (codes.astype(np.uint32) << (np.arange(per_byte, dtype=np.uint32) * bits)).sum(-1).astype(np.uint8)


def check_near(op, inputs, tolerance, **attributes):
    """`tolerance` relative to the largest number; the inputs after the first are constants, as in every model."""
    actual, expected = run_both(op, inputs, TensorProto.FLOAT, attributes)[1]
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [None, "packed", "floats"])
@pytest.mark.parametrize("rows, n, k, block", [(1, 24, 64, 32), (5, 17, 100, 16), (9, 40, 256, 128)])
def test_matmul_nbits(bits, zeros, rows, n, k, block):
    if (bits, zeros) == (8, "floats"):
        pytest.skip("onnxruntime has no kernel for it")
    rng = np.random.default_rng(0)
    blocks = -(-k // block)
    codes = rng.integers(0, 1 << bits, (n, blocks, block))
    scales = rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32)
    zero_codes = rng.integers(0, 1 << bits, (n, blocks))
    zero_points = {None: None, "packed": packed(zero_codes, bits), "floats": zero_codes.astype(np.float32) + 0.25}[zeros]
    a = random(rng, (2, rows, k), np.float32)
    inputs = [a, packed(codes, bits), scales, zero_points, None, random(rng, (n,), np.float32)]
    check_near("MatMulNBits", inputs, 1e-5, N=n, K=k, block_size=block, bits=bits, accuracy_level=1)


@pytest.mark.parametrize("block", [32, 128])
def test_matmul_nbits_with_rounded_activations(block):
    """Both round them to 8 bits, in ways of their own: the error may be as large as onnxruntime's."""
    rng = np.random.default_rng(0)
    n, k = 32, 256
    codes = rng.integers(0, 16, (n, k // block, block))
    scales = rng.uniform(0.01, 0.1, (n, k // block)).astype(np.float32)
    a = random(rng, (3, k), np.float32)
    exact = a.astype(float) @ ((codes - 8) * scales[..., None].astype(float)).reshape(n, k).T
    (_, _), (actual, expected) = run_both("MatMulNBits", [a, packed(codes, 4), scales], TensorProto.FLOAT,
                                          {"N": n, "K": k, "block_size": block, "bits": 4, "accuracy_level": 4})
    error, theirs = np.sqrt(np.mean((actual - exact) ** 2)), np.sqrt(np.mean((expected - exact) ** 2))
    assert 0 < error <= 1.1 * theirs


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("with_zeros", [False, True])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_gather_block_quantized(bits, with_zeros, shape):
    rng = np.random.default_rng(0)
    rows, columns, block = 10, 96, 32
    table = packed(rng.integers(0, 1 << bits, (rows, columns)), bits)
    scales = rng.uniform(0.01, 0.1, (rows, columns // block)).astype(np.float32)
    zeros = packed(rng.integers(0, 1 << bits, (rows, columns // block)), bits) if with_zeros else None
    indices = rng.integers(0, rows, shape).astype(np.int64)
    check("GatherBlockQuantized", [table, np.asarray(indices), scales, zeros], TensorProto.FLOAT, bits=bits, block_size=block, gather_axis=0, quantize_axis=1)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("with_segments", [False, True])
def test_embed_layer_norm(dtype, with_segments):
    rng = np.random.default_rng(0)
    hidden = 16
    ids, segments = rng.integers(0, 20, (2, 7)).astype(np.int32), rng.integers(0, 2, (2, 7)).astype(np.int32)
    tables = [random(rng, shape, dtype) for shape in ((20, hidden), (9, hidden), (2, hidden), (hidden,), (hidden,))]
    scales = [scale(0.01 * (k + 1)) for k in range(5)]
    zeros = [zero(rng, dtype) for _ in range(5)]
    if not with_segments:
        segments = tables[2] = scales[2] = zeros[2] = None
    inputs = [ids, segments, *tables, None, *scales, *zeros]
    for actual, expected in run_both("QEmbedLayerNormalization", inputs, TensorProto.FLOAT, {}, more_outputs=["mask_index"]):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("by_output", [False, True])
@pytest.mark.parametrize("batch", [1, 3])
def test_lstm(dtype, direction, by_output, batch):
    """What is multiplied by the weights is rounded to 8 bits in each step, by onnxruntime also where they are computed. Its
    threads give the states of a batch a scale each."""
    rng = np.random.default_rng(0)
    inputs, hidden, directions = 12, 8, 2 if direction == "bidirectional" else 1
    size = (directions, 4 * hidden) if by_output else (directions,)
    scales = rng.uniform(0.002, 0.004, (2, *size)).astype(np.float32)
    zeros = np.full(size, 120 if dtype == np.uint8 else 0 if by_output else 3, dtype)
    x = random(rng, (9, batch, inputs), np.float32)
    weights = [random(rng, (directions, n, 4 * hidden), dtype) for n in (inputs, hidden)]
    bias, peepholes = random(rng, (directions, 8 * hidden), np.float32), random(rng, (directions, 3 * hidden), np.float32)
    states = [random(rng, (directions, batch, hidden), np.float32) for _ in range(2)]
    lengths = None if batch == 1 else np.array([9, 1, 4], np.int32)
    values = [x, *weights, bias, lengths, *states, peepholes, scales[0], zeros, scales[1], zeros]
    results = run_both("DynamicQuantizeLSTM", values, TensorProto.FLOAT, {"hidden_size": hidden, "direction": direction})
    for (actual, expected), allowed in zip(results, [0.02, 1e-5 if batch == 1 else 0.005], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=allowed)


@pytest.mark.parametrize("weight_type", BYTES)
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("mask", [None, "lengths", "keys"])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention(weight_type, by_column, mask, unidirectional):
    rng = np.random.default_rng(0)
    batch, length, hidden, heads = 2, 6, 16, 4
    columns = (3 * hidden,) if by_column else ()
    x = random(rng, (batch, length, hidden), np.uint8)
    weights, bias = random(rng, (hidden, 3 * hidden), weight_type), random(rng, (3 * hidden,), np.float32)
    masks = {None: None, "lengths": np.array([4, 6], np.int32), "keys": rng.integers(0, 2, (batch, length)).astype(np.int32)}
    inputs = [x, weights, bias, scale(0.01), scale(0.01, columns), masks[mask], zero(rng, np.uint8), np.full(columns, zero(rng, weight_type), weight_type)]
    check("QAttention", inputs, TensorProto.FLOAT, num_heads=heads, unidirectional=unidirectional)


def qdq_model(quantized_type, scale_number, weights_type, block):
    """x is quantized and dequantized, multiplied by dequantized weights in blocks, and quantized once more."""
    rng = np.random.default_rng(0)
    k, n = 64, 24
    info = {TensorProto.INT4: (-8, 8), TensorProto.UINT4: (0, 16), TensorProto.INT8: (-128, 128)}[weights_type]
    codes = helper.make_tensor("w_q", weights_type, (k, n), rng.integers(*info, k * n).tolist())
    nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["x_q"], output_dtype=quantized_type), helper.make_node("DequantizeLinear", ["x_q", "s"], ["x_d"]),
             helper.make_node("DequantizeLinear", ["w_q", "w_s"], ["w"], axis=0, block_size=block), helper.make_node("MatMul", ["x_d", "w"], ["m"]),
             helper.make_node("QuantizeLinear", ["m", "t"], ["m_q"], output_dtype=quantized_type), helper.make_node("DequantizeLinear", ["m_q", "t"], ["y"])]
    constants = [numpy_helper.from_array(scale(scale_number), "s"), numpy_helper.from_array(scale(8 * scale_number), "t"), codes,
                 numpy_helper.from_array(rng.uniform(0.01, 0.1, (k // block, n)).astype(np.float32), "w_s")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (5, k))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, (5, n))], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


@pytest.mark.parametrize("quantized_type, step", [(TensorProto.INT16, 0.001), (TensorProto.UINT16, 0.001), (TensorProto.FLOAT8E4M3FN, 0.01)])
@pytest.mark.parametrize("weights_type", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8])
def test_wide_and_float8_pairs_around_weights_of_few_bits(quantized_type, step, weights_type):
    """Beside onnxruntime without its optimiser; sums that lie between two codes may be rounded to either."""
    model = qdq_model(quantized_type, step, weights_type, 16)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    x = random(np.random.default_rng(1), (5, 64), np.float32)
    expected = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    ours = tenon.load(model)
    actual = ours.run({"x": x})["y"]
    assert "MatMulNBits" in [node.op_type for node in ours.placement()]
    spacing = np.maximum(8 * step, np.abs(expected) / 8 if quantized_type == TensorProto.FLOAT8E4M3FN else 0)
    assert (np.abs(actual - expected) <= 1.001 * spacing).all() and (actual == expected).mean() > 0.95
