"""What a model is compared with: PyTorch modules, scikit-learn estimators, functions, other models."""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from ._tenon import Model, Tensor, load

Arrays = Mapping[str, Any]


def _is_a(value: Any, module: str, name: str) -> bool:
    """Whether a value is of a class of a library, without importing it."""
    return any(kind.__name__ == name and kind.__module__.split(".")[0] == module for kind in type(value).__mro__)


def as_function(source: Any, input_names: Sequence[str], output_names: Sequence[str]) -> Callable[[Arrays], dict[str, Any]]:
    """A function from inputs by name to outputs by name. Raises TypeError for what can be none."""
    if isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(source, "SerializeToString"):
        source = load(source)
    if isinstance(source, Model):
        return lambda inputs: by_name(source.run(inputs), output_names)
    if _is_a(source, "torch", "Module"):
        call = _torch_call(source)
    elif callable(source):
        call = source
    elif hasattr(source, "predict") or hasattr(source, "transform"):
        return lambda inputs: by_name(_estimate(source, inputs, len(output_names)), output_names)
    else:
        raise TypeError(f"the source is a {type(source).__name__}: give a function, a PyTorch module, a scikit-learn "
                        "estimator or another model")
    keywords = _takes_keywords(source, input_names)

    def run(inputs: Arrays) -> dict[str, Any]:
        if keywords:
            return by_name(call(**inputs), output_names)
        return by_name(call(*(inputs[name] for name in input_names)), output_names)

    return run


def _takes_keywords(source: Any, names: Sequence[str]) -> bool:
    """Whether every input is the name of a parameter, or there is no place for it but by name; else values are given in the
    order of the model's inputs."""
    try:
        parameters = inspect.signature(getattr(source, "forward", source)).parameters
    except (TypeError, ValueError):
        return False
    kind = inspect.Parameter
    kinds = {parameter.kind for parameter in parameters.values()}
    if kind.VAR_KEYWORD in kinds and kinds <= {kind.VAR_KEYWORD, kind.KEYWORD_ONLY}:
        return True
    by_keyword = (kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY)
    return all(name in parameters and parameters[name].kind in by_keyword for name in names)


def _torch_call(module: Any) -> Callable[..., Any]:
    import torch

    def call(*arrays: Any, **named: Any) -> Any:
        # A copy: arrays may be read-only, which PyTorch's tensors cannot be.
        def tensor(array: Any) -> Any:
            return torch.from_numpy(np.array(array)) if isinstance(array, np.ndarray) else array

        with torch.no_grad():
            return module(*map(tensor, arrays), **{name: tensor(array) for name, array in named.items()})

    return call


def _estimate(estimator: Any, inputs: Arrays, outputs: int) -> Any:
    if len(inputs) != 1:
        raise TypeError("an estimator takes one input: wrap it in a function that puts the model's inputs together")
    (data,) = inputs.values()
    if not hasattr(estimator, "predict"):
        return [estimator.transform(data)]
    results = [estimator.predict(data)]
    if outputs > 1 and hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(data)
        # Classifiers of ONNX name the classes, or leave a matrix; by_name and compare take either.
        results.append(_Probabilities(list(estimator.classes_), np.asarray(probabilities)))
    return results


class _Probabilities:
    """A matrix, one column a class, that may have to be compared with a list of dicts."""

    def __init__(self, classes: list, matrix: np.ndarray):
        self.classes, self.matrix = [getattr(name, "item", lambda name=name: name)() for name in classes], matrix

    def like(self, other: Any) -> Any:
        if isinstance(other, list) and other and isinstance(other[0], dict):
            return [dict(zip(self.classes, row)) for row in self.matrix.tolist()]
        return self.matrix


def by_name(results: Any, names: Sequence[str]) -> dict[str, Any]:
    """Outputs by name: of a mapping those that are named, else in order; those within others count where they must, as an
    exporter of PyTorch's writes them. Raises ValueError where some are missing."""
    if isinstance(results, Mapping) and all(name in results for name in names):
        results = [results[name] for name in names]
    elif isinstance(results, Mapping):
        results = list(results.values())
    elif not isinstance(results, (list, tuple)) or (len(names) == 1 and len(results) != 1):
        results = [results]
    if len(results) < len(names):
        results = list(_flat(results))
    if len(results) < len(names):
        raise ValueError(f"the source gave {len(results)} outputs, the model has {len(names)}: {', '.join(names)}")
    return {name: plain(result) for name, result in zip(names, results)}


def _flat(results: Any) -> Iterator[Any]:
    for result in results:
        if isinstance(result, (list, tuple)):
            yield from _flat(result)
        else:
            yield result


def plain(value: Any) -> Any:
    """Tensors of PyTorch and others as NumPy arrays."""
    if isinstance(value, _Probabilities) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if _is_a(value, "torch", "Tensor"):
        value = value.detach().cpu()
        return Tensor(value.contiguous()).numpy()
    return np.asarray(value)


def fit(expected: Any, actual: Any, is_estimator: bool) -> Any:
    """The source's output in the form that the model's has, where that is a matter of writing it."""
    if isinstance(expected, _Probabilities):
        return expected.like(actual)
    if is_estimator and isinstance(expected, np.ndarray) and getattr(actual, "shape", None) == (*expected.shape, 1):
        return expected[..., None]
    return expected
