"""Signals, random numbers, losses, sequences, optionals, loops and text."""
import numpy as np
from onnx import TensorProto, helper

from .case import IMAGE, Case, Input, f, given, i64, ints, scalar, text, truth


def accumulate():
    """A body for Scan: state + slice, given out as the state and as what is collected."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [256]) for name in ["state", "slice", "next", "collected"]]
    nodes = [helper.make_node("Add", ["state", "slice"], ["next"]), helper.make_node("Identity", ["next"], ["collected"])]
    return helper.make_graph(nodes, "body", info[:2], info[2:])


def windows(name):
    return [Case(name, "", [given(16384, np.int64)], opset=17), Case(name, "speech", [given(400, np.int64)], opset=17)]


def parts(count):
    return ", ".join(f"in{i}" for i in range(count))


LOOP = """
out0, out1 = Loop <body = body (int64 i, bool on, float[256] state) => (bool still, float[256] next, float[256] collected) {
  still = Identity (on)
  next = Add (state, in3)
  collected = Identity (next)
}> (in0, in1, in2)
"""
BRANCH = """
out0 = If <then_branch = then () => (float[1, 64, 56, 56] yes) { yes = Relu (in1) },
           else_branch = otherwise () => (float[1, 64, 56, 56] no) { no = Neg (in1) }> (in0)
"""
ROWS = [f(128, 768) for _ in range(8)]

CASES = windows("HannWindow") + windows("HammingWindow") + windows("BlackmanWindow") + [
    Case("DFT", "512", [f(64, 512, 1), None, scalar(1, np.int64)], opset=20), Case("DFT", "400, real to half", [f(64, 400, 1), None, scalar(1, np.int64)], {"onesided": 1}, opset=20),
    Case("DFT", "inverse, 1024", [f(64, 1024, 2), None, scalar(1, np.int64)], {"inverse": 1}, opset=20),
    Case("STFT", "speech", [f(1, 16000, 1), scalar(160, np.int64), f(400), scalar(400, np.int64)], opset=17),
    Case("STFT", "music", [f(1, 44100, 1), scalar(512, np.int64), f(2048), scalar(2048, np.int64)], opset=17),
    Case("MelWeightMatrix", "", [given(80, np.int64), given(4096, np.int64), given(16000, np.int64), given(0.0), given(8000.0)], opset=17),
    # random numbers
    Case("RandomNormal", "", [], {"shape": [512, 512]}), Case("RandomUniform", "", [], {"shape": [512, 512]}), Case("RandomNormalLike", "", [f(512, 512)]),
    Case("RandomUniformLike", "", [f(512, 512)]), Case("Bernoulli", "", [f(512, 512, low=0, high=1)]), Case("Multinomial", "", [f(16, 1000)], {"sample_size": 100}),
    Case("Multinomial", "one token", [f(1, 50257)], {"sample_size": 1}),
    # losses
    Case("SoftmaxCrossEntropyLoss", "", [f(128, 1000), i64(128, high=999)]), Case("NegativeLogLikelihoodLoss", "", [f(128, 1000, 16), i64(128, 16, high=999)]),
    # loops and branches
    Case("Scan", "", [f(256), f(500, 256)], {"body": accumulate(), "num_scan_inputs": 1}, 2),
    Case("Loop", "500 times", [given(500, np.int64), given(True, np.bool_), f(256), f(256)], outputs=2, nodes=LOOP),
    Case("If", "", [given(True, np.bool_), f(*IMAGE)], nodes=BRANCH),
    # sequences and optionals
    Case("SplitToSequence", "", [f(128, 768), ints(*[8] * 16)]),
    Case("SequenceConstruct", "", ROWS, nodes=f"s = SequenceConstruct ({parts(8)}) out0 = SequenceLength (s)"),
    Case("SequenceAt", "", [*ROWS, given(3, np.int64)], nodes=f"s = SequenceConstruct ({parts(8)}) out0 = SequenceAt (s, in8)"),
    Case("SequenceInsert", "", [*ROWS, f(128, 768)], nodes=f"s = SequenceConstruct ({parts(8)}) t = SequenceInsert (s, in8) out0 = SequenceLength (t)"),
    Case("SequenceErase", "", [*ROWS, given(3, np.int64)], nodes=f"s = SequenceConstruct ({parts(8)}) t = SequenceErase (s, in8) out0 = SequenceLength (t)"),
    Case("SequenceLength", "", [f(128, 768)], nodes="s = SplitToSequence <axis = 0> (in0) out0 = SequenceLength (s)"),
    Case("SequenceEmpty", "", [f(128, 768)], nodes="s = SequenceEmpty () t = SequenceInsert (s, in0) out0 = ConcatFromSequence <axis = 0> (t)"),
    Case("ConcatFromSequence", "", ROWS, nodes=f"s = SequenceConstruct ({parts(8)}) out0 = ConcatFromSequence <axis = 0> (s)"),
    Case("ConcatFromSequence", "last axis", ROWS, nodes=f"s = SequenceConstruct ({parts(8)}) out0 = ConcatFromSequence <axis = 1> (s)"),
    Case("ConcatFromSequence", "new axis", ROWS, nodes=f"s = SequenceConstruct ({parts(8)}) out0 = ConcatFromSequence <axis = 1, new_axis = 1> (s)"),
    Case("Optional", "", [f(*IMAGE)], nodes="o = Optional (in0) out0 = OptionalGetElement (o)"),
    Case("OptionalGetElement", "", [f(*IMAGE)], nodes="o = Optional (in0) p = OptionalGetElement (o) out0 = Neg (p)"),
    Case("OptionalHasElement", "", [f(*IMAGE)], nodes="o = Optional (in0) out0 = OptionalHasElement (o)"),
    # text
    Case("StringConcat", "", [text(5000), text(5000)], opset=20), Case("StringConcat", "one suffix", [text(5000), given(["</s>"], object)], opset=20),
    Case("StringSplit", "", [text(5000)], outputs=2, opset=20), Case("StringSplit", "at commas", [given(["a,b,,cde,f"] * 2000, object)], {"delimiter": ","}, outputs=2, opset=20),
    Case("RegexFullMatch", "", [text(5000)], {"pattern": r"w[a-z]+ \d*"}, opset=20), Case("RegexFullMatch", "mail addresses", [given([f"user.{i}@example{i % 7}.com" for i in range(2000)], object)], {"pattern": r"[\w.]+@[\w.]+\.(com|org)"}, opset=20),
    Case("StringNormalizer", "", [text(5000)], {"case_change_action": "UPPER", "locale": "C"}),
    Case("StringNormalizer", "stop words", [text(5000)], {"case_change_action": "LOWER", "is_case_sensitive": 0, "stopwords": [f"WORD {i}" for i in range(20)], "locale": "C"}),
    Case("Equal", "strings", [text(5000), given(["word 7"], object)]), Case("Where", "strings", [truth(5000), text(5000), text(5000)]),
    Case("TfIdfVectorizer", "", [i64(64, 200, high=50)], {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 20],
                                                         "ngram_indexes": list(range(40)), "pool_int64s": list(range(20)) + [i % 50 for i in range(40)]}),
    Case("TfIdfVectorizer", "words", [text(64, 50)], {"mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0],
                                                      "ngram_indexes": list(range(97)), "weights": [0.5] * 97, "pool_strings": [f"word {i}" for i in range(97)]}),
]
