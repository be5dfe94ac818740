"""What was measured of a session's runs, in the form in which onnxruntime writes it."""

from __future__ import annotations

import datetime
import json
import os
import re
import time
from typing import Any

from .._tenon import ProfiledRun
from ._nodes import name_and_index, provider_name

_VALUE = re.compile(r"(?P<type>\S+) \[(?P<sizes>[^\]]*)\]$")


class Recorder:
    """Collects the runs of one session, on the clock of the steps."""

    def __init__(self, prefix: str):
        self.prefix = prefix
        self.start = time.monotonic_ns()
        self.wall_start = time.time_ns()
        self.runs: list[ProfiledRun] = []
        self.events: list[dict[str, Any]] = []

    def session_event(self, name: str, start: int, end: int) -> None:
        self.events.append(self._event("Session", name, start, end - start, {}))

    def write(self) -> str:
        """Writes a Chrome trace beside ``prefix``, and returns its path."""
        events = list(self.events)
        for run in self.runs:
            events += [self._step(step) for step in run.steps]
            events.append(self._event("Session", "SequentialExecutor::Execute", run.start_ns, run.duration_ns, {}))
            events.append(self._event("Session", "model_run", run.start_ns, run.duration_ns, {}))
        now = datetime.datetime.now()
        path = f"{self.prefix}_{now:%Y-%m-%d_%H-%M-%S}_{now.microsecond // 1000:03d}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(events, file)
        return path

    def _event(self, category: str, name: str, start: int, duration: int, args: dict[str, Any]) -> dict[str, Any]:
        return {"cat": category, "pid": os.getpid(), "tid": os.getpid(), "dur": duration // 1000,
                "ts": (start - self.start) // 1000, "ph": "X", "name": name, "args": args}

    def _step(self, step: Any) -> dict[str, Any]:
        name, index = name_and_index(step.node)
        return self._event("Node", f"{name or f'{step.op_type}_{index}'}_kernel_time", step.start_ns, step.duration_ns, {
            "op_name": step.op_type, "provider": provider_name(step.provider), "node_index": index, "node": step.node,
            "kernel": step.kernel, "flops": step.flops, "bytes": step.bytes,
            "input_type_shape": [_typed(text) for text in step.inputs],
            "output_type_shape": [_typed(text) for text in step.outputs]})


def _typed(text: str) -> dict[str, Any]:
    found = _VALUE.match(text)
    if not found:
        return {text: []}
    return {found["type"]: [int(size) for size in found["sizes"].split(",") if size.strip()]}
