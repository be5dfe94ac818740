"""Stands in for the package onnxruntime in code that nobody can edit."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from . import _providers

_HERE = __package__
_replaced: dict[str, ModuleType] = {}


class _Tools:
    """Finds what the installed onnxruntime has in plain Python."""

    NAMES = ("quantization", "tools", "transformers")

    @classmethod
    def find_spec(cls, name: str, path=None, target=None) -> ModuleSpec | None:
        is_one = _is_in(name, "onnxruntime") and name.partition(".")[2] in cls.NAMES
        package = PathFinder.find_spec("onnxruntime") if is_one else None
        return package and PathFinder.find_spec(name, package.submodule_search_locations)


def find_tool(name: str) -> ModuleType | None:
    """What ``from onnxruntime import name`` gives of onnxruntime's own tools, after install()."""
    spec = _Tools.find_spec("onnxruntime." + name) if _providers.installed else None
    return spec and import_module(spec.name)


def install() -> None:
    """``import onnxruntime`` gives this package from now on, in this process.

    Providers that cannot start are then a warning, not an error. Where the package onnxruntime is installed too, its
    quantization, tools and transformers can be imported: they are Python, and run models with Tenon. What
    importlib.metadata says of onnxruntime's distribution stays as it is.
    """
    if _providers.installed:
        return
    _replaced.update({name: module for name, module in sys.modules.items() if _is_in(name, "onnxruntime")})
    for name in _replaced:
        del sys.modules[name]
    for name, module in list(sys.modules.items()):
        if _is_in(name, _HERE):
            sys.modules["onnxruntime" + name[len(_HERE):]] = module
    sys.meta_path.insert(0, _Tools)
    _providers.installed = True


def uninstall() -> None:
    """Undoes install(). Modules that were imported meanwhile keep what they have."""
    if not _providers.installed:
        return
    for name in [name for name in sys.modules if _is_in(name, "onnxruntime")]:
        del sys.modules[name]
    sys.modules.update(_replaced)
    _replaced.clear()
    sys.meta_path.remove(_Tools)
    for name in _Tools.NAMES:
        vars(sys.modules[_HERE]).pop(name, None)
    _providers.installed = False


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")
