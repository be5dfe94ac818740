"""Matrix products, attention and recurrent networks."""
import numpy as np

from .case import TOKENS, Case, Input, f, half, i8, scalar, u8, weights

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# sequence, batch, input, hidden, directions
RECURRENT = [(50, 1, 128, 128, 1), (1, 1, 256, 256, 1), (1, 16, 256, 256, 1), (200, 1, 64, 64, 1), (50, 16, 128, 128, 1), (200, 1, 256, 256, 2),
             (50, 1, 512, 512, 1), (50, 16, 256, 512, 1), (200, 16, 64, 64, 2)]


def recurrent(operator, sequence, batch, size, hidden, directions, **attributes):
    gates, outputs = GATES[operator], 3 if operator == "LSTM" else 2
    inputs = [f(sequence, batch, size), weights(directions, gates * hidden, size), weights(directions, gates * hidden, hidden), weights(directions, 2 * gates * hidden)]
    both = {"direction": "bidirectional"} if directions == 2 else {}
    what = f"{sequence} steps, batch {batch}, {size} to {hidden}" + (", both ways" if both else "")
    return Case(operator, what, inputs, {"hidden_size": hidden} | both | attributes, outputs)


def quantized(rows, inner, columns):
    return [u8(rows, inner), scalar(0.02), scalar(128, np.uint8), i8(inner, columns, constant=True), scalar(0.01), scalar(0, np.int8), scalar(0.1),
            scalar(128, np.uint8)]


CASES = [recurrent(operator, *sizes) for operator in GATES for sizes in RECURRENT]
CASES += [
    Case("GRU", "reset after, 50 steps", [f(50, 1, 128), weights(1, 384, 128), weights(1, 384, 128), weights(1, 768)], {"hidden_size": 128, "linear_before_reset": 1}, 2),
    Case("LSTM", "peepholes, lengths", [f(50, 8, 128), weights(1, 512, 128), weights(1, 512, 128), weights(1, 1024), Input(8, low=1, high=50, dtype=np.int32),
                                        f(1, 8, 128), f(1, 8, 128), weights(1, 384)], {"hidden_size": 128}, 3),
    Case("MatMul", "small", [f(128, 64), f(64, 128)]), Case("MatMul", "weights", [f(*TOKENS), weights(768, 768)]),
    Case("MatMul", "batched", [f(12, 128, 64), f(12, 64, 128)]), Case("MatMul", "vector", [f(1, 768), weights(768, 3072)]),
    Case("MatMul", "float16", [half(*TOKENS), weights(768, 768, dtype=np.float16)]), Case("MatMul", "double", [f(128, 256, dtype=np.float64), f(256, 256, dtype=np.float64)]),
    Case("MatMul", "int64", [Input(64, 64, low=0, high=9, dtype=np.int64)] * 2), Case("MatMul", "rotary frequencies", [f(1, 32, 1), f(1, 1, 512)]),
    Case("MatMul", "broadcast", [f(1, 12, 128, 64), f(64, 64)]),
    Case("Gemm", "", [f(32, 1024), weights(1000, 1024), weights(1000)], {"transB": 1}), Case("Gemm", "one row", [f(1, 2048), weights(1000, 2048), weights(1000)], {"transB": 1}),
    Case("Gemm", "transposed left", [f(256, 128), f(256, 512)], {"transA": 1}),
    Case("MatMulInteger", "", [u8(128, 768), u8(768, 768, constant=True)]), Case("MatMulInteger", "one row", [u8(1, 768), i8(768, 3072, constant=True)]),
    Case("QLinearMatMul", "", quantized(128, 768, 768)),
    Case("Einsum", "queries by keys", [f(1, 12, 128, 64), f(1, 12, 128, 64)], {"equation": "bhid,bhjd->bhij"}), Case("Einsum", "heads in the middle", [f(1, 128, 12, 64), f(1, 128, 12, 64)], {"equation": "bihd,bjhd->bhij"}),
    Case("Einsum", "values", [f(1, 12, 128, 128), f(1, 128, 12, 64)], {"equation": "bhij,bjhd->bihd"}), Case("Einsum", "relative positions", [f(1, 8, 64, 64), f(64, 64, 64)], {"equation": "bhic,ijc->bhij"}),
    Case("Einsum", "weights", [f(1, 128, 768), weights(768, 12, 64)], {"equation": "bsd,dhk->bshk"}), Case("Einsum", "outer", [f(512), f(512)], {"equation": "i,j->ij"}),
    Case("Einsum", "images by channels", [f(1, 64, 28, 28), f(21, 64)], {"equation": "bchw,kc->bkhw"}), Case("Einsum", "trace of products", [f(64, 128, 128), f(64, 128, 128)], {"equation": "bij,bij->b"}),
    Case("Einsum", "transpose", [f(1, 64, 56, 56)], {"equation": "bchw->bhwc"}), Case("Einsum", "row sums", [f(768, 768)], {"equation": "ij->i"}),
    Case("Det", "", [f(1000, 4, 4)]), Case("Det", "large", [f(8, 64, 64)]),
    Case("Attention", "BERT", [f(1, 12, 128, 64)] * 3, opset=23), Case("Attention", "causal", [f(1, 12, 256, 64)] * 3, {"is_causal": 1}, opset=23),
    Case("Attention", "grouped queries, one token", [f(1, 32, 1, 64), f(1, 8, 512, 64), f(1, 8, 512, 64)], opset=23),
    Case("RotaryEmbedding", "", [f(1, 12, 128, 64), f(1, 128, 32), f(1, 128, 32)], opset=23), Case("RotaryEmbedding", "interleaved", [f(1, 12, 128, 64), f(1, 128, 32), f(1, 128, 32)], {"interleaved": 1}, opset=23),
    Case("RotaryEmbedding", "by position", [f(1, 12, 128, 64), f(2048, 32), f(2048, 32), Input(1, 128, low=0, high=2047, dtype=np.int64)], opset=23),
]
