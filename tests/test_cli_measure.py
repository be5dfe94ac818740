"""The commands that say what a model costs: where nodes run, how fast it is, where the time goes."""
import json

import numpy as np
import onnx
import pytest
from conftest import BAD_USAGE, BROKEN, MISSING
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture
def model(tmp_path):
    """y = relu(x @ w) for x of 4 columns, and the places in it that are not 0."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], "product"), helper.make_node("Relu", ["h"], ["y"], "positive"),
             helper.make_node("NonZero", ["y"], ["places"], "find")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
                               helper.make_tensor_value_info("places", TensorProto.INT64, None)],
                              [numpy_helper.from_array(np.ones((4, 8), np.float32), "w")])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_placement_has_totals_first(call, model):
    text = call("inspect", model, "--placement", "--dim", "rows=1000", "--level", "basic").stdout
    assert text[text.index("placement: "):] == """\
placement: 3 nodes; FLOPs and bytes are estimates
  provider  nodes   FLOPs   bytes
  cpu           3  72.0 k  112 kB  without 1 unknown

  provider  kernel    FLOPs    bytes  node
  cpu       MatMul   64.0 k  48.1 kB  MatMul 'product' (node 0)
  cpu       Relu     8.00 k  64.0 kB  Relu 'positive' (node 1)
  cpu       NonZero       ?        ?  NonZero 'find' (node 2)
