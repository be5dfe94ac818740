"""If, Loop and Scan with small bodies, which also read values from outside."""
import numpy as np
from case import NoCase
from draw import element_type
from onnx import helper, numpy_helper

FLOAT, INT64, BOOL = element_type("float"), element_type("int64"), element_type("bool")


def info(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, value):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)))


def step(d, result, left, right):
    """A node that makes a value of two of the same shape."""
    kind = d.choice(["Add", "Sub", "Mul", "Tanh", "Neg", "Identity"])
    return helper.make_node(kind, [left, right] if kind in ("Add", "Sub", "Mul") else [left], [result])


def begin(case):
    """An opset in which numpy's broadcasting holds, and a value outside of the bodies."""
    last = case.opset
    case.opset = max(case.opset, 8)
    if case.opset != last and case.version > 8:
        raise NoCase("no such opset")
    shape = case.draw.shape(high=3)
    case.outer["outside"] = case.draw.tensor("float", shape)
    return shape


def if_(case):
    d, shape = case.draw, begin(case)
    case.outer["other"] = d.tensor("float", shape)
    case.set("cond", np.array(d.chance()).reshape(() if d.chance(0.7) else (1,)))
    case.outputs = d.integer(1, 2)
    for branch in ("then_branch", "else_branch"):
        how = d.integer(0, 3)
        if how == 0 and case.opset >= 11:  # another shape than the other branch's
            nodes = [helper.make_node("Concat", ["outside", "other"], ["a"], axis=0) if shape else constant("a", np.float32([1, 2]))]
        elif how == 1 and case.opset >= 13 and case.outputs == 1:
            nodes = [constant("yes", np.array(d.chance())),
                     helper.make_node("If", ["yes"], ["a"], then_branch=inner(d, "outside"), else_branch=inner(d, "other"))]
        else:
            nodes = [step(d, "h", "outside", "other"), step(d, "a", "h", "other")]
        if case.outputs == 2:
            nodes.append(helper.make_node("Shape", ["outside"], ["b"]))
        case.set(branch, helper.make_graph(nodes, branch, [], [info("a"), info("b", INT64)][:case.outputs]))


def inner(d, name):
    return helper.make_graph([step(d, "r", name, "outside")], "inner", [], [info("r")])


def loop(case):
    d, shape = case.draw, begin(case)
    carried, scanned = d.integer(0 if case.version >= 11 else 1, 2), d.integer(0, 2)
    limit = d.integer(0, 4)
    if d.chance(0.8):
        case.set("M", np.array(d.integer(0, 4), dtype=np.int64).reshape(() if d.chance(0.7) else (1,)))
    if 0 not in case.inputs or not carried or d.chance(0.7):  # without both, the loop never ends
        case.set("cond", np.array(d.chance(0.8)).reshape(() if d.chance(0.7) else (1,)))
    inputs, outputs = [info("i", INT64, []), info("go", BOOL, case.inputs[1].shape if 1 in case.inputs else [])], [info("on", BOOL)]
    nodes = [helper.make_node("Cast", ["i"], ["at"], to=FLOAT), constant("limit", np.float32(limit)),
             helper.make_node("Less", ["at", "limit"], ["on"])]
    state = "outside"
    for k in range(carried):
        case.set("v_initial", d.tensor("float", shape), position=2 + k)
        case.kinds[2 + k] = helper.make_tensor_type_proto(FLOAT, None)
        inputs.append(info(f"s{k}"))
        nodes.append(step(d, f"t{k}", f"s{k}", state))
        outputs.append(info(f"t{k}"))
        state = f"s{k}"
    for k in range(scanned):
        if d.chance(0.3):
            nodes.append(helper.make_node("Identity", ["i"], [f"u{k}"]))
            outputs.append(info(f"u{k}", INT64))
        else:
            nodes.append(step(d, f"u{k}", state, "outside"))
            outputs.append(info(f"u{k}"))
    total = carried + scanned
    if case.opset >= 13 and d.chance(0.3):  # a sequence that grows, last of the carried values
        kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
        case.set("v_initial", [], position=2 + carried)
        case.kinds[2 + carried] = kind
        inputs.append(helper.make_value_info("list", kind))
        nodes.append(helper.make_node("SequenceInsert", ["list", state], ["longer"]))
        outputs.insert(1 + carried, helper.make_value_info("longer", kind))
        total += 1
    if total == 0:
        raise NoCase("a loop without outputs")
    case.outputs = total
    case.set("body", helper.make_graph(nodes, "body", inputs, outputs))


def scan(case):
    d = case.draw
    if case.version == 8:
        return scan_batches(case)
    begin(case)
    states, scanned, results = d.integer(0, 2), d.integer(1, 2), d.integer(0, 2)
    if states + results == 0:
        raise NoCase("a scan without outputs")
    shape, steps = d.shape(high=2, empty=False), d.dim()
    axes, directions = [], []
    for k in range(states):
        set_state(case, k, d.tensor("float", shape))
    for k in range(scanned):
        axis = d.integer(0, len(shape))
        set_state(case, states + k, d.tensor("float", (*shape[:axis], steps, *shape[axis:])))
        axes.append(axis - len(shape) - 1 if case.version >= 11 and d.chance(0.3) else axis)
        directions.append(d.integer(0, 1))
    case.set("num_scan_inputs", scanned)
    case.maybe("scan_input_axes", axes, 1.0 if any(axes) else 0.3)
    case.maybe("scan_input_directions", directions)
    if results:
        case.maybe("scan_output_axes", [d.integer(-len(shape) - 1 if case.version >= 11 else 0, len(shape)) for _ in range(results)])
        case.maybe("scan_output_directions", [d.integer(0, 1) for _ in range(results)])
    scan_body(case, shape, states, scanned, results)


def scan_batches(case):
    """Version 8: a batch in front, and how many steps each has."""
    d = case.draw
    shape, steps, batch = d.shape(high=2, empty=False), d.dim(), d.integer(1, 3)
    states, scanned = d.integer(0, 2), d.integer(1, 2)
    if d.chance(0.4):
        case.set("sequence_lens", d.ints([d.integer(1, steps) for _ in range(batch)]))
    for k in range(states):
        set_state(case, k, d.tensor("float", (batch, *shape)), first=1)
    for k in range(scanned):
        set_state(case, states + k, d.tensor("float", (batch, steps, *shape)), first=1)
    case.set("num_scan_inputs", scanned)
    case.maybe("directions", [d.integer(0, 1) for _ in range(scanned)])
    scan_body(case, shape, states, scanned, d.integer(0 if states else 1, 2))


def set_state(case, k, value, first=0):
    name = next(p.name for p in case.schema.inputs if p.name.startswith("initial_state"))
    case.set(name, value, position=first + k)
    case.kinds[first + k] = helper.make_tensor_type_proto(FLOAT, None)


def scan_body(case, shape, states, scanned, results):
    d = case.draw
    names = [f"x{k}" for k in range(states + scanned)]
    made = [f"y{k}" for k in range(states + results)]
    nodes = [step(d, name, names[k % len(names)], d.choice(names)) for k, name in enumerate(made)]
    case.outputs = states + results
    typed = [[info(name, FLOAT, shape) for name in part] for part in (names, made)]
    case.set("body", helper.make_graph(nodes, "body", *typed))


RECIPES = {"If": if_, "Loop": loop, "Scan": scan}
