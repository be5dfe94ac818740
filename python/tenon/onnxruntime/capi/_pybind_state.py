"""The same names as the extension module's, as onnxruntime has them here too."""

from .onnxruntime_pybind11_state import *  # noqa: F403
