"""Images: resizing, sampling, regions, convolutions at offsets, boxes."""
import numpy as np
from case import NoCase
from draw import DTYPES


def grid_sample(case):
    d = case.draw
    n, spatial = d.integer(1, 2), 3 if case.version >= 20 and d.chance(0.3) else 2
    case.tensor("X", (n, d.integer(1, 2), *[d.integer(2, 5) for _ in range(spatial)]))
    grid = case.schema.inputs[1].name
    case.set(grid, d.tensor(case.type(grid), (n, *[d.dim() for _ in range(spatial)], spatial), -1.3, 1.3))
    linear, cubic = ("bilinear", "bicubic") if case.version < 20 else ("linear", "cubic")
    case.maybe("mode", d.choice([linear, "nearest"] + [cubic] * (spatial == 2)))
    case.maybe("padding_mode", d.choice(["zeros", "border", "reflection"]))
    case.maybe("align_corners", d.integer(0, 1))
    case.wide = True


def center_crop_pad(case):
    d = case.draw
    x = case.tensor("input_data", d.shape(low=1, empty=False))
    axes = d.axes(x.ndim) if d.chance() else list(range(x.ndim))
    case.set("shape", d.ints([d.integer(1, 7) for _ in axes], case.type("shape")))
    if axes != list(range(x.ndim)):
        case.set("axes", axes)


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
    case.maybe("sampling_ratio", d.integer(0, 3))
    case.maybe("spatial_scale", d.choice([0.5, 1.0, 2.0]))
    case.maybe("coordinate_transformation_mode", d.choice(["half_pixel", "output_half_pixel"]))
    case.wide = True


def max_roi_pool(case):
    d = case.draw
    x = case.tensor("X", (d.integer(1, 2), d.integer(1, 3), 8, 8), only=("float",))
    boxes = np.sort(d.rng.integers(0, 8, (d.dim(), 2, 2)), axis=1).reshape(-1, 4)
    index = d.rng.integers(0, x.shape[0], (len(boxes), 1))
    case.set("rois", np.concatenate([index, boxes], axis=1).astype(np.float32))
    case.set("pooled_shape", [d.integer(1, 3), d.integer(1, 3)])
    case.maybe("spatial_scale", d.choice([0.5, 1.0]))


def upsample(case):
    d = case.draw
    rank = 4
    case.tensor("X", tuple(d.integer(1, 4) for _ in range(rank)))
    scales = [1.0, 1.0, d.choice([1.0, 2.0, 3.0]), d.choice([1.0, 2.0])]
    if case.version >= 9:
        case.set("scales", np.array(scales, dtype=np.float32), constant=True)
    elif case.version >= 7:
        case.set("scales", scales)
    else:
        case.set("height_scale", scales[2])
        case.set("width_scale", scales[3])
    case.maybe("mode", d.choice(["nearest", "linear"]))
    if case.type("X") in ("int8", "uint8", "int32"):
        case.absolute = 1.0  # the fraction is cut off


