"""Operators of neural networks: products, convolutions, pools, normalisations, recurrence."""
from draw import element_type


def matmul(case):
    d = case.draw
    m, k, n = d.dim(), d.dim(low=0 if d.chance(0.05) else 1), d.dim()
    batch = d.shape(high=2)
    a, b = (*d.broadcast(batch), m, k), (*batch, k, n)
    if d.chance(0.15):
        a = (k,)
    elif d.chance(0.15):
        b = (k,)
    names = [p.name for p in case.schema.inputs]
    case.wide = True
    case.tensor(names[0], a)
    case.tensor(names[1], b)
    if case.schema.name == "MatMulInteger":
        if d.chance(0.6):
            case.set("a_zero_point", d.tensor(case.type("A"), (m,) if len(a) == 2 and d.chance(0.2) else (), 0, 3))
        if d.chance(0.6):
            case.set("b_zero_point", d.tensor(case.type("B"), (n,) if len(b) == 2 and d.chance(0.3) else (), 0, 3))


def gemm(case):
    d = case.draw
    case.wide = True
    m, k, n = d.dim(), d.dim(), d.dim()
    ta, tb = d.integer(0, 1), d.integer(0, 1)
    case.tensor("A", (k, m) if ta else (m, k))
    case.tensor("B", (n, k) if tb else (k, n))
    if case.version < 11 or d.chance(0.7):
        broadcast = case.version < 7 and d.chance()
        shape = d.choice([(m, n), (1, n), (m, 1), (n,), (1,), ()]) if case.version >= 7 else (n,) if broadcast else (m, n)
        case.maybe("broadcast", int(broadcast), 1.0 if broadcast else 0.3)
        case.tensor("C", shape)
    case.maybe("transA", ta, 1.0 if ta else 0.3)
    case.maybe("transB", tb, 1.0 if tb else 0.3)
    integral = case.type("A").startswith(("int", "uint"))
    for name in ("alpha", "beta"):
        case.maybe(name, float(d.integer(1, 3)) if integral else float(d.rng.uniform(-2, 2)), 0.4)


