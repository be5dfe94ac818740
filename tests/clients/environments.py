#!/usr/bin/env python3
"""One virtual environment for each file of requirements/, in build/clients: packages that want different versions.

usage: environments.py NAME…

Makes those that are not there, or were made from other requirements, and installs the wheel of this tree into each.
"""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
FOLDER = ROOT / "build" / "clients"
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--require-virtualenv"]


def make_wheel():
    """Tenon's wheel, built in the folder of the development build."""
    folder = FOLDER / "wheel"
    for old in folder.glob("*.whl"):
        old.unlink()
    subprocess.run([sys.executable, *PIP, "wheel", ROOT, "--no-deps", "--no-build-isolation", "--config-settings",
                    f"build-dir={ROOT / 'build'}", "--wheel-dir", folder], check=True, timeout=3600)
    return next(folder.glob("*.whl"))


def make_environment(name, wheel):
    """The environment's Python."""
    folder, requirements = FOLDER / name, REQUIREMENTS / f"{name}.txt"
    python, made_from = folder / "bin" / "python", folder / "made-from.txt"
    if not made_from.exists() or made_from.read_text() != requirements.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, timeout=300)
        subprocess.run([python, *PIP, "install", "--requirement", requirements], check=True, timeout=3600)
        made_from.write_text(requirements.read_text())
    subprocess.run([python, *PIP, "install", "--no-deps", "--force-reinstall", wheel], check=True, timeout=300)
    return python


if __name__ == "__main__":
    built = make_wheel()
    for environment in sys.argv[1:]:
        print(make_environment(environment, built))