def resize(case):
    d = case.draw
    rank = d.choice([2, 3, 4])
    shape = ((1, 1) if d.chance(0.7) else (2, 3))[:rank - 2] + tuple(d.integer(2, 5) for _ in range(2))
    x = case.tensor("X", shape)
    mode = d.choice(["nearest", "linear", "cubic"] if rank == 4 and case.type("X") == "float" and case.version >= 11 else ["nearest", "linear"])
    case.set("mode", mode)
    factors = np.array([1.0] * (rank - 2) + [d.choice([0.5, 1.0, 1.5, 2.0, 3.0]) for _ in range(2)], dtype=np.float32)
    if case.type("X") in ("int8", "uint8", "int32"):
        case.absolute = 1.0  # the fraction is cut off
    case.wide = True
    if case.version < 11:
        return case.set("scales", factors)
    mapping = d.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize"] +
                       ["tf_half_pixel_for_nn"] * (case.version < 13) + ["half_pixel_symmetric"] * (case.version >= 19))
    case.maybe("coordinate_transformation_mode", mapping, 1.0 if mapping == "tf_crop_and_resize" else 0.9)
    if mode == "nearest":
        case.maybe("nearest_mode", d.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        case.maybe("cubic_coeff_a", d.choice([-0.75, -0.5]))
    if mode != "nearest":
        case.maybe("exclude_outside", d.integer(0, 1), 0.3 if mode == "cubic" else 0.05)
        case.maybe("antialias", d.integer(0, 1), 0.3)
    sizes = [*x.shape[:-2], d.integer(1, 9), d.integer(1, 9)]
    axes = None
    if case.has("axes") and d.chance(0.3):
        axes = [rank - 2, rank - 1] if d.chance() else [-1, -2]
        case.set("axes", axes)
        sizes, factors = [sizes[a] for a in axes], factors[axes]
    if mapping == "tf_crop_and_resize":
        ends = np.sort(d.rng.uniform(-0.2, 1.2, (2, len(sizes))), axis=0)
        if axes is None:
            ends[:, :rank - 2] = [[0], [1]]
        case.set("roi", ends.reshape(-1).astype(DTYPES[case.type("roi")]))
        case.maybe("extrapolation_value", 2.5)
    elif case.version < 13:
        case.set("roi", np.zeros(0, dtype=DTYPES[case.type("roi")]))
    if d.chance(0.5):
        if case.version < 13:
            case.set("scales", np.zeros(0, dtype=np.float32))
        case.set("sizes", d.ints(sizes))
        if case.has("keep_aspect_ratio_policy") and (axes or rank == 2):
            case.maybe("keep_aspect_ratio_policy", d.choice(["stretch", "not_larger", "not_smaller"]), 0.4)
    else:
        case.set("scales", factors)


def col2im(case):
    d, spatial = case.draw, case.draw.choice([1, 2, 2, 3])
    image, kernel = [d.integer(3, 6) for _ in range(spatial)], [d.integer(1, 3) for _ in range(spatial)]
    strides, dilations = [d.integer(1, 2) for _ in range(spatial)], [1] * spatial
    if d.chance(0.3):
        dilations = [d.integer(1, 2) if k < 3 else 1 for k in kernel]
    pads = [d.integer(0, 1) for _ in range(2 * spatial)] if d.chance(0.4) else [0] * (2 * spatial)
    blocks = [(i + pads[a] + pads[a + spatial] - x * (k - 1) - 1) // s + 1
              for a, (i, k, s, x) in enumerate(zip(image, kernel, strides, dilations))]
    case.tensor("input", (d.integer(1, 2), d.integer(1, 3) * int(np.prod(kernel)), int(np.prod(blocks))))
    case.set("image_shape", d.ints(image))
    case.set("block_shape", d.ints(kernel))
    for name, value, usual in (("strides", strides, 1), ("dilations", dilations, 1), ("pads", pads, 0)):
        case.maybe(name, value, 1.0 if any(v != usual for v in value) else 0.2)


def max_unpool(case):
    d, spatial = case.draw, case.draw.choice([1, 2, 2, 3])
    shape = (d.integer(1, 2), d.integer(1, 2), *[d.integer(1, 4) for _ in range(spatial)])
    kernel, strides = [d.integer(2, 3) for _ in range(spatial)], [d.integer(1, 3) for _ in range(spatial)]
    pads = [d.integer(0, 1) for _ in range(2 * spatial)] if d.chance(0.3) else [0] * (2 * spatial)
    image = [(i - 1) * s + k - pads[a] - pads[a + spatial] for a, (i, k, s) in enumerate(zip(shape[2:], kernel, strides))]
    total, taken = int(np.prod(image)), int(np.prod(shape[2:]))
    if min(image) < 1 or total < taken:
        raise NoCase("the image is too small for the values")
    x = case.tensor("X", shape)
    places = np.stack([d.rng.permutation(total)[:taken] + i * total for i in range(shape[0] * shape[1])])
    case.set("I", places.reshape(x.shape).astype(np.int64))
    case.set("kernel_shape", kernel)
    case.maybe("strides", strides, 1.0 if any(s != 1 for s in strides) else 0.3)
    case.maybe("pads", pads, 1.0 if any(pads) else 0.2)
    if d.chance(0.2):
        case.set("output_shape", d.ints([*shape[:2], *[size + d.integer(0, 2) for size in image]]))


def affine_grid(case):
    d, spatial = case.draw, case.draw.choice([2, 3])
    batch = d.integer(1, 3)
    case.tensor("theta", (batch, spatial, spatial + 1))
    case.set("size", d.ints([batch, d.integer(1, 3), *[d.dim() for _ in range(spatial)]]))
    case.maybe("align_corners", d.integer(0, 1))
    case.wide = True


def deform_conv(case):
    d = case.draw
    groups, offset_groups = d.choice([1, 1, 2]), d.choice([1, 1, 2])
    channels, outputs = groups * offset_groups * d.integer(1, 2), groups * d.integer(1, 2)
    kernel, strides = [d.integer(1, 3) for _ in range(2)], [d.integer(1, 2) for _ in range(2)]
    dilations, pads = [d.integer(1, 2) for _ in range(2)], [d.integer(0, 1) for _ in range(4)]
    image = [(k - 1) * x + d.integer(1, 4) for k, x in zip(kernel, dilations)]
    out = [(size + pads[a] + pads[a + 2] - x * (k - 1) - 1) // s + 1
           for a, (size, k, s, x) in enumerate(zip(image, kernel, strides, dilations))]
    batch, places = d.integer(1, 2), offset_groups * kernel[0] * kernel[1]
    case.tensor("X", (batch, channels, *image))
    case.tensor("W", (outputs, channels // groups, *kernel))
    case.set("offset", d.tensor(case.type("X"), (batch, 2 * places, *out), -1.5, 1.5))
    if d.chance():
        case.tensor("B", (outputs,))
    if d.chance():
        case.set("mask", d.tensor(case.type("X"), (batch, places, *out), 0, 1))
    for name, value, usual in (("strides", strides, [1, 1]), ("dilations", dilations, [1, 1]), ("pads", pads, [0] * 4), ("group", groups, 1),
                               ("offset_group", offset_groups, 1), ("kernel_shape", kernel, kernel)):
        case.maybe(name, value, 0.5 if value == usual else 1.0)
    case.wide = True


RECIPES = {
    "Resize": resize, "Upsample": upsample, "GridSample": grid_sample, "AffineGrid": affine_grid, "DeformConv": deform_conv,
    "CenterCropPad": center_crop_pad, "Col2Im": col2im, "MaxUnpool": max_unpool, "RoiAlign": roi_align, "MaxRoiPool": max_roi_pool,
    "NonMaxSuppression": non_max_suppression,
}
