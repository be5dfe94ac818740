"""Pages that list what the code has list all of it."""
import json
import re
import subprocess
import sys

from conftest import ROOT


def test_the_page_of_errors_lists_every_code():
    page = (ROOT / "docs/errors.md").read_text()
    code = (ROOT / "src/base/error.cc").read_text()
    names = dict(re.findall(r'case ErrorCode::(\w+):\s*return "([a-z-]+)";', code))
    assert names and all(name == word.replace("_", "-") for word, name in names.items())
    assert sorted(re.findall(r"^### `([a-z-]+)`$", page, re.MULTILINE)) == sorted(names.values())


def test_every_error_has_an_example():
    page = (ROOT / "docs/errors.md").read_text()
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        name = section.split("`")[1]
        examples = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        assert examples and all(example.startswith(name) for example in examples), name


def test_the_table_of_operators_is_what_its_script_makes(tenon):
    run = subprocess.run([sys.executable, ROOT / "scripts/make_operator_table", "--print", "--binary", tenon],
                         check=True, capture_output=True, text=True)
    assert run.stdout == (ROOT / "docs/operators.md").read_text(), "run .venv/bin/python scripts/make_operator_table"


def test_the_page_of_checks_lists_every_rule(tenon):
    listed = subprocess.run([tenon, "check", "--list-rules", "--json"], check=True, capture_output=True, text=True).stdout
    rows = [f"| `{rule['code']}` | {rule['severity']} | {rule['finds']} |" for rule in json.loads(listed)]
    page = (ROOT / "docs/check.md").read_text().splitlines()
    start = page.index("| rule | severity | finds |") + 2
    assert page[start:start + len(rows) + 1] == [*rows, ""]
