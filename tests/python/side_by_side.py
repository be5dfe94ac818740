"""Runs the same code with onnxruntime and with tenon.onnxruntime, and compares what it does."""
import enum
import re

import numpy as np
import pytest
import tenon
import tenon.onnxruntime

onnxruntime = pytest.importorskip("onnxruntime", reason="there is nothing to compare with")
real_state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")

onnxruntime.set_default_logger_severity(4)

PREFIX = re.compile(r"^\[ONNXRuntimeError\] : (\d+) : (\w+) : ")


def outcome(behaviour, ort):
    """What a behaviour returns, or raises."""
    try:
        return behaviour(ort), None
    except Exception as error:
        return None, error


def plain(value):
    """A value without the classes of the package it came from."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.name, value.shape, value.tolist())
    if isinstance(value, enum.Enum) or hasattr(type(value), "__members__"):
        return (type(value).__name__, value.name, int(value))
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def assert_same_error(ours, real):
    assert ours is not None, f"onnxruntime raises {real!r}, Tenon nothing"
    if type(real).__module__ == real_state.__name__:
        assert type(ours).__name__ == type(real).__name__, f"{ours!r} instead of {real!r}"
        assert isinstance(ours, tenon.Error)
        assert PREFIX.match(str(ours))[0] == PREFIX.match(str(real))[0]
    else:
        assert isinstance(ours, type(real)), f"{ours!r} is no {type(real).__name__}, as {real!r} is"


def assert_same(behaviour):
    result, error = outcome(behaviour, tenon.onnxruntime)
    expected, expected_error = outcome(behaviour, onnxruntime)
    if expected_error is not None:
        assert_same_error(error, expected_error)
        return
    if error is not None:
        raise error
    assert plain(result) == plain(expected)
