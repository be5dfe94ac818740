"""One random node: what a recipe fills in, and the one-node model that comes of it."""
import numpy as np
import onnx
from draw import DTYPES, element_type, is_packed, type_name
from onnx import helper, numpy_helper

AttrType = onnx.defs.OpSchema.AttrType


class NoCase(Exception):
    """The schema has no case of the kind that was drawn."""


class Case:
    """A node of one operator version. Recipes use `set`, which knows whether this version has an input or an attribute of that
    name, so that most serve every version."""

    def __init__(self, schema, opset, draw, accepted=None):
        self.schema, self.opset, self.draw = schema, opset, draw
        self.accepted = accepted or {}  # by type parameter: what the other runtime has
        self.types = {}
        self.attributes = {}
        self.inputs = {}      # by position: arrays, lists of them, dictionaries, None for an empty optional; one left out is absent
        self.kinds = {}       # by position: the TypeProto of an input whose value does not show it
        self.outer = {}       # graph inputs that only subgraphs read, by name
        self.constants = set()  # positions that should be initializers
        self.outputs = None   # how many; the schema's required ones if None
        self.optional = False  # whether outputs are optionals
        self.wide = False     # compared with wider tolerance, since errors add up
        self.absolute = 0.0   # an absolute tolerance that is at least allowed

    @property
    def version(self):
        return self.schema.since_version

    def has(self, name):
        return name in self.schema.attributes or any(p.name == name for p in self.schema.inputs)

    def allowed_types(self, name):
        """The tensor types of an input, by ONNX's names."""
        parameter = next(p for p in self.schema.inputs if p.name == name)
        return [t[7:-1] for t in sorted(parameter.types) if t.startswith("tensor(") and t[7:-1] in DTYPES]

    def type(self, name, only=None):
        """The element type that an input has in this case; drawn when it is asked for the first time."""
        parameter = next((p for p in self.schema.inputs if p.name == name), None)
        if parameter is None:
            raise NoCase(f"{self.schema.name} has no input {name}")
        if parameter.type_str not in self.types:
            options = [t for t in self.allowed_types(name) if only is None or t in only]
            if not options:
                raise NoCase(f"{name} has no type that is asked for")
            # Types that both runtimes have are drawn more often, and those that models have most.
            shared = [t for t in options if f"tensor({t})" in self.accepted.get(parameter.type_str, ())]
            options = shared if shared and self.draw.chance(0.85) else options
            common = [t for t in options if t in ("float", "int64", "float16", "double")]
            self.types[parameter.type_str] = self.draw.choice(common if common and self.draw.chance(0.5) else options)
        return self.types[parameter.type_str]

    def tensor(self, name, shape, low=None, high=None, only=None):
        """Draws an input and sets it."""
        value = self.draw.tensor(self.type(name, only), shape, low, high)
        return self.set(name, value)

    def set(self, name, value, position=None, constant=False):
        if name in self.schema.attributes:
            self.attributes[name] = value.tolist() if isinstance(value, np.ndarray) else value
        else:
            for i, parameter in enumerate(self.schema.inputs):
                if parameter.name == name:
                    at = i if position is None else position
                    whole = value is None or isinstance(value, (np.ndarray, list, dict))
                    self.inputs[at] = value if whole else np.array(value, dtype=np.int64)
                    if constant:
                        self.constants.add(at)
        return value

    def maybe(self, name, value, probability=0.6):
        """An attribute or optional input, now and then left out."""
        if self.draw.chance(probability):
            self.set(name, value)

    def model(self):
        """(model, the values of its inputs, in order)."""
        count = max(self.inputs, default=-1) + 1
        names, values, initializers, infos = [], [], [], []
        for i in range(count):
            if i not in self.inputs:
                names.append("")
                continue
            value, name = self.inputs[i], f"in{i}"
            names.append(name)
            if isinstance(value, np.ndarray) and value.dtype != object and (
                    i in self.constants or is_packed(value.dtype) or (i > 0 and i not in self.kinds and self.draw.chance(0.35))):
                initializers.append(numpy_helper.from_array(value, name))
                continue
            infos.append(helper.make_value_info(name, self.kinds[i]) if i in self.kinds else self.info(name, value))
            values.append(value)
        for name, value in self.outer.items():
            infos.append(self.info(name, value))
            values.append(value)
        required = sum(1 for p in self.schema.outputs if p.option == onnx.defs.OpSchema.FormalParameterOption.Single)
        outputs = [f"out{i}" for i in range(self.outputs or max(1, required))]
        domain = self.schema.domain
        node = helper.make_node(self.schema.name, names, outputs, "tested", domain=domain)
        for key, value in self.attributes.items():
            kind = self.schema.attributes[key].type
            value = float(value) if kind == AttrType.FLOAT else value
            node.attribute.append(helper.make_attribute(key, value, attr_type=kind.value))
        graph = helper.make_graph([node], "case", infos, [helper.make_empty_tensor_value_info(o) for o in outputs], initializers)
        imports = [helper.make_opsetid(domain, self.opset)]
        if domain:
            imports.append(helper.make_opsetid("", 18))
        return helper.make_model(graph, opset_imports=imports, ir_version=10), values

    def info(self, name, value):
        if isinstance(value, dict):
            key, content = (np.asarray(part, dtype=object if isinstance(part[0], str) else None)
                            for part in (list(value), list(value.values())))
            content = helper.make_tensor_type_proto(element_type(type_name(content.dtype)), None)
            return helper.make_value_info(name, helper.make_map_type_proto(element_type(type_name(key.dtype)), content))
        if isinstance(value, list):
            item = helper.make_tensor_type_proto(element_type(type_name(value[0].dtype)), None)
            return helper.make_value_info(name, helper.make_sequence_type_proto(item))
        # Declared in full, with symbols, or not at all.
        how = self.draw.integer(0, 2)
        shape = list(value.shape) if how == 0 else [f"{name}_{i}" for i in range(value.ndim)] if how == 1 else None
        return helper.make_tensor_value_info(name, element_type(type_name(value.dtype)), shape)
