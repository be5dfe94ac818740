"""Which nodes are meant by lists of operators and of names."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Iterable

import tenon
from tenon.errors import ArgumentError


def _operators_of(model: tenon.OnnxModel) -> set[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        model.save(path)
        return {operator.name for operator in tenon.inspect(path).operators}


def selection(model: tenon.OnnxModel, operators: Iterable[str], nodes: Iterable[str], excluded: Iterable[str]) -> dict[str, Any]:
    """tenon.quantize's `only` and `keep_float`. Operators that the model does not have are left out, as onnxruntime does."""
    if operators and nodes:
        raise ArgumentError("operators and nodes to quantize cannot both be given: give the names of the nodes alone")
    only = list(nodes)
    if operators:
        here = _operators_of(model)
        only = [operator for operator in operators if operator in here]
        if not only:
            raise ArgumentError(f"the model has none of the operators to quantize: {', '.join(operators)}")
    return {"only": only or None, "keep_float": list(excluded) or None}
