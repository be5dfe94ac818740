"""onnxruntime's names for types, formats and modes."""

from __future__ import annotations

import enum

from tenon.errors import ArgumentError


class _Named(enum.Enum):
    def __str__(self) -> str:
        return self.name

    @classmethod
    def from_string(cls, name: str):
        try:
            return cls[name]
        except KeyError:
            raise ValueError(f"{name!r} is not one of {', '.join(cls.__members__)}") from None


class QuantType(_Named):
    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6

    @property
    def tensor_type(self) -> int:
        """ONNX's number of the type."""
        return {"QInt8": 3, "QUInt8": 2, "QFLOAT8E4M3FN": 17, "QInt16": 5, "QUInt16": 4, "QInt4": 22, "QUInt4": 21}[self.name]


class QuantFormat(_Named):
    QOperator = 0
    QDQ = 1


class QuantizationMode(_Named):
    IntegerOps = 0
    QLinearOps = 1


def type_name(kind: QuantType, what: str) -> str:
    """Tenon's name of a type of codes."""
    if kind is QuantType.QFLOAT8E4M3FN:
        raise ArgumentError(f"{what} cannot be QuantType.QFLOAT8E4M3FN: Tenon quantizes to integers only")
    return kind.name[1:].lower()


def format_name(form: QuantFormat) -> str:
    return {QuantFormat.QDQ: "qdq", QuantFormat.QOperator: "qoperator"}[form]
