"""Random nodes against onnxruntime: a few hundred in `make test`, thousands with TENON_ALL=1 (see differential/compare.py)."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPARE = Path(__file__).parent / "differential" / "compare.py"
ROUNDS = [(seed, 5000) for seed in range(1, 5)] if os.environ.get("TENON_ALL") == "1" else [(1, 600)]


@pytest.mark.parametrize("seed, cases", ROUNDS)
def test_equals_onnxruntime(tenon, seed, cases):
    run = subprocess.run([sys.executable, COMPARE, "--binary", tenon, "--seed", str(seed), "--cases", str(cases)],
                         capture_output=True, text=True, timeout=1800)
    assert run.returncode == 0, run.stdout + run.stderr
