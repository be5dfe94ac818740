"""SessionOptions, RunOptions, providers and profiles of tenon.onnxruntime beside onnxruntime's."""
import copy
import json
import pathlib
import pickle
import re
import warnings

import numpy as np
import onnx
import pytest
import tenon
import tenon.onnxruntime as ours
from onnx import TensorProto as T
from onnx import helper as h
from side_by_side import assert_same, onnxruntime
from small_models import heavy, linear, model, value

X = np.arange(6, dtype=np.float32).reshape(2, 3)
OPTIONS = [name for name, member in vars(ours.SessionOptions).items() if name[0] != "_" and not callable(member)]
RUN_OPTIONS = ["log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "terminate"]


def session(ort, data=None, providers=None, **settings):
    options = ort.SessionOptions()
    for name, setting in settings.items():
        setattr(options, name, setting)
    return ort.InferenceSession(data or linear(), options, providers=providers)


@pytest.mark.parametrize("name", OPTIONS)
def test_defaults(name):
    assert_same(lambda ort: getattr(ort.SessionOptions(), name))


@pytest.mark.parametrize("name", RUN_OPTIONS)
def test_defaults_of_runs(name):
    assert_same(lambda ort: getattr(ort.RunOptions(), name))


@pytest.mark.parametrize("setting", [0, 1, -1, True, 2.0, "2", "", None, b"x", pathlib.Path("x"), np.int64(3)], ids=repr)
@pytest.mark.parametrize("name", OPTIONS)
def test_settings(name, setting):
    def behaviour(ort):
        options = ort.SessionOptions()
        setattr(options, name, setting)
        return getattr(options, name)
    assert_same(behaviour)


@pytest.mark.parametrize("kind, name", [("SessionOptions", "foo"), ("RunOptions", "foo")])
def test_unknown_attributes(kind, name):
    assert_same(lambda ort: setattr(getattr(ort, kind)(), name, 1))
    assert_same(lambda ort: getattr(getattr(ort, kind)(), name))


@pytest.mark.parametrize("level", list(ours.GraphOptimizationLevel.__members__))
def test_levels(level):
    def load(ort):
        return session(ort, graph_optimization_level=getattr(ort.GraphOptimizationLevel, level))
    assert_same(lambda ort: load(ort).run(["y"], {"x": X}))
    assert bool(load(ours).tenon.rewrites) == (level != "ORT_DISABLE_ALL")


def test_threads():
    assert session(ours, intra_op_num_threads=3).tenon.threads == 3
    shared = session(ours).tenon.threads
    assert shared == tenon.load(linear()).threads
    assert session(ours, intra_op_num_threads=shared + 1, use_per_session_threads=False).tenon.threads == shared


def test_every_option_is_accepted_by_a_session():
    parallel = session(ours, execution_mode=ours.ExecutionMode.ORT_PARALLEL, inter_op_num_threads=2, logid="a",
                       execution_order=ours.ExecutionOrder.PRIORITY_BASED, enable_mem_pattern=False, enable_mem_reuse=False,
                       enable_cpu_mem_arena=False, use_deterministic_compute=True, log_severity_level=3)
    assert parallel.run(["y"], {"x": X})[0].shape == (2, 2)


def test_a_session_has_its_own_options():
    def behaviour(ort):
        options = ort.SessionOptions()
        loaded = ort.InferenceSession(linear(), options)
        options.logid = "later"
        return loaded.get_session_options().logid, loaded.get_session_options() is options
    assert_same(behaviour)
    assert_same(lambda ort: ort.InferenceSession(linear(), sess_options=3))


@pytest.mark.parametrize("call", [copy.copy, copy.deepcopy, pickle.dumps])
def test_options_cannot_be_copied(call):
    assert_same(lambda ort: call(ort.SessionOptions()))


def test_config_entries():
    def behaviour(ort, *calls):
        options = ort.SessionOptions()
        for key, entry in calls:
            options.add_session_config_entry(key, entry)
        return options.get_session_config_entry("session.set_denormal_as_zero")
    assert_same(lambda ort: behaviour(ort, ("session.set_denormal_as_zero", "1"), ("session.set_denormal_as_zero", "0")))
    assert_same(lambda ort: behaviour(ort))
    for bad in (("", "1"), ("k" * 1025, "1"), ("k", 1), (1, "k")):
        assert_same(lambda ort: behaviour(ort, bad))
    assert_same(lambda ort: ort.RunOptions().get_run_config_entry("x"))

    def of_runs(ort):
        options = ort.RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        return options.get_run_config_entry("memory.enable_memory_arena_shrinkage")
    assert_same(of_runs)


def test_unknown_config_keys_warn_with_the_nearest():
    with pytest.warns(UserWarning, match="it is ignored; did you mean 'session.set_denormal_as_zero'"):
        ours.SessionOptions().add_session_config_entry("session.set_denormal_as_zeros", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.SessionOptions().add_session_config_entry("session.disable_prepacking", "1")


def test_config_entries_are_honoured():
    tiny = np.full((1, 3), 1e-40, np.float32)
    options = ours.SessionOptions()
    assert ours.InferenceSession(linear(), options).tenon is not None
    options.add_session_config_entry("tenon.threads", "2")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert ours.InferenceSession(linear(), options).tenon.threads == 2
    options.add_session_config_entry("session.set_denormal_as_zero", "yes")
    with pytest.raises(ours.capi.onnxruntime_pybind11_state.InvalidArgument, match="takes 0 or 1, got 'yes'"):
        ours.InferenceSession(linear(), options).run(None, {"x": tiny})


def test_quantized_islands_can_stay_floats():
    nodes = [h.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), h.make_node("DequantizeLinear", ["q", "s", "z"], ["a"]),
             h.make_node("DequantizeLinear", ["w", "s", "z"], ["b"]), h.make_node("MatMul", ["a", "b"], ["p"]),
             h.make_node("QuantizeLinear", ["p", "s", "z"], ["r"]), h.make_node("DequantizeLinear", ["r", "s", "z"], ["y"])]
    data = model(nodes, [value("x", T.FLOAT, [2, 2])], [value("y", T.FLOAT, [2, 2])],
                 {"s": np.array(0.5, np.float32), "z": np.array(128, np.uint8), "w": np.full((2, 2), 130, np.uint8)})

    def passes(setting):
        options = ours.SessionOptions()
        options.add_session_config_entry("session.disable_quant_qdq", setting)
        return [rewrite.pass_name for rewrite in ours.InferenceSession(data, options).tenon.rewrites]
    assert "qdq" in passes("0") and "qdq" not in passes("1")


def test_memory_is_given_back_after_runs_that_say_so():
    loaded, options = session(ours, heavy(2, 512)), ours.RunOptions()
    x = np.ones((512, 512), np.float32)
    loaded.run(None, {"x": x})
    assert loaded.tenon.memory().cached + loaded.tenon.memory().in_use > 0
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    outputs = loaded.run(None, {"x": x}, options)
    assert loaded.tenon.memory().cached == 0 and loaded.tenon.memory().in_use == outputs[0].nbytes


def test_assignment_of_nodes():
    def behaviour(ort, record="1"):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.record_ep_graph_assignment_info", record)
        parts = ort.InferenceSession(linear(), options).get_provider_graph_assignment_info()
        return sorted((part.ep_name, node.name, node.op_type, node.domain) for part in parts for node in part.get_nodes())
    assert_same(behaviour)
    assert_same(lambda ort: behaviour(ort, "0"))


def test_disabled_optimizers():
    name = tenon.load(linear()).rewrites[0].pass_name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = ours.InferenceSession(linear(), disabled_optimizers=[name])
    assert name not in [rewrite.pass_name for rewrite in loaded.tenon.rewrites]
    options = ours.SessionOptions()
    options.add_session_config_entry("optimization.disable_specified_optimizers", "MatMulAddFusion")
    with pytest.warns(UserWarning, match="no optimisation pass 'MatMulAddFusion'"):
        ours.InferenceSession(linear(), options)


def test_free_dimensions():
    def behaviour(ort, name="batch", size=4, rows=4):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name(name, size)
        loaded = ort.InferenceSession(linear(), options)
        shapes = [arg.shape for arg in loaded.get_inputs() + loaded.get_outputs()]
        return shapes, loaded.run(["y"], {"x": np.ones((rows, 3), np.float32)})
    assert_same(behaviour)
    assert_same(lambda ort: behaviour(ort, rows=1))
    assert_same(lambda ort: behaviour(ort, name="nope"))
    assert_same(lambda ort: behaviour(ort, size="x"))

    proto = onnx.load_from_string(linear())
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"

    def denoted(ort):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_denotation("DATA_BATCH", 5)
        return ort.InferenceSession(proto.SerializeToString(), options).get_inputs()[0].shape
    assert_same(denoted)


def given(ort, name, array, external=False, source=None):
    options = ort.SessionOptions()
    tensor = ort.OrtValue.ortvalue_from_numpy(array)
    if external:
        options.add_external_initializers([name], [tensor])
    else:
        options.add_initializer(name, tensor)
    return ort.InferenceSession(source or linear(), options).run(["y"], {"x": X})


def test_initializers_can_be_given(tmp_path):
    weights = np.full((3, 2), 2, np.float32)
    assert_same(lambda ort: given(ort, "w", weights))
    assert_same(lambda ort: given(ort, "nope", weights))
    assert_same(lambda ort: given(ort, "nope", weights, external=True))
    assert_same(lambda ort: given(ort, "w", weights.astype(np.float64)))
    onnx.save(onnx.load_from_string(linear()), tmp_path / "m.onnx", save_as_external_data=True, location="m.data",
              size_threshold=0)
    assert_same(lambda ort: given(ort, "w", weights, external=True, source=tmp_path / "m.onnx"))
    (tmp_path / "m.data").unlink()

    def all_given(ort):
        options = ort.SessionOptions()
        options.add_external_initializers(["w", "b"], [ort.OrtValue.ortvalue_from_numpy(weights),
                                                       ort.OrtValue.ortvalue_from_numpy(np.ones(2, np.float32))])
        return ort.InferenceSession(tmp_path / "m.onnx", options).run(["y"], {"x": X})
    assert_same(all_given)

    def twice(ort):
        options = ort.SessionOptions()
        options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(weights))
        options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(weights))
    assert_same(twice)
    assert_same(lambda ort: ort.SessionOptions().add_initializer("w", weights))
    assert_same(lambda ort: ort.SessionOptions().add_external_initializers(["w", "b"], []))


