"""``python -m tenon``: the command ``tenon`` that was installed with the package."""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib import metadata
from pathlib import Path


def command() -> Path:
    """The path of the command. Raises FileNotFoundError where it is gone."""
    candidates = [Path(sysconfig.get_path("scripts"), "tenon")]
    try:
        files = metadata.files("tenon") or []
        candidates += [Path(file.locate()).resolve() for file in files if file.name == "tenon" and file.parent.name == "bin"]
    except metadata.PackageNotFoundError:
        pass
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"the command tenon is not where it was installed: {', '.join(map(str, candidates))}")


def main() -> None:
    path = command()
    os.execv(path, [str(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
