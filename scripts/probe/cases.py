"""One-node models of every operator version and type, with inputs to run them on: what the probes of other runtimes feed them."""
import base64
import collections
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "differential"))
from case import Case, NoCase  # noqa: E402
from draw import DTYPES, Draw, element_type, type_name  # noqa: E402
from recipes import RECIPES  # noqa: E402

warnings.filterwarnings("ignore", "invalid value encountered in cast", RuntimeWarning)
IR_VERSION = 8  # every release that is probed takes it, and none looks at it for types
CASES_PER_PAIR = 6
DRAWS = 24
NO_PARAMETER = ("", "-")  # the only pair of an operator version whose types are all fixed
# What other type parameters are in a third of the draws.
COMMON = ("float", "int64", "bool", "uint8", "int32")
# What numpy alone can hold, so that a worker needs nothing else.
PLAIN = {"float", "double", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "string"}


def random_like(case):
    """Operators that only these probes need, since their results are a matter of chance."""
    for name in ("input", "shape"):
        if case.has(name) and name not in case.schema.attributes:
            case.tensor(name, (2, 3), 0.1, 0.9)
    if case.schema.name.startswith("Random") and not case.schema.name.endswith("Like"):
        case.set("shape", [2, 3])
    if "dtype" in case.schema.attributes:
        case.set("dtype", element_type(case.types.get(case.schema.outputs[0].type_str, "float")))


ALL_RECIPES = RECIPES | dict.fromkeys(
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"], random_like)


def short(type_text):
    """'seq(tensor(float))' as 'seq(float)'."""
    while (at := type_text.find("tensor(")) >= 0:
        end = type_text.index(")", at)
        type_text = type_text[:at] + type_text[at + 7:end] + type_text[end + 1:]
    return type_text.replace(" ", "")


def type_text(type_proto):
    """As `short` writes it; None for a type that is not known."""
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type":
        number = type_proto.tensor_type.elem_type
        return onnx.TensorProto.DataType.Name(number).lower() if number else None
    if kind == "map_type":
        value = type_text(type_proto.map_type.value_type)
        return f"map({onnx.TensorProto.DataType.Name(type_proto.map_type.key_type).lower()},{value})"
    if kind in ("sequence_type", "optional_type"):
        inner = type_text(getattr(type_proto, kind).elem_type)
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})" if inner else None
    return None


def operator_versions(domains):
    """Schemas of all versions, by domain, name and version; deprecated ones are left out."""
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain in domains and not s.deprecated]
    return sorted(schemas, key=lambda s: (s.domain, s.name, s.since_version))


def pairs(schema):
    """Every (type parameter, type) of a schema."""
    used = {p.type_str for p in [*schema.inputs, *schema.outputs]}
    found = {(c.type_param_str, short(t)) for c in schema.type_constraints if c.type_param_str in used for t in c.allowed_type_strs}
    return found or {NO_PARAMETER}


def pairs_of(schema, model):
    """The (type parameter, type) of a model's node."""
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {v.name: type_text(v.type) for v in [*inferred.graph.input, *inferred.graph.output, *inferred.graph.value_info]}
    types |= {t.name: onnx.TensorProto.DataType.Name(t.data_type).lower() for t in inferred.graph.initializer}
    constraints = {c.type_param_str for c in schema.type_constraints}
    found = set()
    for names, parameters in ((model.graph.node[0].input, schema.inputs), (model.graph.node[0].output, schema.outputs)):
        for i, name in enumerate(names):
            parameter = parameters[min(i, len(parameters) - 1)]
            if name and parameter.type_str in constraints and types.get(name):
                found.add((parameter.type_str, types[name]))
    return found or {NO_PARAMETER}


def enter_as_constants(model, values):
    """Inputs that numpy alone cannot hold become initializers; returns the other values."""
    kept = []
    for info, value in zip(list(model.graph.input), values):
        if isinstance(value, np.ndarray) and type_name(value.dtype) not in PLAIN:
            model.graph.initializer.append(numpy_helper.from_array(value, info.name))
            model.graph.input.remove(info)
        else:
            kept.append(value)
    return kept