@pytest.mark.parametrize("from_bytes", [False, True])
def test_external_data_is_given_as_files_in_memory(tmp_path, from_bytes):
    onnx.save(onnx.load_from_string(linear()), tmp_path / "m.onnx", save_as_external_data=True, location="m.data",
              size_threshold=0)
    data = (tmp_path / "m.data").read_bytes()
    (tmp_path / "m.data").unlink()

    def behaviour(ort, names=("m.data",), buffers=(data,), lengths=(len(data),)):
        options = ort.SessionOptions()
        options.add_external_initializers_from_files_in_memory(list(names), list(buffers), list(lengths))
        source = (tmp_path / "m.onnx").read_bytes() if from_bytes else tmp_path / "m.onnx"
        return ort.InferenceSession(source, options).run(["y"], {"x": X})
    assert_same(behaviour)
    assert_same(lambda ort: behaviour(ort, buffers=[bytearray(data)]))
    assert_same(lambda ort: behaviour(ort, lengths=[]))
    with pytest.raises(RuntimeError, match="not in '../m.data'"):
        behaviour(ours, names=["../m.data"])


def test_loading_is_cancelled():
    def behaviour(ort):
        options = ort.SessionOptions()
        options.set_load_cancellation_flag(True)
        ort.InferenceSession(linear(), options)
    assert_same(behaviour)


