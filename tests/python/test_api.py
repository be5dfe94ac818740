"""Loading, running and asking models, and the errors of each."""
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper
from small_models import add, heavy, linear, linear_reference, model, value

ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "examples/digits/digits.onnx"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "linear.onnx"
    path.write_bytes(linear())
    return path


def test_models_come_from_paths_bytes_and_protos(file):
    x = np.ones((1, 3), np.float32)
    for source in (file, str(file), os.fspath(file), linear(), bytearray(linear()), memoryview(linear()), onnx.load(file)):
        np.testing.assert_array_equal(tenon.load(source).run(x=x)["y"], linear_reference(x)[0])
    assert tenon.load(file).name == str(file) and tenon.load(linear()).name == ""
    with pytest.raises(tenon.ArgumentError, match="a model is a path, bytes, an onnx.ModelProto or an OnnxModel, not int"):
        tenon.load(3)


def test_external_data_of_a_model_in_memory_is_in_the_folder(tmp_path):
    proto = onnx.load_from_string(linear())
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    data = (tmp_path / "m.onnx").read_bytes()
    assert tenon.load(data, folder=tmp_path).run(x=[[0, 0, 0]])["y"].tolist() == [[1, -1]]
    with pytest.raises(tenon.FileError, match="missing-external-data"):
        tenon.load(data, folder=tmp_path / "elsewhere")


def test_inputs_are_a_mapping_keywords_or_in_order():
    both = tenon.load(add())
    left, right = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    for outputs in (both.run({"left": left, "right": right}), both.run(left=left, right=right), both(left, right),
                    both({"left": left}, right=right), both(left, right=right)):
        assert list(outputs) == ["sum"] and outputs["sum"].tolist() == [[3] * 3] * 2


def test_outputs_can_be_chosen():
    loaded = tenon.load(linear())
    x = np.ones((1, 3), np.float32)
    assert list(loaded.run(x=x)) == ["y", "z"]
    assert list(loaded.run({"x": x}, outputs=["z"])) == ["z"]
    assert list(loaded.run({"x": x}, outputs="y")) == ["y"]


@pytest.mark.parametrize("arguments, code, tensor, text", [
    (dict(left=[[1.0]]), "missing-input", "", r"'right' tensor\(float\) \[batch, width\]"),
    (dict(left=[[1.0]], right=[[1.0]], rihgt=1), "unknown-name", "", "no input 'rihgt'"),
    (dict(left=np.ones((1, 1)), right=[[1.0]]), "type-mismatch", "left", "the model takes float, got double"),
    (dict(left=[1.0], right=[[1.0]]), "shape-mismatch", "left", r"takes rank 2 \[batch, width\], got rank 1 \[1\]"),
    (dict(left=[[1.0]], right=[[1.0], [2.0]]), "shape-mismatch", "right", "size 'batch' is 1 on axis 0 of 'left' but 2"),
    (dict(left=[["a"]], right=[[1.0]]), "type-mismatch", "left", "the model takes float, got string"),
    (dict(left=None, right=[[1.0]]), "type-mismatch", "left", "got None"),
    (dict(left=object(), right=[[1.0]]), "type-mismatch", "left", "which object cannot become")])
def test_errors_of_inputs_name_the_input_what_was_expected_and_what_came(arguments, code, tensor, text):
    with pytest.raises(tenon.InputError, match=text) as caught:
        tenon.load(add()).run(**arguments)
    error = caught.value
    assert (error.code, error.tensor, error.node) == (code, tensor, "") and isinstance(error, ValueError)
    assert error.message in str(error)


def test_an_input_given_twice_and_too_many():
    with pytest.raises(tenon.ArgumentError, match="given twice") as caught:
        tenon.load(add()).run({"left": [[1.0]]}, left=[[1.0]], right=[[1.0]])
    assert caught.value.tensor == "left"
    with pytest.raises(tenon.InputError, match="the model has 2 inputs, 3 were given"):
        tenon.load(add())(1, 2, 3)


