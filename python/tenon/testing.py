"""What tests are written with."""

from __future__ import annotations

from typing import Any

from ._verify import verify

__all__ = ["assert_same"]


def assert_same(source: Any, model: Any, inputs: Any = None, **options: Any) -> None:
    """Fails with the text of :func:`tenon.verify` unless the model gives what the source gives. Options are the same.

    >>> def test_export():
    ...     tenon.testing.assert_same(module, "model.onnx", {"x": x})
    """
    __tracebackhide__ = True
    result = verify(source, model, inputs, **options)
    if not result:
        raise AssertionError(str(result))
