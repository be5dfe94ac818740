"""Runs one program of programs/ in this Python, with onnxruntime or with Tenon in its place.

usage: call.py onnxruntime|tenon NAME OUTPUT

Writes what the program's `results` returns to OUTPUT, as JSON: names to texts, numbers, lists of them, and arrays.
"""
import json
import runpy
import sys
from pathlib import Path

import numpy

LIBRARIES = {"onnxruntime": "onnxruntime_pybind11_state", "tenon": "/_tenon."}


def as_json(value):
    """Arrays and NumPy's scalars as lists and numbers."""
    return value.tolist()


def main():
    runtime, name, output = sys.argv[1:]
    if runtime == "tenon":
        import tenon.onnxruntime
        tenon.onnxruntime.install()
    numpy.random.seed(0)  # some programs draw noise
    results = runpy.run_path(str(Path(__file__).resolve().parent / "programs" / f"{name}.py"))["results"]()

    # What computed: the library that is loaded, and not the other one.
    mapped = Path("/proc/self/maps").read_text()
    loaded = [key for key, library in LIBRARIES.items() if library in mapped]
    assert loaded == [runtime], f"{loaded} were loaded where {runtime} should compute"
    Path(output).write_text(json.dumps(results, default=as_json))


main()