def stamped(model, schema):
    """With the oldest opset that has the operator's version."""
    for entry in model.opset_import:
        entry.version = schema.since_version if entry.domain == schema.domain else entry.version
    model.ir_version = IR_VERSION
    return model


def draw_case(schema, seed, forced):
    """(model, values) in which type parameters are as forced, or None."""
    case = Case(schema, schema.since_version, Draw(seed, 4))
    case.types = dict(forced)
    try:
        ALL_RECIPES[schema.name](case)
        model, values = case.model()
    except (NoCase, StopIteration, KeyError, ValueError, TypeError, IndexError, OverflowError):
        return None  # the recipe has no case of this type
    stamped(model, schema)
    return model, enter_as_constants(model, values)


def has_subgraph(model):
    return any(attribute.type == onnx.AttributeProto.GRAPH for attribute in model.graph.node[0].attribute)


def is_valid(model):
    """As far as can be said: the checker does not see what subgraphs take from around them, and old versions infer nothing."""
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {entry.domain: entry.version for entry in model.opset_import}
    try:
        if not has_subgraph(model):
            onnx.checker.check_node(model.graph.node[0], context)
            onnx.shape_inference.infer_shapes(model, strict_mode=True)
        return all(type_text(info.type) for info in model.graph.input)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError):
        return False


def retyped(schema, made, parameter, type_):
    """The case with another type for a type parameter that its recipe does not draw."""
    model, values = onnx.ModelProto.FromString(made[0].SerializeToString()), list(made[1])
    node, number = model.graph.node[0], element_type(type_)
    names = {name for i, name in enumerate(node.input)
             if name and schema.inputs[min(i, len(schema.inputs) - 1)].type_str == parameter}
    for i, info in enumerate(model.graph.input):
        if info.name in names and isinstance(values[i], np.ndarray) and values[i].dtype != object:
            values[i] = values[i].astype(DTYPES[type_])
            info.type.tensor_type.elem_type = number
    for tensor in model.graph.initializer:
        if tensor.name in names and tensor.data_type != onnx.TensorProto.STRING:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(DTYPES[type_]), tensor.name))
    for attribute in node.attribute:
        if not names and attribute.name in ("dtype", "to", "output_datatype", "output_dtype"):
            attribute.i = number
        if not names and attribute.name == "value" and attribute.type == onnx.AttributeProto.TENSOR:
            attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(DTYPES[type_])))
    return model, enter_as_constants(model, values)


def common_types(schema):
    """{type parameter: a type of it that runtimes have}."""
    allowed = {c.type_param_str: {short(t) for t in c.allowed_type_strs} for c in schema.type_constraints}
    return {name: common for name, types in allowed.items() if (common := next((t for t in COMMON if t in types), None))}


def type_choices(schema, parameter, type_, kernels):
    """What to force: the type with common ones beside it, in every parameter that allows it, alone, and as kernels have it."""
    alone = {parameter: type_} if type_ in DTYPES else {}
    same = {p: t for p, t in pairs(schema) if t == type_ and alone}
    as_kernels = [{p: min(types) for p, types in kernel.items()} | alone for kernel in kernels if alone and type_ in kernel.get(parameter, ())]
    return [common_types(schema) | alone, common_types(schema) | same, alone, *as_kernels[:3]]


def draws(schema, parameter=None, type_=None, kernels=()):
    choices = type_choices(schema, parameter, type_, kernels)
    for seed in range(DRAWS):
        if (case := draw_case(schema, seed, choices[seed % len(choices)])) is not None:
            yield case


