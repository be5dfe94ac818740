"""Attention and what comes with it."""
import numpy as np
from draw import DTYPES, element_type


def attention(case):
    d = case.draw
    batch, heads, queries, keys, size = d.integer(1, 2), d.choice([1, 2, 4]), d.dim(), d.dim(), d.integer(1, 4)
    kv_heads = heads if d.chance(0.6) else d.choice([k for k in (1, 2) if heads % k == 0])
    v_size, past, planar = d.integer(1, 4), 0, d.chance()
    kind = case.type("Q")
    case.type("V", (kind,))

    def draw(name, heads, steps, size):
        shape = (batch, heads, steps, size) if planar or name.startswith("past") else (batch, steps, heads * size)
        case.set(name, d.tensor(kind, shape))

    draw("Q", heads, queries, size)
    draw("K", kv_heads, keys, size)
    draw("V", kv_heads, keys, v_size)
    if not planar:
        case.set("q_num_heads", heads)
        case.set("kv_num_heads", kv_heads)
    case.outputs = 1
    if d.chance(0.3):
        past = d.dim()
        draw("past_key", kv_heads, past, size)
        draw("past_value", kv_heads, past, v_size)
        case.outputs = 3
    elif case.has("nonpad_kv_seqlen") and d.chance(0.2):
        case.set("nonpad_kv_seqlen", d.ints([d.integer(1, keys) for _ in range(batch)]))
    if d.chance(0.4):
        mask = d.choice([(queries, past + keys), (1, 1, queries, past + keys), (batch, 1, queries, past + keys),
                         (batch, heads, queries, past + keys), (1, queries, past + keys)])
        case.set("attn_mask", d.tensor(case.type("attn_mask", ("bool", kind)), mask, -1, 1))
    case.maybe("is_causal", d.integer(0, 1), 0.4)
    case.maybe("scale", d.choice([0.7, 1.0]), 0.3)
    case.maybe("softcap", d.choice([0.0, 2.0]), 0.3)
    case.maybe("softmax_precision", element_type(d.choice(["float", "double", "float16"])), 0.2)
    if case.attributes.get("softmax_precision") == element_type("float16"):
        case.absolute = 4e-3  # as for float16 elsewhere
    for side in ("left_window_size", "right_window_size"):
        case.maybe(side, d.integer(-1, 3), 0.3)
    if case.outputs == 3 and d.chance(0.4):
        case.outputs = 4
        case.maybe("qk_matmul_output_mode", d.integer(0, 3), 0.8)
    case.wide = True


def rotary(case):
    d = case.draw
    batch, heads, steps, size = d.integer(1, 2), d.integer(1, 3), d.dim(), 2 * d.integer(1, 4)
    planar, turned = d.chance(0.6), size
    if d.chance(0.3):
        turned = 2 * d.integer(1, size // 2)
        case.set("rotary_embedding_dim", turned)
    case.tensor("X", (batch, heads, steps, size) if planar else (batch, steps, heads * size))
    if not planar or d.chance(0.2):
        case.set("num_heads", heads)
    by_position = d.chance(0.7)
    angles = d.rng.uniform(-1, 1, (steps + 2 if by_position else batch, *(() if by_position else (steps,)), turned // 2))
    for name, values in (("cos_cache", np.cos(angles)), ("sin_cache", np.sin(angles))):
        case.set(name, values.astype(DTYPES[case.type("X")]))
    if by_position:
        case.set("position_ids", d.rng.integers(0, steps + 2, (batch, steps)).astype(np.int64))
    case.maybe("interleaved", d.integer(0, 1))


def tensor_scatter(case):
    d = case.draw
    cache = list(d.shape(low=2, empty=False))
    axis = d.integer(1, len(cache) - 1)
    update = list(cache)
    update[axis] = d.integer(1, cache[axis])
    case.tensor("past_cache", cache)
    case.tensor("update", update)
    circular = d.chance(0.4)
    case.maybe("mode", "circular" if circular else "linear", 1.0 if circular else 0.3)
    if d.chance(0.8):
        last = cache[axis] - 1 if circular else cache[axis] - update[axis]
        case.set("write_indices", d.ints([d.integer(0, last) for _ in range(cache[0])]))
    case.maybe("axis", axis - len(cache) if d.chance() else axis, 1.0 if axis != len(cache) - 2 else 0.5)


RECIPES = {"Attention": attention, "RotaryEmbedding": rotary, "TensorScatter": tensor_scatter}
