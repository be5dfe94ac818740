"""Whether a model does what it was exported from."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Iterable, Mapping

import numpy as np

from . import _sources
from ._compare import Distance, distance
from ._tenon import Model, ValueInfo, load
from .errors import Error

#: Sizes that are tried for dimensions: of a batch (the first axis), and of others, odd ones and powers of two.
BATCHES = (1, 2, 7)
LENGTHS = (1, 3, 8, 17)


@dataclass(frozen=True)
class Mismatch:
    """An output that differs, or a run that fails where the source does not."""

    #: The output; empty if the model failed.
    output: str
    #: How far they are apart, or the model's error.
    reason: str
    #: The sizes of the model's named dimensions that it was seen at.
    sizes: Mapping[str, int]
    #: The dimension that it depends on, as far as was seen; empty if it is there from the first.
    dim: str = ""
    #: The smallest size of that dimension with a mismatch, and the largest below it without; if there is none below, the
    #: smallest above.
    starts_at: int | None = None
    agrees_at: int | None = None
    #: All sizes of that dimension at which a mismatch was seen.
    differs_at: tuple[int, ...] = ()
    max_absolute: float | None = None
    max_relative: float | None = None
    #: Where it is worst, and both elements there.
    index: tuple[int, ...] | None = None
    actual: Any = None
    expected: Any = None

    def __str__(self) -> str:
        what = f"output '{self.output}': {self.reason}" if self.output else f"the model fails: {self.reason}"
        lines = [what]
        if self.index is not None:
            lines.append(f"  worst at {list(self.index)}: the model gives {self.actual!r}, the source {self.expected!r}")
        if self.starts_at is not None and self.agrees_at is not None:
            already = " already" if self.agrees_at > self.starts_at else ""
            lines.append(f"  starts at {self.dim} = {self.starts_at}{already}; {self.agrees_at} agrees")
        others = f"; {self.dim} = {', '.join(map(str, self.differs_at))} differ" if len(self.differs_at) > 1 else ""
        lines.append(f"  seen with {_text(self.sizes)}{others}")
        return "\n".join(lines)


@dataclass
class Verification:
    """What :func:`verify` found. True if all outputs agreed at all sizes; its text says what did not, and what to do."""

    mismatches: list[Mismatch] = field(default_factory=list)
    #: Sizes at which every output agreed.
    agreed: list[Mapping[str, int]] = field(default_factory=list)
    #: Sizes that the source itself does not take, with its reason.
    skipped: list[tuple[Mapping[str, int], str]] = field(default_factory=list)
    #: What to run next, where there is a mismatch.
    next_steps: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.agreed) and not self.mismatches

    def __str__(self) -> str:
        lines = [str(mismatch) for mismatch in self.mismatches]
        if self.agreed:
            lines.append("agrees with " + "; ".join(map(_text, self.agreed)))
        elif not self.mismatches:
            lines.append("nothing was compared")
        lines += [f"not compared with {_text(sizes)}: the source does not take it: {why}" for sizes, why in self.skipped]
        lines += [f"next: {step}" for step in self.next_steps]
        return "\n".join(lines)


def verify(source: Any, model: Any, inputs: Any = None, *, rtol: float = 1e-3, atol: float = 1e-5,
           sizes: Mapping[str, Iterable[int]] | None = None, seed: int = 0, **options: Any) -> Verification:
    """Checks that a model gives what it was exported from gives: run it after every export.

    Every output is compared, with the inputs as they are and with the model's dynamic dimensions at other sizes, one
    dimension at a time: 1, 2 and 7 for those that come first (a batch), 1, 3, 8 and 17 for others. One without a name is
    called by an input and its axis, as ``x[0]``. Sizes that the source itself does not take are left out, and named. On a
    mismatch the smallest size that has it is searched for.

    :param source: a PyTorch module, a scikit-learn estimator, a function of arrays, or another model. If its parameters
        have the names of the model's inputs, it gets them by name, else in the model's order.
    :param model: what :func:`load` takes, or a :class:`Model`.
    :param inputs: a mapping, a list in the order of the model's inputs, or the only one; other sizes are made by
        repeating and cutting them. None: random ones.
    :param rtol: with ``atol``: an element may differ by ``atol + rtol * |expected|``, an integer by ``atol``.
    :param sizes: sizes to try by the name of the dimension, instead of those above; ``{}`` tries no others.
    :param seed: of random inputs.
    :param options: of :func:`load`.
    """
    loaded = model if isinstance(model, Model) else load(model, **options)
    names = [info.name for info in loaded.inputs]
    outputs = [info.name for info in loaded.outputs]
    check = _Check(_sources.as_function(source, names, outputs), loaded, rtol, atol,
                   is_estimator=not callable(source) and hasattr(source, "predict"))
    samples = _Samples(loaded, inputs, seed)
    result = Verification()

    base = samples.sizes
    result.mismatches += check.run(samples.at({}), base, result, must_run=True) or []
    differs_from_the_first = bool(result.mismatches)
    for dim, tried in (_sizes_to_try(samples) if sizes is None else sizes).items():
        if dim not in samples.dims:
            raise ValueError(f"the model has no dynamic dimension '{dim}'; it has {sorted(samples.dims) or 'none'}")
        if not differs_from_the_first:
            _sweep(check, samples, dim, sorted(set(tried) - {base[dim]}), result)
    if result.mismatches:
        result.next_steps = _next_steps(result.mismatches, check, samples, model, options)
    return result


def _sizes_to_try(samples: _Samples) -> dict[str, tuple[int, ...]]:
    return {dim: BATCHES if is_batch else LENGTHS for dim, is_batch in samples.dims.items()}


def _sweep(check: _Check, samples: _Samples, dim: str, tried: list[int], result: Verification) -> None:
    """Runs other sizes of one dimension, and finds where the mismatch of each output starts."""
    seen: dict[int, list[Mismatch]] = {samples.sizes[dim]: []}

    def run(size: int, result: Verification) -> bool:
        found = check.run(samples.at({dim: size}), {**samples.sizes, dim: size}, result)
        if found is not None:
            seen[size] = found
        return found is not None

    for size in tried:
        run(size, result)
    for output in dict.fromkeys(mismatch.output for size in sorted(seen) for mismatch in seen[size]):
        while True:
            differs = {size: mismatch for size in sorted(seen) for mismatch in seen[size] if mismatch.output == output}
            start = min(differs)
            agrees = sorted(seen.keys() - differs.keys())
            below = max((size for size in agrees if size < start), default=start)
            if start - below <= 1 or not run((start + below) // 2, Verification()):
                break
        result.mismatches.append(replace(differs[start], dim=dim, starts_at=start, differs_at=tuple(differs),
                                         agrees_at=below if below < start else agrees[0]))


class _Check:
    """Runs both sides on one set of inputs."""

    def __init__(self, source: Any, model: Model, rtol: float, atol: float, is_estimator: bool):
        self.source, self.model, self.rtol, self.atol, self.is_estimator = source, model, rtol, atol, is_estimator

    def run(self, inputs: Mapping[str, Any], sizes: Mapping[str, int], result: Verification,
            model: Model | None = None, must_run: bool = False) -> list[Mismatch] | None:
        """What differs, which is noted in `result` if nothing does. None if the source takes no such inputs."""
        try:
            expected = self.source(inputs)
        except Exception as error:
            if must_run:
                raise
            result.skipped.append((sizes, f"{type(error).__name__}: {error}".splitlines()[0][:200]))
            return None
        try:
            actual = (model or self.model).run(inputs)
        except Error as error:
            return [Mismatch("", str(error), sizes)]
        found = []
        for name, value in actual.items():
            wanted = _sources.fit(expected[name], value, self.is_estimator)
            if apart := distance(value, wanted, self.rtol, self.atol):
                found.append(_mismatch(name, apart, sizes))
        if not found:
            result.agreed.append(sizes)
        return found


def _mismatch(name: str, found: Distance, sizes: Mapping[str, int]) -> Mismatch:
    return Mismatch(name, found.reason, sizes, max_absolute=found.max_absolute, max_relative=found.max_relative,
                    index=found.index, actual=found.actual, expected=found.expected)


class _Samples:
    """Inputs for any sizes of the model's dynamic dimensions."""

    def __init__(self, model: Model, inputs: Any, seed: int):
        self.model, self.seed = model, seed
        self.infos: list[ValueInfo] = model.inputs
        self.given = None if inputs is None else _named(inputs, self.infos)
        #: The sizes that the inputs have, by dimension; whether each comes first somewhere; which axes have it.
        self.sizes: dict[str, int] = {}
        self.dims: dict[str, bool] = {}
        self.axes: dict[str, list[tuple[str, int]]] = {}
        for info in self.infos:
            for axis, size in enumerate(info.shape or ()):
                if size is None or isinstance(size, str) and _is_name(size):
                    self._add(info.name, axis, size)

    def _add(self, name: str, axis: int, dim: str | None) -> None:
        array = None if self.given is None else self.given.get(name)
        if self.given is None:
            size = BATCHES[1] if axis == 0 else LENGTHS[2]
        elif isinstance(array, np.ndarray) and array.ndim > axis:
            size = array.shape[axis]
        else:
            return
        if dim is None:
            # Axes without a name go together where they look alike, as those of ids and their mask do.
            alike = (other for other, axes in self.axes.items() if "[" in other and axes[0][1] == axis
                     and self.sizes[other] == size)
            dim = next(alike, f"{name}[{axis}]")
        self.sizes.setdefault(dim, size)
        self.dims[dim] = self.dims.get(dim, False) or axis == 0
        self.axes.setdefault(dim, []).append((name, axis))

    def at(self, changes: Mapping[str, int]) -> dict[str, Any]:
        sizes = {**self.sizes, **changes}
        if self.given is None:
            return self._random(sizes)
        arrays = dict(self.given)
        for dim, size in changes.items():
            for name, axis in self.axes[dim]:
                array = arrays[name]
                arrays[name] = np.take(array, np.arange(size) % max(array.shape[axis], 1), axis=axis)
        return arrays

    def _random(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        shapes: dict[str, list] = {info.name: list(info.shape) for info in self.infos if info.shape and None in info.shape}
        for dim, axes in self.axes.items():
            for name, axis in axes:
                if name in shapes:
                    shapes[name][axis] = sizes[dim]
        named = {dim: size for dim, size in sizes.items() if "[" not in dim}
        return self.model.random_inputs(dims=named, shapes=shapes, seed=self.seed)


def _is_name(size: str) -> bool:
    """Whether a size is a name, and not an expression over others."""
    return size.replace("_", "a").replace(".", "a").isalnum()


def _named(inputs: Any, infos: list[ValueInfo]) -> dict[str, Any]:
    if not isinstance(inputs, Mapping):
        listed = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(listed) != len(infos):
            raise ValueError(f"{len(listed)} inputs were given, the model has {len(infos)}: "
                             f"{', '.join(info.name for info in infos)}")
        inputs = dict(zip((info.name for info in infos), listed))
    return {name: _sources.plain(value) for name, value in inputs.items()}


def _next_steps(mismatches: list[Mismatch], check: _Check, samples: _Samples, model: Any, options: Mapping) -> list[str]:
    steps = []
    path = os.fspath(model) if isinstance(model, (str, os.PathLike)) else "MODEL.onnx"
    worst = mismatches[0]
    if not isinstance(model, Model):
        plain = load(model, **{**options, "level": "none"})
        changes = {worst.dim: worst.sizes[worst.dim]} if worst.dim else {}
        if check.run(samples.at(changes), worst.sizes, Verification(), plain) == []:
            steps.append(f"without optimising (level='none') it agrees, so a rewrite is to blame: "
                         f"`tenon optimize {path} -o /tmp/out.onnx --level all --verify` names it; please report it")
            return steps
    for mismatch in {mismatch.dim: mismatch for mismatch in mismatches}.values():
        if mismatch.dim and max(mismatch.differs_at) < (mismatch.agrees_at or 0):
            steps.append(f"only small sizes of '{mismatch.dim}' differ: they may be less than the model's windows take; if "
                         f"so, verify the sizes that it is used with: sizes={{'{mismatch.dim}': [...]}}")
        elif mismatch.dim:
            steps.append(f"the export seems to have a size of '{mismatch.dim}' baked in: look for constants with "
                         f"`tenon inspect {path} --text`, and export again with '{mismatch.dim}' declared dynamic")
    if not steps:
        steps.append("it differs from the first size on: check that the source is in inference mode (`module.eval()`), "
                     "takes these inputs in this order, and is of the same weights; then compare the model without "
                     f"optimising, `tenon run {path} --level none`, with another runtime")
    return steps


def _text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "the inputs as they are"
