"""Random nodes against onnxruntime: a few hundred in `make test`, thousands with TENON_ALL=1 (see differential/compare.py); and
whether the recipes leave anything out."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "differential"
ROUNDS = [(seed, 5000) for seed in range(1, 5)] if os.environ.get("TENON_ALL") == "1" else [(1, 600)]


@pytest.mark.parametrize("seed, cases", ROUNDS)
def test_equals_onnxruntime(tenon, seed, cases):
    run = subprocess.run([sys.executable, FOLDER / "compare.py", "--binary", tenon, "--seed", str(seed), "--cases", str(cases)],
                         capture_output=True, text=True, timeout=1800)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def gaps():
    sys.path.insert(0, str(FOLDER))
    try:
        import gaps
        yield gaps
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("check", ["without_recipe", "never_drawn", "needless"])
def test_recipes_leave_nothing_out(gaps, check):
    assert getattr(gaps, check)() == []