def drawn(schema, parameter, type_, kernels):
    """Cases in which a type parameter may have a type: those of the recipe, then others made from them."""
    yield from draws(schema, parameter, type_, kernels)
    if type_ in DTYPES and type_ != "string":
        for case in draws(schema):
            try:
                if not has_subgraph(case[0]):
                    yield retyped(schema, case, parameter, type_)
            except (ValueError, TypeError):
                pass


def is_consistent(found):
    """No parameter has two types, and sequences (S) hold what goes into them (T)."""
    types = dict(found)
    items = types.get("S", "")[4:-1] if types.get("S", "").startswith("seq(") else None
    return len(types) == len(found) and (items is None or types.get("T", items) == items)


def cases_of(schema, kernels):
    """[(model, values, pairs)] until each pair of the schema has its share, as far as the recipes go. `kernels` has the types
    that kernels of the operator take together: [{parameter: types}]."""
    if schema.name not in ALL_RECIPES:
        return []
    allowed = pairs(schema)
    wanted, result = collections.Counter(dict.fromkeys(allowed, CASES_PER_PAIR)), []
    for parameter, type_ in sorted(wanted):
        for model, values in drawn(schema, parameter, type_, kernels):
            if result and wanted[parameter, type_] <= 0:
                break
            if not is_valid(model):
                continue
            found = pairs_of(schema, model)
            if not found <= allowed or (not has_subgraph(model) and not is_consistent(found)):
                continue
            if any(wanted[pair] > 0 for pair in found) or not result:
                wanted.subtract(found)
                result.append((model, values, found))
    return result


def encode(value):
    """A value as JSON that needs only numpy to read."""
    if isinstance(value, dict):
        return {"map": [[encode(np.asarray(k)), encode(np.asarray(v))] for k, v in value.items()]}
    if isinstance(value, list):
        return {"list": [encode(item) for item in value]}
    if value is None:
        return None
    if value.dtype == object or value.dtype.kind == "U":
        return {"strings": [str(s) for s in value.ravel()], "shape": value.shape}
    return {"dtype": str(value.dtype), "shape": value.shape, "data": base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()}


def places(schema, parameter):
    """Where a type parameter is used: 'T:0,1>0' for inputs 0 and 1 and output 0, with a + after one that repeats."""
    def list_(parameters):
        variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
        return ",".join(f"{i}{'+' if p.option == variadic else ''}" for i, p in enumerate(parameters) if p.type_str == parameter)
    return f"{parameter}:{list_(schema.inputs)}>{list_(schema.outputs)}"


def limit_model(domain, opset, ir_version):
    """A model that any runtime runs that takes the opset and the IR version."""
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", [info],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])])
    imports = [helper.make_opsetid("", opset if domain == "ai.onnx" else 13)]
    if domain == "ai.onnx.ml":
        imports.append(helper.make_opsetid(domain, opset))
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)


def limits():
    """(what, its number, model): which opsets and IR versions a runtime takes."""
    x = [np.zeros(1, np.float32)]
    for domain, numbers in (("ai.onnx", range(7, 31)), ("ai.onnx.ml", range(1, 8))):
        yield from ((domain, n, limit_model(domain, n, IR_VERSION), x) for n in numbers)
    yield from (("ir", n, limit_model("", 13, n), x) for n in range(3, 17))


def write_cases(path, kernels, domains=("", "ai.onnx.ml")):
    """One line a case: operator (or limit), version, pairs, model and inputs. `kernels`: as in cases_of, by domain and operator."""
    def line(model, values, **what):
        inputs = {info.name: encode(value) for info, value in zip(model.graph.input, values)}
        return json.dumps(what | {"model": base64.b64encode(model.SerializeToString()).decode(), "inputs": inputs}) + "\n"

    with open(path, "w") as file:
        for what, number, model, values in limits():
            file.write(line(model, values, limit=what, version=number))
        for schema in operator_versions(domains):
            for model, values, found in cases_of(schema, kernels.get((schema.domain, schema.name), ())):
                file.write(line(model, values, domain=schema.domain, operator=schema.name, version=schema.since_version, pairs=sorted(found)))
