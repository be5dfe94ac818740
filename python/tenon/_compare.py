"""How far two outputs are apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Iterator

import numpy as np


@dataclass(frozen=True)
class Distance:
    """Why two outputs are not the same, and by how much."""

    reason: str
    max_absolute: float | None = None
    max_relative: float | None = None
    index: tuple[int, ...] | None = None
    actual: Any = None
    expected: Any = None


def distance(actual: Any, expected: Any, rtol: float, atol: float) -> Distance | None:
    """None if every element is within ``|actual - expected| <= atol + rtol * |expected|``; integers within ``atol``.

    Numbers are compared as numbers, whatever their types; shapes must be equal. NaN is equal to NaN.
    """
    for place, one, other in _pairs(actual, expected, ""):
        found = one if isinstance(one, Distance) else _array_distance(one, other, rtol, atol)
        if found:
            return replace(found, reason=f"{place}: {found.reason}") if place else found
    return None


def _pairs(actual: Any, expected: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """The arrays of sequences and maps, two by two; a Distance where one has what the other lacks."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if actual.keys() != expected.keys():
            yield place, Distance(f"keys {_few(actual)} instead of {_few(expected)}"), None
            return
        for key in expected:
            yield from _pairs(actual[key], expected[key], f"{place}[{key!r}]")
    elif isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(actual) != len(expected):
            yield place, Distance(f"{len(actual)} items instead of {len(expected)}"), None
            return
        for i, (one, other) in enumerate(zip(actual, expected)):
            yield from _pairs(one, other, f"{place}[{i}]")
    elif (actual is None) != (expected is None):
        yield place, Distance("nothing instead of a value" if actual is None else "a value instead of nothing"), None
    elif actual is not None:
        yield place, np.asarray(actual), np.asarray(expected)


def _few(keys: Any) -> str:
    text = [repr(key) for key in list(keys)[:5]]
    return "[" + ", ".join(text + (["..."] if len(keys) > 5 else [])) + "]"


def _array_distance(actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> Distance | None:
    if actual.shape != expected.shape:
        return Distance(f"shape {list(actual.shape)} instead of {list(expected.shape)}")
    if expected.size == 0:
        return None
    if expected.dtype.kind in "OUST" or actual.dtype.kind in "OUST":
        wrong = np.asarray(actual.astype(str) != expected.astype(str))
        return _at_first(wrong, actual, expected) if wrong.any() else None
    if expected.dtype.kind in "biu" and actual.dtype.kind in "biu":
        if atol < 1:
            wrong = np.asarray(actual != expected)
            return _at_first(wrong, actual, expected) if wrong.any() else None
        rtol = 0
    wide = complex if "c" in (actual.dtype.kind, expected.dtype.kind) else np.float64
    one, other = actual.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        error = np.asarray(np.abs(one - other))
        error[(one == other) | (np.isnan(one) & np.isnan(other))] = 0
        error[np.isnan(error)] = np.inf
        magnitude = np.abs(other)
        wrong = ~(error <= atol + rtol * np.where(np.isfinite(magnitude), magnitude, 0))
        if not wrong.any():
            return None
        relative = np.where(error == 0, 0, np.where(np.isnan(magnitude), np.inf, error / magnitude))
        worst = np.unravel_index(np.argmax(np.where(wrong, error, -1)), error.shape)
        most = float(error.max())
        largest = float(relative.max())
    share = f"{int(wrong.sum())} of {wrong.size} elements differ"
    return Distance(f"{share}, by {most:.3g} at most (relative {largest:.3g})", most, largest, tuple(map(int, worst)),
                    actual[worst].item(), expected[worst].item())


def _at_first(wrong: np.ndarray, actual: np.ndarray, expected: np.ndarray) -> Distance:
    first = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    share = f"{int(wrong.sum())} of {wrong.size} elements differ"
    return Distance(share, None, None, first, actual[first], expected[first])
