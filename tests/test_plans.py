"""Shape arithmetic is done when a plan is made: at run time, not one node of it executes."""
import json
import os
import subprocess

import model_cases
import pytest

MODELS = {"minilm_l6": {"batch": 2, "seq": 32}, "llama_tiny_gqa_kv_dynamo": {"batch": 1, "seq": 3, "past": 20, "total": 23}}
if os.environ.get("TENON_ALL") == "1":
    MODELS |= {name: {"batch": 2, "seq": 32} for name in ("bert_base", "bert_base_dynamo")}

# Operators that exporters write around sizes. Those that also work on data are told apart by what they give.
ALWAYS = {"Shape", "Size", "ConstantOfShape", "Range", "Reshape", "Squeeze", "Unsqueeze"}


def is_shape_arithmetic(step):
    return step["op"] in ALWAYS or all(output.startswith(("int64", "int32")) for output in step["outputs"])


@pytest.mark.parametrize("level", ["none", "all"])
@pytest.mark.parametrize("name", MODELS)
def test_no_shape_arithmetic_runs(tenon, tmp_path, name, level):
    trace = tmp_path / "trace.json"
    command = [tenon, "profile", model_cases.make(name), "--level", level, "--runs", "1", "-o", trace]
    for dim, size in MODELS[name].items():
        command += ["--dim", f"{dim}={size}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    steps = [event["args"] for event in events if "op" in event.get("args", {})]
    assert any(step["op"] in ("MatMul", "FusedMatMul") for step in steps)
    assert [step["node"] for step in steps if is_shape_arithmetic(step)] == []
