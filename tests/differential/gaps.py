"""What the recipes leave out: operator versions that onnxruntime runs and that have no recipe, and attributes, optional inputs and outputs
that a recipe never draws. Each of them has its reason in a table here."""
import collections

import kernels
import onnx
from recipes import NEWEST, RECIPES, make, versions

DRAWS = 300

# Operators without a recipe, and why.
NO_RECIPE = {
    **dict.fromkeys(["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"],
                    "the results are a matter of chance"),
}

# (operator, what is never drawn), and why.
NOT_DRAWN = {
    **{("BatchNormalization", name): "Tenon declines saved_mean and saved_var, which version 14 dropped; training is compared from there on"
       for name in ("mean", "var", "saved_mean", "saved_var")},
    ("Split", "split"): "version 1 has an attribute of the same name",
}


def without_recipe():
    """Operator versions that onnxruntime runs, that have no recipe, and no reason for that."""
    history = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in NEWEST and not schema.deprecated and schema.since_version <= NEWEST[schema.domain]:
            history[schema.domain, schema.name].append(schema)
    result = []
    for (_, name), list_ in sorted(history.items()):
        if name in RECIPES or name in NO_RECIPE:
            continue
        result += [f"{name}-{schema.since_version}" for schema in list_ if kernels.accepts(schema)]
    return result


def parts(schema):
    """Names of what a case of an operator version may have."""
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    optional = [p.name for p in [*schema.inputs, *schema.outputs] if p.option != single]
    return {*schema.attributes, *optional}


def drawn(case):
    names = [p.name for i, p in enumerate(case.schema.inputs) if i in case.inputs]
    return {*case.attributes, *names, *[p.name for p in case.schema.outputs[:case.outputs or 1]]}


def never_drawn():
    """[operator version: name] of attributes, optional inputs and outputs that do not occur in so many draws and have no reason."""
    result = []
    for schema, last in versions(None):
        missing = {name for name in parts(schema) if (schema.name, name) not in NOT_DRAWN}
        for seed in range(DRAWS):
            if not missing:
                break
            made = make(schema, last, seed)
            missing -= drawn(made[0]) if made else set()
        result += [f"{schema.name}-{schema.since_version}: {name}" for name in sorted(missing)]
    return result


def needless():
    """Lines of the tables that are needed no more."""
    known = {(s.name, name) for s, _ in versions(None) for name in parts(s)}
    return [name for name in NO_RECIPE if name in RECIPES] + [f"{op}: {name}" for op, name in NOT_DRAWN if (op, name) not in known]
