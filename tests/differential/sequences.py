"""Sequences and optionals."""
import numpy as np
from draw import element_type
from onnx import helper


def item_type(case, name):
    """The element type of a sequence input, drawn from what the schema allows."""
    parameter = next(p for p in case.schema.inputs if p.name == name)
    if parameter.type_str not in case.types:
        options = {t[11:-2] for t in parameter.types if t.startswith("seq(tensor(")}
        case.types[parameter.type_str] = case.draw.choice([t for t in sorted(options) if not t.startswith(("complex", "bfloat16"))])
    return case.types[parameter.type_str]


def tensor_kind(kind):
    return helper.make_tensor_type_proto(element_type(kind), None)


def sequence_kind(kind):
    return helper.make_sequence_type_proto(tensor_kind(kind))


def sequence(case, name="input_sequence", low=0, alike=False):
    """Draws a sequence of tensors, whose shapes may differ, and sets it."""
    d, kind = case.draw, item_type(case, name)
    shape = d.shape(high=3)
    alike = alike or d.chance(0.4)
    items = [d.tensor(kind, shape if alike else d.shape(high=3)) for _ in range(d.integer(low, 4))]
    position = next(i for i, p in enumerate(case.schema.inputs) if p.name == name)
    case.kinds[position] = sequence_kind(kind)
    return case.set(name, items)


def position(case, low, high):
    d = case.draw
    case.set("position", np.array(d.integer(low, high), dtype=d.choice([np.int32, np.int64])))


def split_to_sequence(case):
    d = case.draw
    x = case.tensor("input", d.shape(low=1, empty=False))
    axis = d.axis(x.ndim)
    case.maybe("axis", axis, 1.0 if axis else 0.5)
    how, size = d.integer(0, 2), x.shape[axis]
    if how == 0:
        case.set("split", np.array(d.integer(1, 3), dtype=np.int64))
    elif how == 1:
        cuts = sorted(d.integer(0, size) for _ in range(d.integer(0, 2)))
        case.set("split", d.ints(np.diff([0, *cuts, size]), d.choice(["int32", "int64"])))
    case.maybe("keepdims", d.integer(0, 1), 0.6 if how == 2 else 0.2)


def sequence_construct(case):
    d, same = case.draw, case.draw.chance()
    shape, kind = d.shape(high=3), case.type("inputs")
    for i in range(d.integer(1, 4)):
        case.set("inputs", d.tensor(kind, shape if same else d.shape(high=3)), position=i)


def sequence_empty(case):
    case.maybe("dtype", element_type(case.draw.choice(["float", "double", "float16", "int32", "int64", "bool", "string", "uint8"])), 0.8)


def sequence_at(case):
    items = sequence(case, low=1)
    position(case, -len(items), len(items) - 1)


def sequence_erase(case):
    items = sequence(case, low=1)
    if case.draw.chance(0.7):
        position(case, -len(items), len(items) - 1)


def sequence_insert(case):
    d, items = case.draw, sequence(case)
    case.set("tensor", d.tensor(item_type(case, "input_sequence"), d.shape(high=3)))
    if d.chance(0.7):
        position(case, -len(items), len(items))


def sequence_length(case):
    sequence(case)


def concat_from_sequence(case):
    d, kind = case.draw, item_type(case, "input_sequence")
    new, shape = d.integer(0, 1), list(d.shape(high=3, empty=False))
    if not shape:
        new = 1
    axis = d.axis(len(shape) + new)
    items = []
    for _ in range(d.integer(1, 4)):
        if not new:
            shape[axis] = d.dim(low=0)
        items.append(d.tensor(kind, shape))
    case.kinds[0] = sequence_kind(kind)
    case.set("input_sequence", items)
    case.set("axis", axis)
    case.maybe("new_axis", new, 1.0 if new else 0.4)


def sequence_map(case):
    d, shape = case.draw, case.draw.shape(high=2, empty=False)
    count, extra = d.integer(0, 3), d.choice(["none", "tensor", "sequence"])
    draw = lambda: d.tensor("float", shape)  # noqa: E731
    info = lambda name: helper.make_tensor_value_info(name, element_type("float"), None)  # noqa: E731
    case.set("input_sequence", [draw() for _ in range(count)])
    case.kinds[0] = sequence_kind("float")
    if extra != "none":
        case.set("additional_inputs", draw() if extra == "tensor" else [draw() for _ in range(count)])
        case.kinds[1] = tensor_kind("float") if extra == "tensor" else sequence_kind("float")
    inputs = ["x"] + ["other"] * (extra != "none")
    nodes = [helper.make_node("Mul", [inputs[0], inputs[-1]], ["y"]), helper.make_node("Shape", ["x"], ["size"])]
    outputs = [info("y"), helper.make_tensor_value_info("size", element_type("int64"), None)]
    case.outputs = d.integer(1, 2)
    case.set("body", helper.make_graph(nodes, "body", [info(name) for name in inputs], outputs[:case.outputs]))


def content(case):
    """(a value that an optional may hold, its type)."""
    d, kind = case.draw, case.draw.choice(["float", "int64", "bool", "string", "double"])
    if d.chance(0.6):
        return d.tensor(kind, d.shape(high=3)), tensor_kind(kind)
    return [d.tensor(kind, d.shape(high=2)) for _ in range(d.integer(0, 3))], sequence_kind(kind)


def optional(case):
    value, kind = content(case)
    case.optional = True
    if case.draw.chance(0.7):
        case.set("input", value)
        case.kinds[0] = kind
    else:
        case.set("type", kind)


def optional_has_element(case):
    d, (value, kind) = case.draw, content(case)
    if case.version >= 18 and d.chance(0.2):
        return
    bare = case.version >= 18 and d.chance(0.4)
    case.set("input", None if not bare and d.chance(0.4) else value)
    case.kinds[0] = kind if bare else helper.make_optional_type_proto(kind)


def optional_get_element(case):
    value, kind = content(case)
    case.set("input", value)
    case.kinds[0] = kind if case.version >= 18 and case.draw.chance(0.4) else helper.make_optional_type_proto(kind)


RECIPES = {
    "SplitToSequence": split_to_sequence, "SequenceConstruct": sequence_construct, "SequenceEmpty": sequence_empty, "SequenceAt": sequence_at,
    "SequenceErase": sequence_erase, "SequenceInsert": sequence_insert, "SequenceLength": sequence_length, "SequenceMap": sequence_map,
    "ConcatFromSequence": concat_from_sequence, "Optional": optional, "OptionalHasElement": optional_has_element,
    "OptionalGetElement": optional_get_element,
}
