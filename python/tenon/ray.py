"""Models in Ray: batches of a dataset (Scorer), and requests (deployment). Needs the extra ``tenon[ray]``.

>>> import ray, tenon.ray
>>> rows = ray.data.read_parquet("rows.parquet")
>>> scored = rows.map_batches(tenon.ray.Scorer, fn_constructor_args=("model.onnx",), concurrency=4)
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import ray

import tenon

from ._arrays import to_numpy, to_tensor

Batch = dict[str, np.ndarray]


class Scorer:
    """A model as what ``ray.data.Dataset.map_batches`` calls: one session in each worker.

    The model has to be at ``path`` on every node. Workers map the file, so what kernels read in it as it is, is in memory
    once per node; what they pack for themselves is each worker's own. A session uses as many threads as its worker has CPUs,
    unless ``threads`` is given; the other ``options`` are those of tenon.load. Rows are the first dimension of each input and
    output, so that must be dynamic in the model.

    inputs: which columns the model gets: nothing for those with the inputs' names; a mapping from inputs to columns, or to
        several columns that become one more dimension; or a function from the batch to inputs.
    outputs: which columns are added: nothing for all outputs with their names; names; or a mapping from outputs to columns.
    keep: the columns of the batch that stay; nothing for all.
    cast: columns become the input's type as NumPy's astype does. Otherwise another type is an error.
    """

    def __init__(self, path: str | os.PathLike,
                 inputs: Mapping[str, str | Sequence[str]] | Callable[[Batch], Mapping] | None = None,
                 outputs: Mapping[str, str] | Sequence[str] | None = None, keep: Sequence[str] | None = None,
                 cast: bool = False, **options):
        options.setdefault("threads", _assigned_cpus())
        self.model = tenon.load(os.fspath(path), **options)
        self._inputs = {i.name: i.name for i in self.model.inputs} if inputs is None else inputs
        if outputs is None:
            outputs = [o.name for o in self.model.outputs]
        self._columns = dict(outputs) if isinstance(outputs, Mapping) else {name: name for name in outputs}
        self._keep, self._cast = keep, cast

    def __call__(self, batch: Batch) -> Batch:
        rows = len(next(iter(batch.values())))
        outputs = self.model.run(self._feeds(batch), outputs=list(self._columns))
        _check_rows(outputs, rows)
        kept = batch if self._keep is None else {name: batch[name] for name in self._keep}
        return {**kept, **{column: outputs[name] for name, column in self._columns.items()}}

    def _feeds(self, batch: Batch) -> Mapping[str, np.ndarray]:
        if callable(self._inputs):
            return self._inputs(batch)
        feeds = {name: _gather(batch, columns) for name, columns in self._inputs.items()}
        if self._cast:
            feeds = {i.name: feeds[i.name].astype(i.dtype, copy=False) for i in self.model.inputs if i.name in feeds}
        return feeds


def deployment(path: str | os.PathLike, max_batch_size: int = 32, batch_wait_timeout_s: float = 0.01,
               deployment_options: Mapping | None = None, **options):
    """The model as an application for ``ray.serve.run``. Requests that wait at the same time are run as one batch.

    A request is one row of each input, without the first dimension: by a handle, ``handle.remote({"x": row})``, or as JSON
    over HTTP. What comes back is one row of each output, over HTTP as JSON. What is wrong with a request fails no other
    one. ``deployment_options`` are those of ``serve.deployment`` (replicas, resources); ``options`` those of tenon.load.
    """
    from ray import serve
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    @serve.deployment(**{"name": "tenon", "max_ongoing_requests": 2 * max_batch_size, **(deployment_options or {})})
    class Server:
        def __init__(self):
            self.model = tenon.load(os.fspath(path), **{"threads": _assigned_cpus(), **options})
            self.types = {i.name: i.dtype for i in self.model.inputs}

        async def __call__(self, request):
            if not isinstance(request, Request):
                return await self.run_row(request)
            try:
                outputs = await self.run_row(await request.json())
            except (TypeError, ValueError) as error:
                return JSONResponse({"error": str(error)}, status_code=400)
            return JSONResponse({name: np.asarray(value).tolist() for name, value in outputs.items()})

        async def run_row(self, request):
            row = {name: value if isinstance(value, np.ndarray) else to_numpy(to_tensor(value, self.types.get(name) or ""))
                   for name, value in dict(request).items()}
            result = await self.run_batch(row)
            if isinstance(result, Exception):
                raise result
            return result

        @serve.batch(max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s)
        async def run_batch(self, rows):
            return await asyncio.to_thread(_run_rows, self.model, rows)

    return Server.bind()


def _run_rows(model: tenon.Model, rows: Sequence[Mapping[str, np.ndarray]]) -> list[dict | Exception]:
    """The outputs for each row, or what is wrong with it. Rows that can be one batch are."""
    results: list = [None] * len(rows)
    groups: dict[tuple, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(tuple((name, row[name].dtype, row[name].shape) for name in sorted(row)), []).append(number)
    for numbers in groups.values():
        try:
            outputs = model.run({name: np.stack([rows[n][name] for n in numbers]) for name in rows[numbers[0]]})
            _check_rows(outputs, len(numbers))
            for place, number in enumerate(numbers):
                results[number] = {name: value[place] for name, value in outputs.items()}
        except tenon.Error as error:
            for number in numbers:  # one row must not fail the others
                results[number] = error if len(numbers) == 1 else _run_rows(model, [rows[number]])[0]
    return results


def _check_rows(outputs: Mapping[str, np.ndarray], rows: int) -> None:
    for name, value in outputs.items():
        if np.ndim(value) == 0 or len(value) != rows:
            text = f"output '{name}' has shape {np.shape(value)} for {rows} rows, so it is no column"
            raise tenon.ArgumentError(text, code="invalid-argument", tensor=name)


def _gather(batch: Batch, columns: str | Sequence[str]) -> np.ndarray:
    if not isinstance(columns, str):
        return np.stack([_gather(batch, column) for column in columns], axis=1)
    if columns not in batch:
        text = f"the batch has no column '{columns}'; it has {', '.join(map(repr, batch))}"
        raise tenon.InputError(text, code="missing-input", tensor=columns)
    column = batch[columns]
    # Ray gives lists as an array of arrays.
    return np.stack(column) if column.dtype == object and len(column) and isinstance(column[0], np.ndarray) else column


def _assigned_cpus() -> int:
    """How many CPUs Ray gave to this actor; 1 outside of one."""
    context = ray.get_runtime_context() if ray.is_initialized() else None
    return max(1, int(context.get_assigned_resources().get("CPU", 1))) if context and context.get_actor_id() else 1
