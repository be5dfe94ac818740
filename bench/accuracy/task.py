"""What is measured: a model with trained weights, data to calibrate with, and other data to judge by."""
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "accuracy"
BUILD.mkdir(parents=True, exist_ok=True)
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "quantized")]  # package_models, by_onnxruntime

# The module of each: its make() returns a Task.
TASKS = {"digits": "digits", "magika": "file_types", "rapidocr": "printed_text", "MiniLM": "sentence_meaning"}

Feed = dict[str, np.ndarray]


@dataclass
class Task:
    name: str
    metric: str
    model: Path
    calibration: list[Feed]
    # Given a function that runs the model on a feed and returns its outputs: how well that does; 1 is best.
    evaluate: Callable[[Callable[[Feed], list[np.ndarray]]], float]
    onnxruntime_per_channel: bool = True  # whether its quantizer can give every channel of weights a scale


def make(name):
    return importlib.import_module(TASKS[name]).make()
