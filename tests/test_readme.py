"""What the documentation shows works: each ```sh or ```python block that follows a line `<!-- test -->` is run."""
import re
import subprocess
import sys

import pytest
from conftest import ROOT

PAGES = ["README.md", "CONTRIBUTING.md", "examples/custom_operator/README.md",
         *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(r"^<!-- test -->\n```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
CODE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def blocks(language):
    for page in PAGES:
        text = (ROOT / page).read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            if match[1] == language:
                yield pytest.param(match[2], id=f"{page}:{line}")


@pytest.mark.parametrize("commands", list(blocks("sh")))
def test_commands(tenon, commands):
    commands = re.sub(r"\bbuild/(?=tenon\b|lib|run_)", f"{tenon.parent}/", commands)
    run = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"{commands}\n{run.stdout[-3000:]}{run.stderr[-3000:]}"


@pytest.mark.parametrize("code", list(blocks("python")))
def test_python(code):
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"{code}\n{run.stdout[-3000:]}{run.stderr[-3000:]}"


@pytest.mark.parametrize("page", [*PAGES, "ARCHITECTURE.md", "examples/digits/README.md", "tests/models/README.md"])
def test_links_lead_somewhere(page):
    folder = (ROOT / page).parent
    text = CODE.sub("", (ROOT / page).read_text())
    missing = [link for link in LINK.findall(text) if not (folder / link).exists()]
    assert not missing
