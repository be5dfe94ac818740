"""What the Python tests share. TENON_BINARY names another command than build/tenon."""
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))


@pytest.fixture(scope="session")
def tenon():
    """The path of the command under test."""
    binary = Path(os.environ.get("TENON_BINARY", ROOT / "build" / "tenon")).resolve()
    if not binary.exists():
        pytest.fail(f"{binary} does not exist: run `make build` first", pytrace=False)
    return binary