def test_a_failing_node_is_named_and_the_model_stays_usable():
    gather = tenon.load(model([helper.make_node("Gather", ["x", "i"], ["y"], name="pick")],
                              [value("x", TensorProto.FLOAT, ["n"]), value("i", TensorProto.INT64, ["m"])],
                              [value("y", TensorProto.FLOAT, ["m"])]))
    with pytest.raises(tenon.RunError) as caught:
        gather.run(x=[1, 2], i=[5])
    assert caught.value.code == "invalid-value" and "Gather 'pick' (node 0)" in caught.value.node
    assert gather.run(x=[1, 2], i=[1])["y"].tolist() == [2]


@pytest.mark.parametrize("data, kind, code", [
    (b"not a model", tenon.FileError, "not-onnx"),
    (linear()[:-20], tenon.FileError, "truncated"),
    (model([helper.make_node("Nonsense", ["x"], ["y"])], [value("x", 1, [1])], [value("y", 1, [1])]), tenon.ModelError,
     "unknown-operator"),
    (model([helper.make_node("Add", ["x", "gone"], ["y"])], [value("x", 1, [1])], [value("y", 1, [1])]), tenon.ModelError,
     "undefined-name")])
def test_errors_of_models(data, kind, code):
    with pytest.raises(kind) as caught:
        tenon.load(data)
    assert caught.value.code == code


def test_a_missing_file_is_an_os_error():
    with pytest.raises(OSError, match="cannot open 'none.onnx'") as caught:
        tenon.load("none.onnx")
    assert caught.value.code == "missing-file" and isinstance(caught.value, tenon.FileError)


@pytest.mark.parametrize("options, kind, text", [
    (dict(level="most"), tenon.ArgumentError, "most"),
    (dict(providers=["gpu"]), tenon.UnavailableError, "gpu"),
    (dict(disabled_passes=["no-such-pass"]), tenon.ArgumentError, "no-such-pass"),
    (dict(config={"no.such.key": "1"}), tenon.ArgumentError, "no.such.key"),
    (dict(custom_operator_libraries=["none.so"]), tenon.Error, "none.so")])
def test_errors_of_options(options, kind, text):
    with pytest.raises(kind, match=text):
        tenon.load(linear(), **options)


@pytest.mark.parametrize("call", [
    lambda: tenon.load(linear(), thread=3),
    lambda: tenon.load(linear(), providers=[1]),
    lambda: tenon.load(linear(), level=3),
    lambda: tenon.load(linear(), keep=5),
    lambda: tenon.load(linear(), custom_operator_libraries=[1]),
    lambda: tenon.load(linear()).run({1: [[1, 2, 3]]}),
    lambda: tenon.load(linear()).run({"x": [[1, 2, 3]]}, outputs=[1]),
    lambda: tenon.load(linear()).run({"x": [[1, 2, 3]]}, into={1: None}),
    lambda: tenon.load(linear()).placement_report({1: (1, 2)}),
    lambda: tenon.load(linear()).placement_report({"x": (1, None)}),
    lambda: tenon.load(linear()).bench({"x": [[1, 2, 3]]}, runs="many")])
def test_arguments_of_other_types_are_type_errors(call):
    with pytest.raises(TypeError):
        call()


def test_every_code_has_a_class():
    page = (ROOT / "docs/errors.md").read_text()
    codes = {line.split("`")[1] for line in page.splitlines() if line.startswith("### `")}
    assert codes == set(tenon.errors.CLASSES)


def test_errors_can_be_pickled():
    with pytest.raises(tenon.Error) as caught:
        tenon.load("none.onnx")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is tenon.FileError and vars(copy) == vars(caught.value) and str(copy) == str(caught.value)


def test_options_reach_the_session():
    assert tenon.load(linear(), threads=3).threads == 3
    assert tenon.load(linear(), config={"tenon.threads": "4"}).threads == 4
    assert tenon.load(linear(), memory_limit=12345678).memory().limit == 12345678
    gelu = model([helper.make_node("Gelu", ["x"], ["y"])], [value("x", 1, [4])], [value("y", 1, [4])])
    assert [node.op_type for node in tenon.load(gelu, level="none").placement()] == ["Gelu"]
    assert "Erf" in [node.op_type for node in tenon.load(gelu, decompose="Gelu", level="none").placement()]
    twice = model([helper.make_node("Identity", ["x"], ["i"]), helper.make_node("Neg", ["i"], ["y"])],
                  [value("x", 1, [4])], [value("y", 1, [4])])
    assert [rewrite.pass_name for rewrite in tenon.load(twice).rewrites] == ["identity"]
    assert not tenon.load(twice, disabled_passes="identity").rewrites


