"""Where calibration data comes from, and how ranges follow from it, by onnxruntime's names."""

from __future__ import annotations

import abc
import enum


class CalibrationMethod(enum.Enum):
    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(metaclass=abc.ABCMeta):
    """Gives the inputs of one run after the other. Whatever has `get_next` is one."""

    @classmethod
    def __subclasshook__(cls, subclass):
        return callable(getattr(subclass, "get_next", None)) or NotImplemented

    @abc.abstractmethod
    def get_next(self) -> dict:
        """{input: array}, or None after the last."""
        raise NotImplementedError

    def __iter__(self):
        return self

    def __next__(self) -> dict:
        if (feed := self.get_next()) is None:
            raise StopIteration
        return feed

    def __len__(self) -> int:
        raise NotImplementedError

    def set_range(self, start_index: int, end_index: int) -> None:
        raise NotImplementedError


def feeds(reader: CalibrationDataReader):
    """What a reader has, one after the other."""
    while (feed := reader.get_next()) is not None:
        yield feed
