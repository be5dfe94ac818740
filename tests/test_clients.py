"""Programs that use onnxruntime, as they are, with Tenon in its place. With TENON_ALL=1 (`make test-clients`)."""
import os
import re
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "clients"))
import environments  # noqa: E402
import run  # noqa: E402


@pytest.fixture(scope="module")
def wheel():
    return environments.make_wheel()


@pytest.mark.skipif(os.environ.get("TENON_ALL") != "1", reason="downloads 600 MB; make test-clients runs it")
@pytest.mark.parametrize("name", run.NAMES)
def test_a_client_says_the_same(name, wheel):
    count, problems = run.compare(name, wheel)
    assert count and not problems, "\n".join(problems[:50])


@pytest.mark.parametrize("actual, problem", [
    ({"text": "a", "scores": [1.0, 2.00001]}, None),
    ({"text": "b", "scores": [1.0, 2.0]}, "text: 'a' became 'b'"),
    ({"text": "a", "scores": [1.0, 2.001]}, "scores[1]: 2.0 became 2.001"),
    ({"text": "a", "scores": [1.0]}, "scores: 2 values became 1, or are nested differently"),
    ({"text": "a", "scores": [1, 2.0]}, None),
    ({"text": "a", "scores": [1.0, "2"]}, "scores[1]: 2.0 became '2'"),
    ({"text": "a"}, "['text', 'scores'] became ['text']"),
])
def test_differences_are_found(actual, problem):
    assert run.differences({"text": "a", "scores": [1.0, 2.0]}, actual) == ([problem] if problem else [])


def test_the_page_of_clients_has_the_versions_that_run():
    rows = dict(re.findall(r"^\| `([\w-]+)` \| ([\d.]+) \|", (ROOT / "docs/clients.md").read_text(), re.MULTILINE))
    pinned = {}
    for name in [*run.NAMES, "ray"]:
        package, version = (environments.REQUIREMENTS / f"{name}.txt").read_text().split()[0].split("==")
        pinned[package.split("[")[0]] = version
    assert rows == pinned
