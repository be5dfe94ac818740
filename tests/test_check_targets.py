"""What `tenon check` says about the oldest onnxruntime that there are facts about, beside what that release does.

Cases are drawn anew, with other seeds than those that scripts/probe_onnxruntime measured. Downloads 6 MB.
"""
import base64
import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.skipif(not os.environ.get("TENON_ALL"), reason="needs a wheel of another onnxruntime; TENON_ALL=1 runs it")

RELEASE = "1.15.0"
SEEDS = range(5000, 5003)


def drawn(cases, newest):
    """(schema, line) of models that are valid, of every operator version that the release may know."""
    for schema in cases.operator_versions(("", "ai.onnx.ml")):
        if schema.since_version > newest[schema.domain] or (schema.domain == "" and schema.since_version < 7):
            continue
        for seed in SEEDS:
            made = cases.draw_case(schema, seed, {}) if schema.name in cases.ALL_RECIPES else None
            if made and cases.is_valid(made[0]) and cases.pairs_of(schema, made[0]) <= cases.pairs(schema):
                model, values = made
                inputs = {info.name: cases.encode(value) for info, value in zip(model.graph.input, values)}
                yield schema, json.dumps({"model": base64.b64encode(model.SerializeToString()).decode(), "inputs": inputs}) + "\n"


def test_verdicts_agree_with_the_oldest_release(tenon, tmp_path):
    sys.path.insert(0, str(ROOT / "scripts" / "probe"))
    import cases
    import releases

    schemas, lines = zip(*drawn(cases, {"": 19, "ai.onnx.ml": 3}))
    cases_file = tmp_path / "cases.jsonl"
    cases_file.write_text("".join(lines))
    folders = [releases.install("onnxruntime", RELEASE, "--no-deps"), releases.install("numpy", "1.26.4")]
    actual = releases.run_cases(folders, "onnxruntime_worker.py", cases_file, tmp_path / "verdicts.tsv")
    wrong = []
    for schema, line, verdict in zip(schemas, lines, actual):
        path = tmp_path / "model.onnx"
        path.write_bytes(base64.b64decode(json.loads(line)["model"]))
        run = subprocess.run([tenon, "check", path, "--json", "--target", f"onnxruntime=={RELEASE}"], capture_output=True, text=True)
        said = not any(f["code"].startswith("target") and f["severity"] == "error" for f in json.loads(run.stdout)["findings"])
        if said != (verdict == "ran"):
            wrong.append((schema.name, schema.since_version, verdict, [f["reason"] for f in json.loads(run.stdout)["findings"]]))
    print(f"{len(lines)} models, {len(wrong)} verdicts differ")
    for entry in wrong:
        print(*entry)
    assert len(lines) > 500
    # What differs are combinations of types and limits on attributes, of which the table knows nothing.
    assert len(wrong) <= 0.05 * len(lines)
