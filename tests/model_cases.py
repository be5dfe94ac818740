"""Makes the models of tests/models, inputs for them, and what onnxruntime answers."""
import json
import subprocess
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from conftest import ROOT
from onnx import helper

SOURCES = ROOT / "tests" / "models"
MODELS = ROOT / "build" / "models"
DIMS = json.loads((SOURCES / "dims.json").read_text())

# "Equal" means: off by no more than this, times the largest value of the tensor.
TOLERANCE = 1e-4

# These choose among scores, and two that differ in the last bit may change places. So what comes before them is compared,
# and then they themselves on identical inputs. The same holds for the thresholds of a model that has one of them, but
# what comes before those is compared loosely: the sides of a box, say, are small differences of corners that random
# weights put far outside the picture.
SELECTING = {"TopK", "NonMaxSuppression"}
THRESHOLDS = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
THRESHOLD_TOLERANCE = 1e-2


@dataclass
class Part:
    """A model, or a part of one, to run and compare."""
    what: str
    model: onnx.ModelProto | Path
    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    loose: set[str] = field(default_factory=set)  # outputs with THRESHOLD_TOLERANCE

    def tolerance(self, output):
        return THRESHOLD_TOLERANCE if output in self.loose else TOLERANCE


def names():
    return sorted(path.name.removesuffix(".graph.onnx") for path in SOURCES.glob("*.graph.onnx"))


def make(name):
    """The path of the model, made if it is not there yet or is older than what it is made from."""
    path = MODELS / f"{name}.onnx"
    made_from = [SOURCES / f"{name}.graph.onnx", SOURCES / f"{name}.weights.json", SOURCES / "make_models.py"]
    if not path.exists() or path.stat().st_mtime < max(source.stat().st_mtime for source in made_from):
        unfinished = MODELS / "unfinished"
        subprocess.run([sys.executable, SOURCES / "make_models.py", unfinished, name], check=True, capture_output=True)
        for part in sorted(unfinished.glob(f"{name}.onnx*"), reverse=True):  # the model itself last
            part.rename(MODELS / part.name)
    return path


def inputs_for(name, graph):
    """{input: array} by the rules of tests/models/README.md."""
    sizes = {**DIMS["default"], **DIMS.get(name, {})}
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for info in graph.input:
        if info.name in weights:
            continue
        rng = np.random.default_rng(zlib.crc32(f"{name} {info.name}".encode()))
        tensor = info.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else sizes[d.dim_param] for d in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(dtype, np.floating):
            value = rng.random(shape) if len(shape) >= 3 and "past" not in info.name else rng.standard_normal(shape)
        elif "mask" in info.name:
            value = np.ones(shape)
        elif info.name == "token_type_ids":
            value = np.zeros(shape)
        elif info.name == "position_ids":
            past = sizes["past"] if any("past" in other.name for other in graph.input) else 0
            value = np.broadcast_to(past + np.arange(shape[-1]), shape)
        else:
            value = rng.integers(0, 50, shape)
        inputs[info.name] = np.ascontiguousarray(value.astype(dtype))
    return inputs


def run_onnxruntime(model, inputs):
    """{output: array}. `model` is a path or a ModelProto."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    return dict(zip(outputs, session.run(outputs, inputs), strict=True))


def is_selecting(node):
    subgraphs = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return node.op_type in SELECTING or any(is_selecting(inner) for graph in subgraphs for inner in graph.node)


def reads(node):
    """Names of the values that a node takes from its graph, those inside its subgraphs included."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            graph = attribute.g
            inside = {v.name for v in graph.input} | {t.name for t in graph.initializer}
            inside |= {name for inner in graph.node for name in inner.output}
            wanted = {v.name for v in graph.output} | {name for inner in graph.node for name in reads(inner)}
            names |= wanted - inside
    return names


def described(name, value):
    dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, dtype, [None] * value.ndim)


def split_at_selections(model, inputs):
    """The model in parts that can be compared number by number.

    One part is the model without its selecting nodes: what they gave is fed in, what they were given comes out. The
    other is those nodes alone. Both get onnxruntime's values, so that neither sees the other's rounding.
    """
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    selecting = [node for node in graph.node if is_selecting(node) or node.op_type in THRESHOLDS]
    given = sorted({name for node in selecting for name in reads(node)} - set(weights) - set(inputs))
    gave = [name for node in selecting for name in node.output if name]

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    outputs = [v.name for v in graph.output]
    whole.graph.output.extend(onnx.ValueInfoProto(name=n) for n in dict.fromkeys(given + gave) if n not in outputs)
    values = {**inputs, **run_onnxruntime(whole, inputs)}

    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    rest.graph.ClearField("node")
    rest.graph.node.extend(node for node in graph.node if node not in selecting)
    rest.graph.input.extend(described(name, values[name]) for name in gave)
    rest.graph.ClearField("output")
    wanted = [name for name in dict.fromkeys(outputs + given) if name not in gave]
    rest.graph.output.extend(described(name, values[name]) for name in wanted)

    # A node may take what another one gave, so here what they give has a name of its own.
    alone = onnx.ModelProto()
    alone.CopyFrom(model)
    alone.ClearField("graph")
    for node in selecting:
        copy = alone.graph.node.add()
        copy.CopyFrom(node)
        copy.output[:] = [f"{name}.selected" if name else "" for name in node.output]
    alone.graph.name = "selections"
    taken = sorted({name for node in selecting for name in reads(node)})
    alone.graph.initializer.extend(weights[name] for name in taken if name in weights)
    alone.graph.input.extend(described(name, values[name]) for name in taken if name not in weights)
    alone.graph.output.extend(described(f"{name}.selected", values[name]) for name in gave)

    strict = set(outputs).union(*(reads(node) for node in selecting if node.op_type not in THRESHOLDS))
    return [
        Part("all but its selections", rest, {**inputs, **{name: values[name] for name in gave}},
             {name: values[name] for name in wanted}, loose=set(wanted) - strict),
        Part("its selections", alone, {name: values[name] for name in taken if name not in weights},
             {f"{name}.selected": values[name] for name in gave}),
    ]


def parts(name, folder):
    """What to run and compare for a model; models that must be written for it go into `folder`."""
    path = make(name)
    graph_only = onnx.load(path, load_external_data=False)
    inputs = inputs_for(name, graph_only.graph)
    if not any(is_selecting(node) for node in graph_only.graph.node):
        return [Part("the whole model", path, inputs, run_onnxruntime(path, inputs))]
    split = split_at_selections(onnx.load(path), inputs)
    for part in split:
        part_path = folder / f"{part.what.replace(' ', '_')}.onnx"
        onnx.save(part.model, part_path)
        part.model = part_path
    return split
