"""What a case is, and short names for its inputs."""
from dataclasses import dataclass, field

import numpy as np

ML = "ai.onnx.ml"
IMAGE, TOKENS = (1, 64, 56, 56), (1, 128, 768)
BATCH = (16, 64, 112, 112)  # more than the caches hold


@dataclass
class Case:
    """One node; where it needs others around it, `nodes` is the text of them all, with inputs in0, in1, … and outputs out0, …"""
    operator: str
    what: str  # what is special about it
    inputs: list
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    opset: int = 21
    domain: str = ""
    nodes: str = ""

    @property
    def label(self):
        return f"{self.operator} {self.what}".strip()


class Input:
    def __init__(self, *shape, low=-2.0, high=2.0, dtype=np.float32, values=None, constant=False):
        self.shape, self.low, self.high, self.dtype, self.values, self.constant = shape, low, high, dtype, values, constant

    def draw(self, rng):
        if self.values is not None:
            return np.array(self.values, dtype=self.dtype)
        if self.dtype == np.str_:
            return np.array([f"word {i % 97}" for i in range(int(np.prod(self.shape)))], dtype=object).reshape(self.shape)
        if self.dtype == np.bool_:
            return rng.random(self.shape) < 0.5
        if np.issubdtype(self.dtype, np.floating):
            return (rng.random(self.shape, np.float32) * (self.high - self.low) + self.low).astype(self.dtype)
        return rng.integers(int(self.low), int(self.high) + 1, self.shape).astype(self.dtype)


def f(*shape, **more):
    return Input(*shape, **more)


def half(*shape, **more):
    return Input(*shape, dtype=np.float16, **more)


def weights(*shape, **more):
    return Input(*shape, low=-0.1, high=0.1, constant=True, **more)


def ints(*values):
    return Input(values=values, dtype=np.int64, constant=True)


def scalar(value, dtype=np.float32):
    return Input(values=value, dtype=dtype, constant=True)


def given(value, dtype=np.float32):
    return Input(values=value, dtype=dtype)


def u8(*shape, **more):
    return Input(*shape, low=0, high=255, dtype=np.uint8, **more)


def i8(*shape, **more):
    return Input(*shape, low=-100, high=100, dtype=np.int8, **more)


def i32(*shape, low=0, high=1000):
    return Input(*shape, low=low, high=high, dtype=np.int32)


def i64(*shape, low=0, high=1000):
    return Input(*shape, low=low, high=high, dtype=np.int64)


def truth(*shape):
    return Input(*shape, dtype=np.bool_)


def text(*shape):
    return Input(*shape, dtype=np.str_)


def scales(*factors):
    return Input(values=factors, dtype=np.float32, constant=True)
