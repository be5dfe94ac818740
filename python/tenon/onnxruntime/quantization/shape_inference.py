"""onnxruntime's preparation of models for its quantizer."""

from __future__ import annotations

import os
import tempfile

import tenon
from tenon.errors import ArgumentError

_INFERENCE = "types and shapes are always inferred, and symbolic sizes followed"
#: Arguments that can only be what they are when not given.
_FIXED = {"skip_onnx_shape": (False, _INFERENCE), "auto_merge": (False, _INFERENCE), "guess_output_rank": (False, _INFERENCE),
          "int_max": (2**31 - 1, _INFERENCE), "verbose": (0, "tenon.optimize returns what it did")}


def _optimized(source) -> tenon.OnnxModel:
    with tempfile.TemporaryDirectory() as folder:
        given, made = os.path.join(folder, "given.onnx"), os.path.join(folder, "made.onnx")
        if not isinstance(source, (str, os.PathLike)):
            tenon.read_onnx(source).save(given)
            source = given
        tenon.optimize(source, level="basic").save(made)
        return tenon.read_onnx(tenon.read_onnx(made).to_bytes())


def quant_pre_process(input_model=None, output_model_path=None, skip_optimization=False, skip_onnx_shape=False,
                      skip_symbolic_shape=False, auto_merge=False, int_max=2**31 - 1, guess_output_rank=False, verbose=0,
                      save_as_external_data=False, all_tensors_to_one_file=False, external_data_location=None,
                      external_data_size_threshold=1024, **deprecated) -> None:
    """Writes the optimised model. Tenon's quantizer does not need that: it optimises by itself."""
    arguments = locals()
    for name, (value, reason) in _FIXED.items():
        if arguments[name] != value:
            raise ArgumentError(f"{name} cannot be {arguments[name]!r}: {reason}")
    source = input_model if input_model is not None else deprecated.pop("input_model_path", None)
    if deprecated:
        raise ArgumentError(f"quant_pre_process has no argument {sorted(deprecated)[0]!r}")
    if source is None or output_model_path is None:
        raise ArgumentError("input_model and output_model_path are needed")
    model = tenon.read_onnx(source) if skip_optimization else _optimized(source)
    model.save(output_model_path, external_data=save_as_external_data, external_from=external_data_size_threshold,
               data_file=external_data_location or "")
