"""bench/operators.py has a case for every operator that both engines run."""
import sys
from pathlib import Path

import pytest

pytest.importorskip("tenon")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from operator_cases import CASES, NOT_TIMED  # noqa: E402
from operators import operators_without_case  # noqa: E402


def test_every_operator_has_a_case():
    assert operators_without_case() == []


def test_cases_are_told_apart_by_their_names():
    labels = [case.label for case in CASES]
    assert len(labels) == len(set(labels))


def test_reasons_are_needed():
    assert not {case.operator for case in CASES} & set(NOT_TIMED)