"""


def test_placement_is_symbolic_until_sizes_are_given(call, model):
    placement = ["--placement", "--level", "basic"]
    seen = json.loads(call("inspect", model, *placement, "--json").stdout)["placement"]
    assert seen["providers"] == [{"provider": "cpu", "nodes": 3, "flops": "72*rows", "bytes": "112*rows + 128",
                                  "nodes_of_unknown_shape": 1}]
    assert seen["nodes"][0] == {"node": "MatMul 'product' (node 0)", "op_type": "MatMul", "provider": "cpu",
                                "kernel": "MatMul", "declined": [], "flops": "64*rows", "bytes": "48*rows + 128"}
    assert seen["nodes"][2]["flops"] is None
    assert seen["copies"] == {"count": 0, "bytes": 0, "of_unknown_shape": 0, "tensors": []}
    assert "(--dim and --shape make them numbers)" in call("inspect", model, "--placement").stdout
    for command in (["inspect", "--dim", "rows=3"], ["inspect", "--shape", "x=3x4"], ["run", "--shape", "x=3x4"]):
        seen = json.loads(call(command[0], model, *placement, "--json", *command[1:]).stdout)["placement"]
        assert seen["providers"][0]["flops"] == 3 * 72 and seen["providers"][0]["bytes"] == 3 * 112 + 128
    assert "--dim names 'row'" in call("inspect", model, "--placement", "--dim", "row=3", code=BROKEN).stderr
    assert "axis 1 must be 4, got 5" in call("inspect", model, "--placement", "--shape", "x=3x5", code=BROKEN).stderr


def test_placement_with_a_branch_that_does_not_fit(call, tmp_path):
    """The branch for 3 columns does not fit the 4 that are there."""
    def branch(name, columns):
        weights = numpy_helper.from_array(np.ones((columns, 2), np.float32), f"w{columns}")
        return helper.make_graph([helper.make_node("MatMul", ["x", f"w{columns}"], [f"{name}_y"])], name, [],
                                 [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)], [weights])
    nodes = [helper.make_node("If", ["three"], ["y"], then_branch=branch("then", 3), else_branch=branch("else", 4))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", "columns"]),
                                           helper.make_tensor_value_info("three", TensorProto.BOOL, [])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    path, no = tmp_path / "m.onnx", tmp_path / "no.npy"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.save(no, np.array(False))
    for command in (["run", "--input", f"three={no}"], ["inspect"]):
        run = call(command[0], path, *command[1:], "--shape", "x=1x4", "--placement", "--json")
        nodes = json.loads(run.stdout)["placement"]["nodes"]
        assert {node["node"].split(" > ")[1]: node["flops"] for node in nodes if node["op_type"] == "MatMul"} == {
            "then_branch": "12*rows", "else_branch": 1 * 4 * 2 * 2}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_bench(call, model, concurrency):
    options = ["--runs", 20, "--concurrency", concurrency, "--threads", 2, "--level", "basic", "--dim", "rows=5"]
    seen = json.loads(call("bench", model, *options, "--json").stdout)
    assert seen["runs"] == 20 and seen["concurrency"] == concurrency
    assert seen["threads"] == 2 and seen["level"] == "basic" and seen["providers"] == ["cpu"]
    latency = [seen["latency_seconds"][name] for name in ("min", "p50", "p90", "p95", "p99", "max")]
    assert latency == sorted(latency) and latency[0] > 0
    assert latency[0] <= seen["latency_seconds"]["mean"] <= latency[-1]
    assert seen["runs_per_second"] == pytest.approx(20 / seen["seconds"])
    assert seen["load_seconds"] > 0 and seen["first_run_seconds"] > 0
    # Packed, a matrix is as wide as whole tiles.
    assert 4 * 8 * 4 <= seen["memory"]["weights"] <= 4 * 64 * 4 and seen["memory"]["peak"] > 0
    assert "profile" not in seen
    text = call("bench", model, *options).stdout
    for title in ("model ", "session     cpu, 2 threads, level basic", "load ", "first run ", "runs        20 in ", "throughput ",
                  "latency ", f"memory      {seen['memory']['weights']} B of weights"):
        assert f"\n{title}" in "\n" + text


def test_bench_by_time(call, model):
    assert json.loads(call("bench", model, "--seconds", 0.05, "--json").stdout)["seconds"] >= 0.05
    assert json.loads(call("bench", model, "--seconds", 60, "--runs", 2, "--json").stdout)["runs"] == 2


def test_bench_in_fast_precision(call, model):
    seen = json.loads(call("bench", model, "--runs", 2, "--precision", "fast", "--json").stdout)
    assert seen["precision"] == "fast" and seen["rounded_nodes"] in (0, 1)
    assert 0 <= seen["error"] < 0.02
    text = call("bench", model, "--runs", 2, "--precision", "fast").stdout
    assert f"precision   fast: {seen['rounded_nodes']} of 2 nodes in bfloat16; outputs differ by " in text
    assert "\nprecision " not in call("bench", model, "--runs", 2).stdout
    assert call("bench", model, "--precision", "half", code=2).stderr


def check_profile(profile, runs):
    assert profile["runs"] == runs
    assert {op["op_type"]: op["calls"] for op in profile["operators"]} == {"MatMul": runs, "Relu": runs, "NonZero": runs}
    for rows in (profile["operators"], profile["nodes"]):
        seconds = [row["seconds"] for row in rows]
        assert seconds == sorted(seconds, reverse=True)
        assert sum(seconds) == pytest.approx(profile["step_seconds"]) and profile["step_seconds"] <= profile["seconds"]
        assert sum(row["share"] for row in rows) == pytest.approx(1)
    product = next(row for row in profile["nodes"] if row["op_type"] == "MatMul")
    assert product["node"] == "MatMul 'product' (node 0)" and product["provider"] == "cpu" and product["kernel"] == "MatMul"
    assert product["inputs"] == ["float [3, 4]", "float [4, 8]"] and product["outputs"] == ["float [3, 8]"]
    assert product["flops"] == runs * 2 * 3 * 4 * 8 and product["bytes"] == runs * 4 * (12 + 32 + 24)


def test_bench_operators(call, model):
    options = ["--runs", 5, "--operators", "--shape", "x=3x4", "--level", "none"]
    check_profile(json.loads(call("bench", model, *options, "--json").stdout)["profile"], 10)
    text = call("bench", model, *options).stdout
    assert "operators, per run: mean of 10 profiled runs" in text and "slowest nodes, 3 of 3" in text
    assert "MatMul 'product' (node 0)" in text


def test_profile(call, model, tmp_path):
    trace = tmp_path / "trace.json"
    options = ["--shape", "x=3x4", "--level", "none"]
    check_profile(json.loads(call("profile", model, "-o", trace, "--runs", 4, *options, "--json").stdout), 4)
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in events] == [name for run in range(4)
                                                   for name in (f"run {run + 1}", "MatMul", "Relu", "NonZero")]
    for i in range(0, len(events), 4):
        run, *steps = events[i:i + 4]
        assert sum(step["dur"] for step in steps) <= run["dur"]
        for before, step in zip(steps, steps[1:]):
            assert before["ts"] + before["dur"] <= step["ts"] + 1e-3
        assert run["ts"] <= steps[0]["ts"] and steps[-1]["ts"] + steps[-1]["dur"] <= run["ts"] + run["dur"] + 1e-3
    args = events[1]["args"]
    assert args["node"] == "MatMul 'product' (node 0)" and args["op"] == args["kernel"] == "MatMul"
    assert args["inputs"] == ["float [3, 4]", "float [4, 8]"]
    assert args["GFLOP/s"] == pytest.approx(192 / events[1]["dur"] / 1e3)
    text = call("profile", model, "-o", trace, *options).stdout
    assert "mean of 3 profiled runs" in text and f"wrote {trace}" in text
    assert "wrote" not in call("profile", model, *options).stdout


def test_bad_usage(call, model, tmp_path):
    for options in (["--runs", 0], ["--seconds", 0], ["--seconds", -1], ["--warmup", -1], ["--concurrency", 0]):
        call("bench", model, *options, code=BAD_USAGE)
    call("profile", model, "--runs", 0, code=BAD_USAGE)
    assert "write-failed" in call("profile", model, "-o", tmp_path / "no" / "trace.json", code=MISSING).stderr
    assert "shape-mismatch" in call("bench", model, "--shape", "x=1x1", "--concurrency", 2, code=BROKEN).stderr
    for command in ("bench", "profile"):
        assert json.loads(call(command, "none.onnx", "--json", code=MISSING).stdout)["error"]["code"] == "missing-file"


def test_branches_side_by_side(call, tmp_path):
    path, trace = tmp_path / "model.onnx", tmp_path / "trace.json"
    weights = [numpy_helper.from_array(np.full((128, 128), i, np.float32), f"w{i}") for i in range(4)]
    nodes = [helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(4)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 128])],
                              [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [64, 128]) for i in range(4)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)

    def rows(*flags):
        call("profile", path, "-o", trace, "--runs", 1, *flags)
        return [event["tid"] for event in json.loads(trace.read_text())["traceEvents"] if event["name"] == "MatMul"]

    assert rows("--threads", 2) == [1] * 4
    assert rows("--threads", 1, "--parallel-branches") == [1] * 4
    for flags in (["--parallel-branches"], ["--config", "tenon.parallel_branches=1"]):
        seen = rows("--threads", 2, *flags)
        assert len(seen) == 4 and set(seen) <= {2, 3}


def test_low_memory(call, tmp_path):
    """A table that Gather reads as it is, and MatMul packed."""
    path = tmp_path / "model.onnx"
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("Transpose", ["table"], ["turned"]),
             helper.make_node("MatMul", ["rows", "turned"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, [1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 256])],
                              [numpy_helper.from_array(np.ones((256, 64), np.float32), "table")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)

    def weights(*flags):
        return json.loads(call("bench", path, "--runs", 1, "--json", *flags).stdout)["memory"]["weights"]

    assert weights() >= 2 * 256 * 64 * 4
    assert weights("--memory", "low") == weights("--config", "tenon.memory=low") == 256 * 64 * 4
    assert "--memory" in call("bench", path, "--memory", "none", code=BAD_USAGE).stderr