def test_low_memory_holds_nothing_between_runs():
    x = np.zeros((192, 192), np.float32)
    held = {}
    for memory in ("normal", "low"):
        model = tenon.load(heavy(), memory=memory, parallel_branches=True)
        model.run(x=x)
        held[memory] = model.memory().in_use + model.memory().cached
    assert held["low"] == 0 < held["normal"]
    with pytest.raises(tenon.ArgumentError, match="tenon.memory"):
        tenon.load(heavy(), memory="lowest")


def test_a_memory_limit_is_an_error_of_the_run():
    with pytest.raises(tenon.RunError) as caught:
        tenon.load(heavy(), memory_limit=1000).run(x=np.zeros((192, 192), np.float32))
    assert caught.value.code == "out-of-memory"


def test_the_log_hears_what_a_user_should_know():
    wrong = model([helper.make_node("Neg", ["x"], ["y"])], [value("x", 1, [4])], [value("y", 1, [5])])
    heard = []
    tenon.load(wrong, log=heard.append)
    assert any("y" in line for line in heard)

    def fail(line):
        raise KeyError(line)
    with pytest.raises(KeyError):
        tenon.load(wrong, log=fail)


def test_what_a_model_says_about_itself():
    loaded = tenon.load(DIGITS)
    (picture,), digits = loaded.inputs, loaded.outputs[0]
    assert (picture.name, picture.type, picture.dtype, picture.shape) == ("picture", "tensor(uint8)", "uint8", ("height", 80))
    assert digits.name == "digits" and digits.dtype == "int64"
    assert loaded.info.producer_name == "tenon" and ("", 18) in [(d if d != "ai.onnx" else "", v) for d, v in loaded.info.opsets]
    assert "digits.onnx" in repr(loaded) and "picture -> digits" in repr(loaded)


def test_placement_and_memory():
    loaded = tenon.load(DIGITS)
    nodes = loaded.placement()
    assert nodes and all(node.provider == "cpu" and node.kernel for node in nodes)
    report = loaded.placement_report({"picture": (32, 80)})
    assert report.providers[0].nodes == len(nodes) and int(report.providers[0].flops) > 0
    assert json.loads(json.dumps(report.as_dict()))["nodes"][0]["op_type"] == nodes[0].op_type
    before = loaded.memory()
    outputs = loaded.run(loaded.random_inputs(dims={"height": 3200}))
    assert loaded.memory().peak > before.peak and loaded.memory().weights == before.weights
    del outputs
    loaded.trim()
    assert loaded.memory().cached == 0


def test_random_inputs_follow_seed_and_sizes():
    loaded = tenon.load(DIGITS)
    one, same, other = (loaded.random_inputs(dims={"height": 32}, seed=seed)["picture"] for seed in (1, 1, 2))
    assert one.shape == (32, 80) and (one == same).all() and (one != other).any()
    assert loaded.random_inputs(shapes={"picture": (16, 80)})["picture"].shape == (16, 80)
    with pytest.raises(tenon.InputError, match="width"):
        loaded.random_inputs(dims={"width": 3})


def test_bench_and_profile(tmp_path):
    loaded = tenon.load(linear())
    inputs = {"x": np.ones((2, 3), np.float32)}
    result = loaded.bench(inputs, runs=5, concurrency=2)
    assert result.latency.runs == 5 and 0 < result.latency.min <= result.latency.max and result.throughput > 0
    profile = loaded.profile(inputs, runs=2)
    assert len(profile.runs) == 2 and profile.nodes and profile.operators[0].calls >= 2
    assert profile.runs[0].steps[0].duration_ns >= 0
    profile.save(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text()) == json.loads(profile.trace())


