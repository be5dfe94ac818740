"""Stands in for the package onnxruntime in code that nobody can edit."""

from __future__ import annotations

import sys
from types import ModuleType

from . import _providers

_HERE = __package__
_replaced: dict[str, ModuleType] = {}


def install() -> None:
    """``import onnxruntime`` gives this package from now on, in this process.

    Providers that cannot start are then a warning, not an error. What importlib.metadata says of onnxruntime's
    distribution stays as it is.
    """
    if _providers.installed:
        return
    _replaced.update({name: module for name, module in sys.modules.items() if _is_in(name, "onnxruntime")})
    for name in _replaced:
        del sys.modules[name]
    for name, module in list(sys.modules.items()):
        if _is_in(name, _HERE):
            sys.modules["onnxruntime" + name[len(_HERE):]] = module
    _providers.installed = True


def uninstall() -> None:
    """Undoes install(). Modules that were imported meanwhile keep what they have."""
    if not _providers.installed:
        return
    for name in [name for name in sys.modules if _is_in(name, "onnxruntime")]:
        del sys.modules[name]
    sys.modules.update(_replaced)
    _replaced.clear()
    _providers.installed = False


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")
