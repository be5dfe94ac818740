"""The ONNX backend suite, and the comparison with its lists."""
import stat
import sys

import conformance
import onnx_suite
import pytest


def test_onnx_backend_suite(tenon):
    outcome = conformance.run(tenon)
    print(outcome.report())
    assert outcome.ok, "\n" + outcome.report()


def outcome(results, known="abc", expected=()):
    return conformance.Outcome({name: (result, "why") for name, result in results.items()}, list(known), set(expected))


@pytest.mark.parametrize("name, made, ok, says", [
    ("all as listed", outcome({"a": "passed", "b": "failed"}, expected="a"), True, "1 passed, 1 failed, 0 skipped"),
    ("listed and failing", outcome({"a": "failed"}, expected="a"), False, "a is listed in expected.txt and failed: why"),
    ("listed and skipped", outcome({"a": "skipped"}, expected="a"), False, "a is listed in expected.txt and skipped"),
    ("passing, not listed", outcome({"a": "passed"}), True, "1 cases pass and are not listed: a"),
    ("no such case", outcome({"a": "passed"}, expected="ax"), False, "x is listed, and the suite has no such case"),
])
def test_outcome(name, made, ok, says):
    assert made.ok == ok, name
    assert says in made.report()


def test_a_crash_is_laid_at_the_case_that_caused_it(tmp_path):
    command = tmp_path / "tenon"
    command.write_text(f"#!{sys.executable}\n" + """
import json, os, sys
names = [a for a in sys.argv[2:] if not a.startswith("--")]
if "bad" in names: os.abort()
print(json.dumps({"cases": [{"name": n, "result": "passed"} for n in names]}))
""")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    results = conformance.run_cases(str(command), tmp_path, ["a", "b", "bad", "c", "d"])
    assert {name for name, (result, _) in results.items() if result == "passed"} == {"a", "b", "c", "d"}
    assert "ended with status -6" in results["bad"][1]


def test_another_comparison_needs_a_reason(tmp_path):
    file = tmp_path / "comparisons.txt"
    file.write_text('# comment\nnode/test_x: rtol=1e-2 nonzero="input": why: it is so\n')
    assert onnx_suite.read_comparisons(file) == {"node/test_x": {"rtol": 1e-2, "nonzero": "input"}}
    file.write_text("node/test_x: rtol=1e-2\n")
    with pytest.raises(ValueError, match="no reason"):
        onnx_suite.read_comparisons(file)
    file.write_text("node/test_x: tolerance=1e-2: why\n")
    with pytest.raises(ValueError, match="unknown settings: tolerance"):
        onnx_suite.read_comparisons(file)


def test_update_keeps_the_comment_and_sorts(tmp_path):
    file = tmp_path / "expected.txt"
    file.write_text("# kept\nb\n")
    conformance.write_expected(file, {"b", "a"})
    assert file.read_text() == "# kept\na\nb\n"