def test_external_data_of_bytes_has_a_folder(tmp_path):
    onnx.save(onnx.load_from_string(linear()), tmp_path / "m.onnx", save_as_external_data=True, location="m.data",
              size_threshold=0)

    def behaviour(ort):
        options = ort.SessionOptions()
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
        return ort.InferenceSession((tmp_path / "m.onnx").read_bytes(), options).run(["y"], {"x": X})
    assert_same(behaviour)


def test_custom_operator_libraries(tmp_path):
    (tmp_path / "junk.so").write_bytes(b"junk")
    assert_same(lambda ort: ort.SessionOptions().register_custom_ops_library(str(tmp_path / "none.so")))
    assert_same(lambda ort: ort.SessionOptions().register_custom_ops_library(str(tmp_path / "junk.so")))
    (tmp_path / "ort.so").write_bytes(b"\x7fELF..RegisterCustomOps..")
    with pytest.raises(tenon.Error, match="custom operators for onnxruntime"):
        ours.SessionOptions().register_custom_ops_library(str(tmp_path / "ort.so"))


@pytest.mark.parametrize("from_bytes", [False, True])
def test_the_optimised_model_is_written(tmp_path, from_bytes):
    (tmp_path / "m.onnx").write_bytes(linear())

    def behaviour(ort):
        target = tmp_path / f"{ort.__name__}.onnx"
        session(ort, linear() if from_bytes else str(tmp_path / "m.onnx"), optimized_model_filepath=str(target))
        onnx.checker.check_model(onnx.load(target))
        return len(onnx.load(target).graph.node), ort.InferenceSession(target).run(None, {"x": X})
    assert_same(behaviour)


@pytest.mark.parametrize("providers", [None, [], ["CPUExecutionProvider"], [("CPUExecutionProvider", {"a": 1})]], ids=repr)
def test_providers(providers):
    def behaviour(ort):
        loaded = session(ort, providers=providers)
        return loaded.get_providers(), list(loaded.get_provider_options()), loaded.set_providers(["CPUExecutionProvider"])
    assert_same(behaviour)


