"""What the Python tests share. TENON_BINARY names another command than build/tenon."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

# What the command's exit codes mean.
FINE, CHECK_FAILED, BAD_USAGE, BROKEN, MISSING = range(5)


@pytest.fixture(scope="session")
def tenon():
    """The path of the command under test."""
    binary = Path(os.environ.get("TENON_BINARY", ROOT / "build" / "tenon")).resolve()
    if not binary.exists():
        pytest.fail(f"{binary} does not exist: run `make build` first", pytrace=False)
    return binary


@pytest.fixture
def call(tenon):
    """Runs the command, which must end with exit code `code`; returns what it printed."""
    def call(*arguments, code=FINE):
        run = subprocess.run([tenon, *map(str, arguments)], capture_output=True, text=True)
        assert run.returncode == code, run.stdout + run.stderr
        return run
    return call
