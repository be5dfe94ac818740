"""What the documentation shows works: each ```sh or ```python block that follows a line `<!-- test -->` is run."""
import re
import subprocess
import sys

import pytest
from conftest import ROOT

PAGES = ["README.md", "CONTRIBUTING.md", "examples/custom_operator/README.md",
         *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(r"^<!-- test -->\n```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
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


def anchors(page):
    """What headings are called in links, as GitHub makes it of them."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, "ARCHITECTURE.md", "examples/digits/README.md", "tests/models/README.md"])
def test_links_lead_somewhere(page):
    page = ROOT / page
    missing = []
    for link, anchor in LINK.findall(CODE.sub("", page.read_text())):
        target = page.parent / link if link else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            missing.append(f"{link}#{anchor}")
    assert not missing
