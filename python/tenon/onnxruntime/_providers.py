"""Execution providers by onnxruntime's names."""

from __future__ import annotations

import os
import warnings
from typing import Any, Sequence

from .._tenon import available_providers
from ..errors import ArgumentError

_NAMES = {"cuda": "CUDAExecutionProvider", "cpu": "CPUExecutionProvider"}
CPU = "CPUExecutionProvider"

#: Set by install(): code that nobody can edit goes on without providers that cannot start.
installed = False


def get_all_providers() -> list[str]:
    """Every provider that Tenon may have, the one to prefer first."""
    return list(_NAMES.values())


def get_available_providers() -> list[str]:
    """The providers that can start here, the one to prefer first."""
    usable = available_providers()
    return [long for short, long in _NAMES.items() if short in usable]


def get_device() -> str:
    return "CPU" if get_available_providers() == [CPU] else "GPU"


def goes_on() -> bool:
    """Whether a provider that cannot start is a warning, not an error."""
    setting = os.environ.get("TENON_ORT_FALLBACK", "")
    if setting not in ("", "error", "warn"):
        raise ArgumentError(f"TENON_ORT_FALLBACK is 'error' or 'warn', not '{setting}'", "invalid-argument")
    return installed or setting == "warn"


def normalized(providers: Any, provider_options: Any) -> dict[str, dict[str, str]]:
    """Names with their options, in order. Raises ValueError for what is neither a name nor a name with options."""
    if providers is None:
        return {}
    providers = [providers] if isinstance(providers, str) else providers
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is not None:
        if not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(name, str) for name in providers):
            raise ValueError("with 'provider_options', 'providers' are names")
        if not all(isinstance(options, dict) for options in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        providers = list(zip(providers, provider_options))
    result: dict[str, dict[str, str]] = {}
    for provider in providers:
        named = (provider, {}) if isinstance(provider, str) else provider
        if not (isinstance(named, (tuple, list)) and len(named) == 2 and isinstance(named[0], str)
                and isinstance(named[1], dict)):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        name, options = named
        if name in result:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", UserWarning, stacklevel=3)
            continue
        result[name] = {str(key): str(value) for key, value in options.items()}
    return result