def window(case, spatial, kernel, inputs):
    """Attributes of something that slides over an image, such that at least one position is left."""
    d = case.draw
    if case.has("dilations"):
        dilations = [d.integer(1, 2) if d.chance(0.3) else 1 for _ in range(spatial)]
        case.maybe("dilations", dilations, 1.0 if any(x > 1 for x in dilations) else 0.2)
    else:
        dilations = [1] * spatial
    strides = [d.integer(1, 3) if d.chance(0.5) else 1 for _ in range(spatial)]
    case.maybe("strides", strides, 1.0 if any(x > 1 for x in strides) else 0.3)
    reach = [(k - 1) * x + 1 for k, x in zip(kernel, dilations)]
    if d.chance(0.2) and dilations == [1] * spatial:
        case.set("auto_pad", d.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    elif d.chance(0.5):
        case.set("pads", [d.integer(0, k - 1) for k in kernel * 2])
    return [max(size, r) for size, r in zip(inputs, reach)]


def conv(case):
    d = case.draw
    case.wide = True
    spatial = d.choice([1, 2, 2, 3])
    kernel = [d.integer(1, 3) for _ in range(spatial)]
    groups = d.choice([1, 1, 2, 3])
    per_group, outputs = d.integer(1, 3), groups * d.integer(1, 3)
    x_name, w_name = case.schema.inputs[0].name, case.schema.inputs[1].name
    image = window(case, spatial, kernel, [d.integer(1, 7) for _ in range(spatial)])
    case.tensor(x_name, (d.integer(1, 2), groups * per_group, *image))
    case.tensor(w_name, (outputs, per_group, *kernel))
    case.maybe("group", groups, 1.0 if groups > 1 else 0.2)
    case.maybe("kernel_shape", kernel)
    case.constants |= {1} if d.chance() else set()
    if case.schema.name == "ConvInteger":
        if d.chance(0.5):
            case.set("x_zero_point", d.tensor(case.type(x_name), (), 0, 3))
        if d.chance(0.5):
            case.set("w_zero_point", d.tensor(case.type(w_name), (outputs,) if d.chance(0.3) else (), 0, 3))
    elif d.chance(0.5):
        case.tensor("B", (outputs,))


def conv_transpose(case):
    d = case.draw
    spatial = d.choice([1, 2, 2, 3])
    kernel = [d.integer(1, 3) for _ in range(spatial)]
    groups = d.choice([1, 1, 2])
    inputs, outputs = groups * d.integer(1, 3), d.integer(1, 3)
    image = [d.integer(1, 5) for _ in range(spatial)]
    case.tensor("X", (d.integer(1, 2), inputs, *image))
    case.tensor("W", (inputs, outputs, *kernel))
    strides, dilations = [d.integer(1, 3) for _ in range(spatial)], [1] * spatial
    case.maybe("strides", strides)
    if "strides" not in case.attributes:
        strides = [1] * spatial
    if any(s > 1 for s in strides) and d.chance(0.3):
        case.set("output_padding", [d.integer(0, s - 1) for s in strides])
    elif d.chance(0.3):
        dilations = [d.integer(1, 2) for _ in range(spatial)]
        case.set("dilations", dilations)
    how = d.integer(0, 4)
    if how < 2:
        case.set("pads", [d.integer(0, k - 1) // 2 for k in kernel * 2])
    elif how == 2:
        case.set("auto_pad", d.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
    elif how == 3:
        extra = case.attributes.get("output_padding", [0] * spatial)
        reach = [s * (i - 1) + e + (k - 1) * x + 1 for s, i, e, k, x in zip(strides, image, extra, kernel, dilations)]
        case.set("output_shape", [d.integer(max(1, r - k + 1), r) for r, k in zip(reach, kernel)])
        case.maybe("auto_pad", d.choice(["SAME_UPPER", "SAME_LOWER"]))
    case.maybe("group", groups, 1.0 if groups > 1 else 0.2)
    case.maybe("kernel_shape", kernel)
    if d.chance(0.5):
        case.tensor("B", (groups * outputs,))


def pool(case):
    d = case.draw
    spatial = d.choice([1, 2, 2, 3])
    kernel = [d.integer(1, 3) for _ in range(spatial)]
    image = window(case, spatial, kernel, [d.integer(1, 7) for _ in range(spatial)])
    case.set("kernel_shape", kernel)
    if "auto_pad" not in case.attributes:
        case.maybe("ceil_mode", d.integer(0, 1), 0.3)
    case.maybe("count_include_pad", d.integer(0, 1), 0.4)
    if case.schema.name == "LpPool":
        case.maybe("p", d.integer(1, 3))
    case.maybe("storage_order", d.integer(0, 1), 0.2)
    case.tensor("X", (d.integer(1, 2), d.integer(1, 3), *image))
    if case.schema.name == "MaxPool" and case.version >= 8 and d.chance(0.3):
        case.outputs = 2


def global_pool(case):
    d = case.draw
    case.tensor("X", (d.dim(), d.dim(), *[d.dim() for _ in range(d.integer(1, 3))]))
    case.maybe("p", d.integer(1, 3))


def batch_norm(case):
    d = case.draw
    x = case.tensor("X", d.shape(low=2, empty=False))
    names = [p.name for p in case.schema.inputs[1:5]]
    per_element = case.has("spatial") and d.chance(0.2)
    shape = x.shape[1:] if per_element else (x.shape[1],)
    case.maybe("spatial", int(not per_element), 1.0 if per_element else 0.3)
    for name in names[:3]:
        case.set(name, d.tensor(case.type(name), shape))
    case.set(names[3], d.tensor(case.type(names[3]), shape, 0.3, 2))
    case.maybe("epsilon", d.choice([1e-3, 1e-2]))
    case.maybe("momentum", d.choice([0.5, 0.99]), 0.3)
    case.set("is_test", 1)
    case.outputs = 1
    if case.has("training_mode") and d.chance(0.3):
        case.set("training_mode", 1)
        case.outputs = 3


def instance_norm(case):
    d = case.draw
    x = case.tensor("input", (d.dim(), d.dim(), *[d.dim() + 1 for _ in range(d.integer(1, 3))]))
    case.tensor("scale", (x.shape[1],))
    case.tensor("B", (x.shape[1],))
    case.maybe("epsilon", d.choice([1e-3, 1e-2]))


def layer_norm(case):
    d = case.draw
    x = case.tensor("X", d.shape(low=1, empty=False))
    axis = d.axis(x.ndim)
    case.maybe("axis", axis, 1.0 if axis not in (-1, x.ndim - 1) else 0.5)
    names = [p.name for p in case.schema.inputs]
    rest = x.shape[axis % x.ndim:]
    case.tensor(names[1], rest)
    if len(names) > 2 and d.chance(0.6):
        case.tensor(names[2], rest)
    case.maybe("epsilon", d.choice([1e-3, 1e-2]))
    case.maybe("stash_type", element_type(d.choice(["float", "bfloat16"])), 0.3)
    case.outputs = d.integer(1, len(case.schema.outputs))
    case.wide = True


def group_norm(case):
    d, groups = case.draw, case.draw.integer(1, 3)
    channels = groups * d.integer(1, 3)
    case.tensor("X", (d.dim(), channels, *[d.dim() + 1 for _ in range(d.integer(1, 3))]))
    count = channels if case.version >= 21 else groups
    case.tensor("scale", (count,))
    case.tensor("bias", (count,))
    case.set("num_groups", groups)
    case.maybe("epsilon", d.choice([1e-3, 1e-2]))
    case.maybe("stash_type", element_type(d.choice(["float", "bfloat16"])), 0.3)
    case.wide = True


def lrn(case):
    d = case.draw
    case.tensor("X", [d.dim() for _ in range(d.choice([2, 3, 4, 4, 4, 5]))])
    case.set("size", d.choice([1, 2, 3, 4, 5]))
    case.maybe("alpha", d.choice([0.01, 1.0]))
    case.maybe("beta", d.choice([0.6, 0.75]))
    case.maybe("bias", d.choice([1.0, 1.5]))


def lp_norm(case):
    d = case.draw
    x = case.tensor("input", d.shape(low=1, empty=False), 0.5, 3)
    case.maybe("axis", d.axis(x.ndim))
    case.maybe("p", d.integer(1, 2))


def mean_variance(case):
    d, rank = case.draw, case.draw.choice([3, 4, 4, 5])
    case.tensor("X", [d.dim() + 1 for _ in range(rank)])
    case.maybe("axes", d.axes(rank), 0.6 if rank == 4 else 1.0)
    case.wide = True


# Activations of recurrent layers, with how many of alpha and beta they have.
ACTIVATIONS = {"Relu": 0, "Tanh": 0, "Sigmoid": 0, "Softsign": 0, "Softplus": 0, "LeakyRelu": 1, "ThresholdedRelu": 1, "Elu": 1,
               "Affine": 2, "ScaledTanh": 2, "HardSigmoid": 2}
# Of these, those without bounds: states grow from step to step, to numbers that cancel but for what was rounded. Clipped, they do not.
WITHOUT_BOUNDS = {"Relu", "LeakyRelu", "ThresholdedRelu", "Softplus", "Elu", "Affine"}


def activations(case, ways):
    d, count = case.draw, {"RNN": 1, "GRU": 2, "LSTM": 3}[case.schema.name]
    if d.chance(0.6):
        return
    # An activation without parameters has no place in the lists of them, so all have two, one or none.
    parameters = d.integer(0, 2)
    chosen = [d.choice([name for name, has in ACTIVATIONS.items() if has == parameters]) for _ in range(count * ways)]
    case.set("activations", chosen)
    for name, needs in (("activation_alpha", 1), ("activation_beta", 2)):
        if parameters >= needs:  # Affine and ScaledTanh are no ONNX operators, so they have no defaults
            defaults = not {"Affine", "ScaledTanh"} & set(chosen)
            case.maybe(name, [d.choice([0.2, 0.5, 0.8]) for _ in chosen], 0.8 if defaults else 1.0)


def recurrent(case):
    d = case.draw
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[case.schema.name]
    steps, batch, size, hidden = d.dim(), d.dim(), d.dim(), d.dim()
    direction = d.choice(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    layout = int(case.has("layout") and d.chance(0.2))
    case.maybe("layout", layout, 1.0 if layout else 0.2)
    case.maybe("direction", direction, 1.0 if direction != "forward" else 0.3)
    case.set("hidden_size", hidden)
    case.maybe("output_sequence", d.integer(0, 1), 0.3)
    activations(case, ways)
    case.tensor("X", (batch, steps, size) if layout else (steps, batch, size))
    case.set("W", d.tensor(case.type("X"), (ways, gates * hidden, size), -0.5, 0.5))
    case.set("R", d.tensor(case.type("X"), (ways, gates * hidden, hidden), -0.5, 0.5))
    if d.chance(0.6):
        case.tensor("B", (ways, 2 * gates * hidden))
    if d.chance(0.4):
        case.set("sequence_lens", d.ints([d.integer(1, steps) for _ in range(batch)], "int32"))
    if d.chance(0.5):
        case.tensor("initial_h", (batch, ways, hidden) if layout else (ways, batch, hidden))
    if case.schema.name == "LSTM":
        if d.chance(0.5):
            case.tensor("initial_c", (batch, ways, hidden) if layout else (ways, batch, hidden))
        if d.chance(0.3):
            case.tensor("P", (ways, 3 * hidden))
        case.maybe("input_forget", d.integer(0, 1), 0.3)
    case.maybe("linear_before_reset", d.integer(0, 1))
    grows = steps > 1 and bool(WITHOUT_BOUNDS & set(case.attributes.get("activations", [])))
    case.maybe("clip", d.choice([0.5, 1.5]), 1.0 if grows else 0.3)
    case.outputs = 3 if case.schema.name == "LSTM" else 2


def einsum(case):
    d = case.draw
    sizes = {letter: d.dim() for letter in "ijkl"}
    equation = d.choice(["ij,jk->ik", "ij->ji", "ii->i", "ij,ij->", "ijk,ikl->ijl", "i,j->ij", "ij,kj->ik", "ijk->kj", "ij,j->i",
                         "...i,...i->...", "ij->", "ijk,jk->i"])
    left = equation.split("->")[0].split(",")
    case.set("equation", equation)
    for i, term in enumerate(left):
        shape = [sizes[letter] for letter in term.replace("...", "l")]
        case.set("Inputs", d.tensor(case.type("Inputs"), shape), position=i)


def det(case):
    d, n = case.draw, case.draw.dim()
    case.tensor("X", (*d.shape(high=2, empty=False), n, n))
    case.wide = True


RECIPES = {
    "MatMul": matmul, "MatMulInteger": matmul, "Gemm": gemm, "Conv": conv, "ConvInteger": conv, "ConvTranspose": conv_transpose,
    "MaxPool": pool, "AveragePool": pool, "LpPool": pool, "GlobalAveragePool": global_pool, "GlobalMaxPool": global_pool,
    "GlobalLpPool": global_pool, "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm,
    "LayerNormalization": layer_norm, "RMSNormalization": layer_norm, "GroupNormalization": group_norm, "LRN": lrn,
    "LpNormalization": lp_norm, "MeanVarianceNormalization": mean_variance, "RNN": recurrent, "GRU": recurrent, "LSTM": recurrent,
    "Einsum": einsum, "Det": det,
}
