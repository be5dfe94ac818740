"""The ways in which Tenon quantizes a model."""
from dataclasses import dataclass, field


@dataclass
class Way:
    """Options of tenon.quantize, and the most that the error's root mean square may be of the outputs'."""
    most_error: float
    options: dict = field(default_factory=dict)


def static(most_error=0.02, **options):
    return Way(most_error, options)


def blocks(most_error, **options):
    return Way(most_error, {"mode": "weight-only", "block_size": 32, **options})


WAYS = {
    "mse": static(),
    "minmax": static(method="minmax"),
    "moving_average": static(0.06, method="moving-average"),
    "percentile": static(method="percentile"),
    "entropy": static(0.03, method="entropy"),  # a last bit of an activation may move a range by a bin
    "per_tensor": static(per_channel=False),
    "s8s8_symmetric": static(0.03, activations="int8", symmetric_activations=True),  # after a Relu, half of the codes
    "u8u8": static(weights="uint8", symmetric_weights=False),
    "u16s8": static(0.01, activations="uint16"),
    "s16s8": static(0.01, activations="int16"),
    "smooth": static(smooth=0.5),
    "bias_correction": static(bias_correction=True),
    "codes": static(format="qoperator"),
    "dynamic": Way(0.012, {"mode": "dynamic"}),
    "blocks_s4": blocks(0.2, weights="int4"),
    "blocks_u4": blocks(0.1, weights="uint4", symmetric_weights=False),
    "blocks_s8": blocks(0.01, weights="int8"),
    "blocks_s4_codes": blocks(0.2, weights="int4", format="qoperator"),
    "blocks_u4_codes": blocks(0.1, weights="uint4", symmetric_weights=False, format="qoperator"),
    "blocks_gptq": blocks(0.05, weights="int4", weight_method="gptq"),
}
