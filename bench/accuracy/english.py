"""English sentences that are on every machine: those that the documentation of Python's standard library begins with."""
import ast
import random
import sysconfig
from pathlib import Path

WORDS = range(5, 21)


def sentences(count, seed=0):
    """So many of them, all different."""
    found = set()
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                first = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
                if len(first.split()) in WORDS and first.isascii() and first.endswith("."):
                    found.add(first)
    return random.Random(seed).sample(sorted(found), count)
