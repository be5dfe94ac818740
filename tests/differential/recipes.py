"""Every operator that has a recipe, its versions, and the cases that are drawn of them."""
import collections

import attention
import classical
import control_flow
import elementwise
import images
import networks
import onnx
import others
import quantized
import sequences
import shapes
import signals
import text
import trees
from case import Case, NoCase
from draw import Draw

RECIPES = {name: recipe for family in (elementwise, shapes, networks, images, quantized, attention, signals, text, sequences, control_flow,
                                       others, classical, trees) for name, recipe in family.RECIPES.items()}
NEWEST = {"": 26, "ai.onnx.ml": 5}  # of what onnxruntime takes


def versions(names):
    """[(schema, last opset in which it holds)] of the operators that have recipes."""
    history = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.name in RECIPES and (not names or schema.name in names) and schema.domain in NEWEST:
            history[schema.domain, schema.name].append(schema)
    result = []
    for (domain, _), list_ in sorted(history.items()):
        list_.sort(key=lambda s: s.since_version)
        ends = [s.since_version - 1 for s in list_[1:]] + [NEWEST[domain]]
        result += [(s, min(end, NEWEST[domain])) for s, end in zip(list_, ends)
                   if not s.deprecated and s.since_version <= min(end, NEWEST[domain])]
    return result


def make(schema, last, seed, size=5, accepted=None):
    """A case with its model and inputs, or None. `accepted` has element types to prefer, by type parameter."""
    draw = Draw(seed, size)
    case = Case(schema, draw.integer(schema.since_version, last), draw, accepted)
    try:
        RECIPES[schema.name](case)
        if "consumed_inputs" in schema.attributes:
            case.maybe("consumed_inputs", [0] * len(case.inputs))
        return case, *case.model()
    except NoCase:
        return None