def test_a_provider_given_twice_warns():
    for ort in (ours, onnxruntime):
        with pytest.warns(UserWarning, match="Duplicate provider 'CPUExecutionProvider'"):
            session(ort, providers=["CPUExecutionProvider"] * 2)


@pytest.mark.parametrize("arguments", [dict(providers=[3]), dict(providers=3),
                                       dict(providers=[("CPUExecutionProvider", 3)]),
                                       dict(providers=["CPUExecutionProvider"], provider_options=[{}, {}]),
                                       dict(providers=["CPUExecutionProvider"], provider_options=[3]),
                                       dict(providers=[("CPUExecutionProvider", {})], provider_options=[{}])], ids=repr)
def test_providers_that_make_no_sense_are_errors(arguments):
    with pytest.raises(ValueError):
        ours.InferenceSession(linear(), **arguments)


def test_a_provider_that_cannot_start_is_an_error_with_a_way_out(monkeypatch):
    monkeypatch.delenv("TENON_ORT_FALLBACK", raising=False)
    missing = "VitisAIExecutionProvider"
    with pytest.raises(ours.capi.onnxruntime_pybind11_state.EPFail, match="TENON_ORT_FALLBACK=warn") as caught:
        session(ours, providers=[missing, "CPUExecutionProvider"])
    assert caught.value.code == "provider-unavailable" and missing in str(caught.value)
    monkeypatch.setenv("TENON_ORT_FALLBACK", "yes")
    with pytest.raises(tenon.ArgumentError, match="'error' or 'warn', not 'yes'"):
        session(ours)
    monkeypatch.setenv("TENON_ORT_FALLBACK", "warn")
    with pytest.warns(UserWarning, match=f"provider '{missing}' is not used.*available providers: .*CPUExecutionProvider"):
        loaded = session(ours, providers=[missing, "CPUExecutionProvider"])
    assert loaded.get_providers() == ["CPUExecutionProvider"]
    assert missing in [name for name, _ in loaded.placement()[0].declined]


def test_warnings_are_of_the_line_that_causes_them(monkeypatch):
    monkeypatch.setenv("TENON_ORT_FALLBACK", "warn")
    options = ours.SessionOptions()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        options.add_session_config_entry("no.such.key", "1")
        options.add_session_config_entry("optimization.disable_specified_optimizers", "Nonsense")
        loaded = ours.InferenceSession(linear(), options, ["XExecutionProvider"] + ["CPUExecutionProvider"] * 2)
        loaded.set_providers(["CPUExecutionProvider"] * 2)
        ours.set_seed(1)
    assert len(heard) == 7 and {one.filename for one in heard} == {__file__}


def test_available_providers_can_start():
    assert ours.get_available_providers()[-1] == "CPUExecutionProvider"
    for name in ours.get_available_providers():
        assert session(ours, providers=[name]).get_providers()[0] == name
    assert set(ours.get_available_providers()) <= set(ours.get_all_providers())


def test_profiles(tmp_path):
    def behaviour(ort):
        loaded = session(ort, heavy(3, 8), enable_profiling=True, profile_file_prefix=str(tmp_path / "p"))
        assert loaded.get_profiling_start_time_ns() > 10**18
        for _ in range(2):
            loaded.run(None, {"x": np.ones((8, 8), np.float32)})
        path = loaded.end_profiling()
        events = json.loads(pathlib.Path(path).read_text())
        nodes = [event for event in events if event["cat"] == "Node"]
        assert {event["ph"] for event in events} == {"X"} and all(event["name"].endswith("_kernel_time") for event in nodes)
        return (re.sub(r"\d+", "0", pathlib.Path(path).name),
                sorted({event["name"] for event in events if event["cat"] == "Session"}),
                len([event for event in events if event["name"] == "model_run"]),
                [[event["args"][key] for key in ("op_name", "provider", "output_type_shape")] for event in nodes],
                loaded.end_profiling())
    assert_same(behaviour)
    assert_same(lambda ort: (session(ort).end_profiling(), session(ort).get_profiling_start_time_ns()))


def test_notes_are_logged_by_severity(caplog):
    def load():
        caplog.clear()
        options = ours.SessionOptions()
        options.add_free_dimension_override_by_name("nope", 4)
        ours.InferenceSession(linear(), options)
        return [record.message for record in caplog.records]
    assert load() == ["the model has no dimension that is called 'nope'"]
    ours.set_default_logger_severity(3)
    try:
        assert load() == []
    finally:
        ours.set_default_logger_severity(2)
    for level in (-1, 7):
        assert_same(lambda ort: ort.set_default_logger_severity(level))
