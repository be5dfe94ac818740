"""onnxruntime has its backend of the package onnx here; it is tenon.backend."""

from ..backend import TenonBackend, TenonBackendRep, is_compatible, prepare, run_model, run_node, supports_device

__all__ = ["TenonBackend", "TenonBackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