def test_inspect_optimize_and_verify_optimization(file, tmp_path):
    summary = tenon.inspect(file)
    assert summary.nodes == 3 and summary.parameters == 8 and summary.dynamic_dims == ["batch"] and not summary.problem
    assert "MatMul(x, w)" in tenon.model_text(file)
    optimized = tenon.optimize(file, level="all", disabled_passes=["dead-code"])
    assert optimized.nodes_before == 3
    optimized.save(tmp_path / "out.onnx")
    x = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(tenon.load(tmp_path / "out.onnx").run(x=x)["z"], linear_reference(x)[1])
    assert tenon.verify_optimization(file, {"x": x}, level="all") == []
    assert any(p.name == "identity" and p.exact and p.level == "basic" for p in tenon.optimization_passes())
    assert any(op.name == "Conv" and op.providers == ["cpu", "cuda"] and 22 in op.versions for op in tenon.operators())
    assert tenon.doctor(measure=False)["Tenon"]["version"] == tenon.__version__


def test_difference():
    assert tenon.difference(np.ones(3), np.ones(3)) == ""
    assert "2" in tenon.difference(np.array([1.0, 2.0]), np.array([1.0, 1.0]))


def test_a_run_is_cancelled():
    cancellation = tenon.Cancellation()
    cancellation.cancel()
    assert cancellation.cancelled
    with pytest.raises(tenon.RunError) as caught:
        tenon.load(linear()).run({"x": np.ones((1, 3), np.float32)}, cancel=cancellation)
    assert caught.value.code == "cancelled"


def test_custom_operators():
    library = ROOT / "build/libexample_operators.so"
    if not library.exists():
        pytest.skip("the examples are not built")
    loaded = tenon.load(ROOT / "examples/custom_operator/model.onnx", custom_operator_libraries=library)
    assert loaded.run(loaded.random_inputs(shapes={loaded.inputs[0].name: (2, 3)}))


def test_the_interpreter_goes_on_while_a_model_runs():
    loaded = tenon.load(heavy(depth=400), threads=1)
    x = np.eye(192, dtype=np.float32)
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    ticks.clear()
    loaded.run(x=x)
    done.set()
    thread.join()
    assert len(ticks) >= 3


def test_runs_of_one_model_go_on_side_by_side():
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["still"]), helper.make_node("Add", ["sum", "one"], ["next"])],
                             "body", [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
                                      value("sum", TensorProto.FLOAT, [1])],
                             [value("still", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, [1])],
                             [helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])])
    count = tenon.load(model([helper.make_node("Loop", ["times", "", "start"], ["y"], body=body)],
                             [value("times", TensorProto.INT64, []), value("start", TensorProto.FLOAT, [1])],
                             [value("y", TensorProto.FLOAT, [1])]))
    cancellation, codes = tenon.Cancellation(), []

    def count_for_ever():
        try:
            count.run({"times": 2**62, "start": [0.0]}, cancel=cancellation)
        except tenon.RunError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=count_for_ever) for _ in range(7)]
    for thread in threads:
        thread.start()
    # Returns only if the others neither hold the interpreter nor the model.
    assert count.run(times=10, start=[0.0])["y"].tolist() == [10]
    assert not codes
    cancellation.cancel()
    for thread in threads:
        thread.join()
    assert codes == ["cancelled"] * 7


def test_many_threads_run_one_model():
    loaded = tenon.load(linear())
    wrong = []

    def work(seed):
        numbers = np.random.default_rng(seed)
        for _ in range(200):
            x = numbers.standard_normal((int(numbers.integers(1, 9)), 3)).astype(np.float32)
            outputs = loaded.run(x=x)
            y, z = linear_reference(x)
            if not (np.allclose(outputs["y"], y, atol=1e-5) and np.allclose(outputs["z"], z, atol=1e-5)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_command_comes_with_the_package():
    version = subprocess.run([sys.executable, "-m", "tenon", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == tenon.__version__
    wrong = subprocess.run([sys.executable, "-m", "tenon", "inspect", "none.onnx"], capture_output=True, text=True)
    assert wrong.returncode == 4 and "missing-file" in wrong.stderr


def test_importing_is_light():
    code = ("import sys, time; start = time.perf_counter(); import tenon; end = time.perf_counter(); "
            "print(round(1000 * (end - start), 1), sorted({'numpy', 'dataclasses', 'typing'} & set(sys.modules)))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    milliseconds, modules = run.stdout.strip().split(" ", 1)
    print(f"import tenon took {milliseconds} ms")
    assert modules == "[]"
