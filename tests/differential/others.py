"""Operators with inputs of their own kind: losses, detection, windows, quantized products, sequences, attention."""
import numpy as np
from draw import DTYPES, element_type


def cast_like(case):
    d = case.draw
    target = case.type("target_type", ("float", "double", "float16", "int32", "int64", "uint8", "bool"))
    case.tensor("input", d.shape(), *((0, 6) if target.startswith("u") else (None, None)))
    case.tensor("target_type", (1,))


def center_crop_pad(case):
    d = case.draw
    x = case.tensor("input_data", d.shape(low=1, empty=False))
    axes = d.axes(x.ndim) if d.chance() else list(range(x.ndim))
    case.set("shape", d.ints([d.integer(1, 7) for _ in axes], case.type("shape")))
    if axes != list(range(x.ndim)):
        case.set("axes", axes)


def col2im(case):
    d = case.draw
    image, kernel = [d.integer(3, 6) for _ in range(2)], [d.integer(1, 3) for _ in range(2)]
    strides = [d.integer(1, 2) for _ in range(2)]
    blocks = [(i - k) // s + 1 for i, k, s in zip(image, kernel, strides)]
    case.tensor("input", (d.integer(1, 2), d.integer(1, 3) * kernel[0] * kernel[1], blocks[0] * blocks[1]))
    case.set("image_shape", d.ints(image))
    case.set("block_shape", d.ints(kernel))
    case.set("strides", strides)


def dropout(case):
    case.tensor("data", case.draw.shape())
    case.outputs = case.draw.integer(1, 2) if case.version >= 10 else 1


def loss(case):
    d = case.draw
    classes, batch, rest = d.integer(2, 5), d.dim(), d.shape(high=2, empty=False)
    names = [p.name for p in case.schema.inputs]
    case.tensor(names[0], (batch, classes, *rest))
    labels = d.tensor(case.type(names[1]), (batch, *rest), 0, classes - 1)
    case.set(names[1], labels)
    if d.chance(0.4):
        case.set(names[2], d.tensor(case.type(names[0]), (classes,), 0.2, 2))
    case.maybe("reduction", d.choice(["none", "sum", "mean"]))
    if d.chance(0.3):
        case.set("ignore_index", d.integer(0, classes - 1))
    case.wide = True


def non_max_suppression(case):
    d = case.draw
    boxes, classes, batch = d.integer(1, 12), d.integer(1, 3), d.integer(1, 2)
    corners = d.rng.uniform(0, 1, (batch, boxes, 4)).astype(np.float32)
    corners[..., 2:] = corners[..., :2] + corners[..., 2:] * 0.6
    case.set("boxes", corners)
    case.set("scores", d.rng.permutation(batch * classes * boxes).reshape(batch, classes, boxes).astype(np.float32) / 50)
    if d.chance(0.9):
        case.set("max_output_boxes_per_class", d.ints([d.integer(0, 6)]))
        if d.chance(0.7):
            case.set("iou_threshold", np.array([d.choice([0.2, 0.5, 0.8])], dtype=np.float32))
            if d.chance(0.6):
                case.set("score_threshold", np.array([0.1], dtype=np.float32))
    case.maybe("center_point_box", d.integer(0, 1), 0.3)


def roi_align(case):
    d = case.draw
    x = case.tensor("X", (d.integer(1, 2), d.integer(1, 3), 6, 6))
    rois = np.sort(d.rng.uniform(0, 6, (d.dim(), 2, 2)), axis=1).reshape(-1, 4)
    case.set("rois", rois.astype(x.dtype))
    case.set("batch_indices", d.ints([d.integer(0, x.shape[0] - 1) for _ in rois]))
    case.maybe("mode", d.choice(["avg", "max"]) if case.version >= 16 else "avg")
    case.maybe("output_height", d.integer(1, 3))
    case.maybe("output_width", d.integer(1, 3))
    case.maybe("sampling_ratio", d.integer(0, 2))
    case.maybe("spatial_scale", d.choice([0.5, 1.0]))
    case.maybe("coordinate_transformation_mode", d.choice(["half_pixel", "output_half_pixel"]))
    case.attributes = {k: v for k, v in case.attributes.items() if k in case.schema.attributes}
    case.wide = True


def max_unpool(case):
    d = case.draw
    n, c, h, w = d.integer(1, 2), d.integer(1, 2), d.integer(1, 4), d.integer(1, 4)
    x = case.tensor("X", (n, c, h, w))
    places = np.stack([d.rng.permutation(4 * h * w)[:h * w] + i * 4 * h * w for i in range(n * c)])
    case.set("I", places.reshape(x.shape).astype(np.int64))
    case.set("kernel_shape", [2, 2])
    case.set("strides", [2, 2])


def scale_and_zero(case, prefix, kind, shape=()):
    d = case.draw
    names = [p.name for p in case.schema.inputs]
    scale = next(n for n in names if n.startswith(prefix) and n.endswith("scale"))
    zero = next(n for n in names if n.startswith(prefix) and n.endswith("zero_point"))
    case.set(scale, d.rng.uniform(0.02, 0.3, shape).astype(np.float32))
    case.set(zero, d.tensor(kind, shape, 0, 4))


def qlinear_matmul(case):
    d = case.draw
    m, k, n = d.dim(), d.dim(), d.dim()
    batch = d.shape(high=2, empty=False)
    kinds = ("uint8", "int8")
    case.tensor("a", (*batch, m, k), 0, 30, only=kinds)
    case.tensor("b", (*batch, k, n), 0, 30, only=kinds)
    scale_and_zero(case, "a", case.type("a"))
    scale_and_zero(case, "b", case.type("b"))
    scale_and_zero(case, "y", case.type("y_zero_point", kinds))
    case.absolute = 1.0  # a tie may round either way


def qlinear_conv(case):
    d = case.draw
    groups, per_group = d.choice([1, 1, 2]), d.integer(1, 3)
    outputs, kernel = groups * d.integer(1, 3), [d.integer(1, 3) for _ in range(2)]
    case.tensor("x", (d.integer(1, 2), groups * per_group, d.integer(3, 6), d.integer(3, 6)), 0, 30)
    case.tensor("w", (outputs, per_group, *kernel), 0, 30)
    scale_and_zero(case, "x", case.type("x"))
    scale_and_zero(case, "w", case.type("w"))
    scale_and_zero(case, "y", case.type("y_zero_point"))
    if d.chance():
        case.set("B", d.tensor("int32", (outputs,), -50, 50))
    case.set("group", groups)
    case.maybe("pads", [d.integer(0, k - 1) for k in kernel * 2])
    case.maybe("strides", [d.integer(1, 2) for _ in kernel])
    case.constants |= {1, 2, 3, 4, 5, 6, 7}
    case.absolute = 1.0


def window(case):
    d = case.draw
    case.set("size", np.array(d.integer(1, 12), dtype=DTYPES[case.type("size")]))
    case.maybe("periodic", d.integer(0, 1))
    case.maybe("output_datatype", element_type(d.choice(["float", "double"])))


def attention(case):
    d = case.draw
    batch, heads, queries, keys, size = d.integer(1, 2), d.integer(1, 3), d.dim(), d.dim(), d.integer(1, 4)
    kv_heads = heads if d.chance(0.7) else 1
    v_size = d.integer(1, 4)
    case.wide = True
    if d.chance():
        case.tensor("Q", (batch, heads, queries, size))
        case.tensor("K", (batch, kv_heads, keys, size))
        case.set("V", d.tensor(case.type("V", (case.type("Q"),)), (batch, kv_heads, keys, v_size)))
    else:
        case.tensor("Q", (batch, queries, heads * size))
        case.tensor("K", (batch, keys, kv_heads * size))
        case.set("V", d.tensor(case.type("V", (case.type("Q"),)), (batch, keys, kv_heads * v_size)))
        case.set("q_num_heads", heads)
        case.set("kv_num_heads", kv_heads)
    if d.chance(0.4):
        case.set("attn_mask", d.tensor(case.type("attn_mask", ("bool", case.type("Q"))), (queries, keys), -1, 1))
    case.maybe("is_causal", d.integer(0, 1), 0.4)
    case.maybe("scale", 0.7, 0.3)
    case.maybe("softcap", 2.0, 0.3)
    case.outputs = 1


def rotary(case):
    d = case.draw
    batch, heads, steps, size = d.integer(1, 2), d.integer(1, 3), d.dim(), 2 * d.integer(1, 3)
    case.tensor("X", (batch, heads, steps, size))
    angles = d.rng.uniform(-1, 1, (steps + 2, size // 2))
    for name, values in (("cos_cache", np.cos(angles)), ("sin_cache", np.sin(angles))):
        case.set(name, values.astype(DTYPES[case.type("X")]))
    case.set("position_ids", d.rng.integers(0, steps + 2, (batch, steps)).astype(np.int64))
    case.maybe("interleaved", d.integer(0, 1))


def upsample(case):
    d = case.draw
    rank = 4
    case.tensor("X", tuple(d.integer(1, 4) for _ in range(rank)))
    scales = [1.0, 1.0, d.choice([1.0, 2.0, 3.0]), d.choice([1.0, 2.0])]
    if case.version >= 9:
        case.set("scales", np.array(scales, dtype=np.float32), constant=True)
    elif case.version >= 7:
        case.set("scales", scales)
    case.maybe("mode", d.choice(["nearest", "linear"]))
    if case.type("X") in ("int8", "uint8", "int32"):
        case.absolute = 1.0  # the fraction is cut off


def max_roi_pool(case):
    d = case.draw
    x = case.tensor("X", (d.integer(1, 2), d.integer(1, 3), 8, 8), only=("float",))
    boxes = np.sort(d.rng.integers(0, 8, (d.dim(), 2, 2)), axis=1).reshape(-1, 4)
    index = d.rng.integers(0, x.shape[0], (len(boxes), 1))
    case.set("rois", np.concatenate([index, boxes], axis=1).astype(np.float32))
    case.set("pooled_shape", [d.integer(1, 3), d.integer(1, 3)])
    case.maybe("spatial_scale", 1.0)


def split_to_sequence(case):
    d = case.draw
    x = case.tensor("input", d.shape(low=1, empty=False), only=("float", "double", "int32", "int64"))
    axis = d.axis(x.ndim)
    case.set("axis", axis)
    if d.chance(0.6):
        case.set("split", np.array(d.integer(1, 3), dtype=np.int64))
    else:
        case.maybe("keepdims", d.integer(0, 1))


def sequence_of(case, low=1):
    d = case.draw
    shape = d.shape(high=3)
    return [d.tensor("float", shape) for _ in range(d.integer(low, 4))]


def sequence_construct(case):
    d, shape = case.draw, case.draw.shape(high=3)
    case.types["T"] = "float"
    for i in range(d.integer(1, 4)):
        case.set("inputs", d.tensor("float", shape), position=i)


def sequence_at(case):
    d = case.draw
    list_ = sequence_of(case)
    case.set("input_sequence", list_)
    case.set("position", np.array(d.integer(-len(list_), len(list_) - 1), dtype=np.int64))


def sequence_erase(case):
    d = case.draw
    list_ = sequence_of(case, 2)
    case.set("input_sequence", list_)
    if d.chance(0.7):
        case.set("position", np.array(d.integer(-len(list_), len(list_) - 1), dtype=np.int64))


def sequence_insert(case):
    d = case.draw
    list_ = sequence_of(case)
    case.set("input_sequence", list_)
    case.set("tensor", d.tensor("float", list_[0].shape))
    if d.chance(0.7):
        case.set("position", np.array(d.integer(-len(list_), len(list_)), dtype=np.int64))


def sequence_length(case):
    case.set("input_sequence", sequence_of(case))


def concat_from_sequence(case):
    d = case.draw
    list_ = [d.tensor("float", (d.dim(), 2, 3)[-d.integer(1, 3):]) for _ in range(1)] * d.integer(1, 3)
    case.set("input_sequence", list_)
    case.set("axis", d.axis(list_[0].ndim))
    case.maybe("new_axis", d.integer(0, 1))


RECIPES = {
    "CastLike": cast_like, "CenterCropPad": center_crop_pad, "Col2Im": col2im, "Dropout": dropout, "NegativeLogLikelihoodLoss": loss,
    "SoftmaxCrossEntropyLoss": loss, "NonMaxSuppression": non_max_suppression, "RoiAlign": roi_align, "MaxUnpool": max_unpool,
    "QLinearMatMul": qlinear_matmul, "QLinearConv": qlinear_conv, "HannWindow": window, "HammingWindow": window,
    "BlackmanWindow": window, "Attention": attention, "RotaryEmbedding": rotary, "Upsample": upsample, "MaxRoiPool": max_roi_pool,
    "SplitToSequence": split_to_sequence, "SequenceConstruct": sequence_construct, "SequenceAt": sequence_at,
    "SequenceErase": sequence_erase, "SequenceInsert": sequence_insert, "SequenceLength": sequence_length,
    "ConcatFromSequence": concat_from_sequence,
}
