"""Signals: transforms, windows, filters."""
import numpy as np
from draw import DTYPES, element_type


def scalar(case, name, value, constant=False):
    """An input of one number, in the type that the case gives it."""
    case.set(name, np.array(value, dtype=DTYPES[case.type(name)]), constant=constant)


def dft(case):
    d = case.draw
    onesided, inverse = d.chance(0.4), d.chance(0.3)
    complex_ = onesided == inverse and d.chance(0.6) or onesided and inverse
    shape = [d.integer(1, 2), *[d.integer(1, 8) for _ in range(d.integer(1, 2))], 2 if complex_ else 1]
    case.tensor(case.schema.inputs[0].name, shape, only=("float", "double", "float16"))
    axis = d.integer(1, len(shape) - 2)
    if d.chance(0.4):
        scalar(case, "dft_length", d.integer(1, 10), constant=True)
    case.maybe("onesided", int(onesided), 1.0 if onesided else 0.3)
    case.maybe("inverse", int(inverse), 1.0 if inverse else 0.3)
    axis = axis - len(shape) if d.chance(0.3) else axis
    if case.version < 20:
        case.maybe("axis", axis, 1.0 if axis != 1 else 0.5)
    elif axis != len(shape) - 2 or d.chance():
        case.set("axis", np.array(axis, dtype=np.int64), constant=True)
    case.wide = True


def stft(case):
    d = case.draw
    frame, onesided = d.integer(2, 8), d.chance()
    case.tensor("signal", (d.integer(1, 2), frame + d.integer(0, 12), 1 if onesided or d.chance() else 2), only=("float", "double", "float16"))
    scalar(case, "frame_step", d.integer(1, 4), constant=True)
    how = d.integer(0, 2)
    if how != 1:
        scalar(case, "frame_length", frame, constant=True)
    if how != 0:
        case.set("window", d.tensor(case.type("signal"), (frame,), 0.1, 1))
    case.maybe("onesided", int(onesided), 0.5 if onesided else 1.0)
    case.wide = True


def mel_weight_matrix(case):
    d = case.draw
    rate = d.choice([8000, 8192, 16000])
    for name, value in (("num_mel_bins", d.integer(1, 8)), ("dft_length", d.choice([16, 32, 64])), ("sample_rate", rate)):
        scalar(case, name, value)
    scalar(case, "lower_edge_hertz", d.choice([0.0, 20.0, 125.0]))
    scalar(case, "upper_edge_hertz", d.choice([0.25, 0.5]) * rate)
    case.maybe("output_datatype", element_type(d.choice(["float", "double", "float16", "int32"])))


def window(case):
    d = case.draw
    case.set("size", np.array(d.integer(1, 12), dtype=DTYPES[case.type("size")]))
    case.maybe("periodic", d.integer(0, 1))
    case.maybe("output_datatype", element_type(d.choice(["float", "double"])))


RECIPES = {"DFT": dft, "STFT": stft, "MelWeightMatrix": mel_weight_matrix, "HannWindow": window, "HammingWindow": window, "BlackmanWindow": window}
