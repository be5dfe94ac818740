"""Reductions, normalisations, softmax, sorting and scans along axes."""
import numpy as np

from .case import BATCH, IMAGE, TOKENS, Case, Input, f, half, i32, i64, ints, scalar, truth, u8, weights

REDUCE = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
          "ReduceSumSquare"]
COMMON = ["ReduceMean", "ReduceMax", "ReduceSum"]

CASES = [Case(name, "last axis", [f(*TOKENS, low=0.1), ints(-1)]) for name in REDUCE]
CASES += [Case(name, "first axis", [f(768, 768, low=0.9, high=1.1), ints(0)]) for name in REDUCE]
CASES += [Case(name, "all", [f(*TOKENS, low=0.9, high=1.1)]) for name in REDUCE]
CASES += [Case(name, "spatial", [f(*IMAGE, low=0.1), ints(2, 3)]) for name in COMMON]
CASES += [Case(name, "channels", [f(*IMAGE), ints(1)]) for name in COMMON]
CASES += [Case(name, "outer and inner", [f(8, 64, 28, 28), ints(0, 2, 3)]) for name in COMMON]
CASES += [Case(name, "last axis, out of cache", [f(64, 256, 768), ints(-1)]) for name in COMMON]
CASES += [Case(name, "short rows", [f(20000, 8), ints(-1)]) for name in COMMON]
CASES += [
    Case("ReduceSum", "int64", [i64(*TOKENS), ints(-1)]), Case("ReduceMax", "int64", [i64(*TOKENS), ints(-1)]),
    Case("ReduceSum", "int32 mask", [i32(64, 512, high=1), ints(1)]), Case("ReduceMax", "bool", [truth(1, 512, 512), ints(-1)], opset=20),
    Case("ReduceMax", "uint8", [u8(*IMAGE), ints(2, 3)]), Case("ReduceMean", "double", [f(*TOKENS, dtype=np.float64), ints(-1)]),
    Case("ReduceSum", "float16", [half(*TOKENS), ints(-1)]), Case("ReduceMean", "float16", [half(*TOKENS), ints(-1)]),
    Case("ArgMax", "vocabulary", [f(128, 50257)], {"axis": -1}), Case("ArgMax", "segmentation", [f(1, 21, 256, 256)], {"axis": 1}),
    Case("ArgMax", "one row", [f(1, 50257)], {"axis": -1}), Case("ArgMax", "uint8", [u8(256, 1000)], {"axis": -1}),
    Case("ArgMax", "int64", [i64(128, 1000)], {"axis": -1}), Case("ArgMax", "last index", [f(128, 768)], {"axis": -1, "select_last_index": 1}),
    Case("ArgMin", "first axis", [f(256, 768)], {"axis": 0}), Case("ArgMin", "", [f(128, 768)], {"axis": -1}),
    Case("CumSum", "", [f(*TOKENS), scalar(1, np.int64)]), Case("CumSum", "last axis", [f(*TOKENS), scalar(2, np.int64)]),
    Case("CumSum", "int64", [i64(16, 512, high=1), scalar(1, np.int64)]), Case("CumSum", "reverse, exclusive", [f(*TOKENS), scalar(2, np.int64)], {"reverse": 1, "exclusive": 1}),
    Case("CumProd", "", [f(*TOKENS), scalar(1, np.int64)], opset=26),
    # softmax
    Case("Softmax", "attention", [f(1, 12, 128, 128)]), Case("Softmax", "vocabulary", [f(16, 50257)]),
    Case("Softmax", "middle axis", [f(1, 21, 64, 64)], {"axis": 1}), Case("Softmax", "attention, out of cache", [f(8, 12, 512, 512)]),
    Case("Softmax", "1000 classes", [f(64, 1000)]), Case("Softmax", "short rows", [f(8400, 16)]), Case("Softmax", "float16", [half(1, 12, 128, 128)]),
    Case("Softmax", "double", [f(128, 768, dtype=np.float64)]), Case("Softmax", "segmentation", [f(1, 21, 256, 256)], {"axis": 1}),
    Case("LogSoftmax", "", [f(16, 50257)]), Case("LogSoftmax", "speech", [f(500, 1, 32)]), Case("Hardmax", "", [f(128, 768)]),
    # normalisations
    Case("BatchNormalization", "", [f(*IMAGE), weights(64), weights(64), weights(64), Input(64, low=0.5, high=1.0, constant=True)]),
    Case("BatchNormalization", "tokens", [f(128, 768), weights(768), weights(768), weights(768), Input(768, low=0.5, high=1.0, constant=True)]),
    Case("BatchNormalization", "out of cache", [f(*BATCH), weights(64), weights(64), weights(64), Input(64, low=0.5, high=1.0, constant=True)]),
    Case("InstanceNormalization", "", [f(*IMAGE), weights(64), weights(64)]), Case("InstanceNormalization", "large", [f(1, 64, 224, 224), weights(64), weights(64)]),
    Case("LayerNormalization", "", [f(*TOKENS), weights(768), weights(768)]), Case("LayerNormalization", "no bias", [f(*TOKENS), weights(768)]),
    Case("LayerNormalization", "out of cache", [f(64, 256, 768), weights(768), weights(768)]),
    Case("LayerNormalization", "one row", [f(1, 1, 4096), weights(4096), weights(4096)]),
    Case("LayerNormalization", "short rows", [f(3136, 96), weights(96), weights(96)]),
    Case("LayerNormalization", "float16", [half(*TOKENS), weights(768, dtype=np.float16), weights(768, dtype=np.float16)]),
    Case("RMSNormalization", "", [f(*TOKENS), weights(768)], opset=23), Case("RMSNormalization", "out of cache", [f(4, 1024, 4096), weights(4096)], opset=23),
    Case("RMSNormalization", "by head", [f(1, 128, 32, 128), weights(128)], opset=23),
    Case("GroupNormalization", "", [f(*IMAGE), weights(64), weights(64)], {"num_groups": 8}),
    Case("GroupNormalization", "diffusion", [f(1, 320, 64, 64), weights(320), weights(320)], {"num_groups": 32}),
    Case("LRN", "", [f(1, 96, 55, 55)], {"size": 5}), Case("LpNormalization", "", [f(128, 768)]), Case("LpNormalization", "L1", [f(128, 768)], {"p": 1}),
    Case("LpNormalization", "channels", [f(1, 256, 32, 32)], {"axis": 1}),
    Case("MeanVarianceNormalization", "", [f(*IMAGE)]),
    # sorting and searching
    Case("TopK", "vocabulary", [f(1, 50257), ints(50)], outputs=2), Case("TopK", "detections", [f(1, 8400), ints(300)], outputs=2),
    Case("TopK", "5 of 1000", [f(64, 1000), ints(5)], outputs=2), Case("TopK", "experts", [f(2048, 64), ints(8)], outputs=2),
    Case("TopK", "first axis", [f(1000, 91), ints(10)], {"axis": 0}, outputs=2), Case("TopK", "int64", [i64(16, 5000, high=100000), ints(100)], outputs=2),
    Case("TopK", "smallest", [f(16, 5000), ints(100)], {"largest": 0}, outputs=2), Case("TopK", "all, sorted", [f(4, 8400), ints(8400)], outputs=2),
    Case("TopK", "unsorted", [f(16, 5000), ints(100)], {"sorted": 0}, outputs=2), Case("TopK", "one", [f(128, 5000), ints(1)], outputs=2),
    Case("NonZero", "", [truth(512, 512)]), Case("NonZero", "float", [f(1, 1, 512, 512, low=-1, high=1)]), Case("NonZero", "int64 vector", [i64(100000, high=1)]),
    Case("Unique", "", [i64(20000, high=5000)], {"sorted": 1}), Case("Unique", "all outputs", [i64(20000, high=5000)], outputs=4),
    Case("Unique", "float", [f(20000)]), Case("Unique", "rows", [i64(2000, 4, high=9)], {"axis": 0}), Case("Unique", "unsorted", [i64(20000, high=5000)], {"sorted": 0}),
    Case("NonMaxSuppression", "", [f(1, 1000, 4, low=0, high=1), f(1, 1, 1000, low=0, high=1), ints(100), Input(values=[0.5], dtype=np.float32),
                                   Input(values=[0.3], dtype=np.float32)]),
    Case("NonMaxSuppression", "80 classes, 8400 boxes", [f(1, 8400, 4, low=0, high=640), f(1, 80, 8400, low=0, high=1), ints(100), Input(values=[0.45], dtype=np.float32),
                                                         Input(values=[0.95], dtype=np.float32)], {"center_point_box": 1}),
    Case("NonMaxSuppression", "batch", [f(8, 1917, 4, low=0, high=1), f(8, 4, 1917, low=0, high=1), ints(20), Input(values=[0.6], dtype=np.float32),
                                        Input(values=[0.5], dtype=np.float32)]),
]
