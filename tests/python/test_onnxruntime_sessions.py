"""Sessions of tenon.onnxruntime beside onnxruntime's: loading, describing, running, and the errors of each."""
import os
import pathlib
import threading

import numpy as np
import onnx
import pytest
import tenon
import tenon.onnxruntime
from onnx import TensorProto as T
from onnx import helper as h
from side_by_side import PREFIX, assert_same
from small_models import add, heavy, identity, linear, model, value

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def ml_model(nodes, inputs, outputs):
    graph = h.make_graph(nodes, "g", inputs, outputs)
    imports = [h.make_opsetid("", 21), h.make_opsetid("ai.onnx.ml", 3)]
    return h.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def map_type(key):
    return h.make_map_type_proto(key, h.make_tensor_type_proto(T.FLOAT, []))


def zipmap():
    return ml_model([h.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b"]),
                     h.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[3, 4])],
                    [value("x", T.FLOAT, ["n", 2])],
                    [h.make_value_info("y", h.make_sequence_type_proto(map_type(T.STRING))),
                     h.make_value_info("z", h.make_sequence_type_proto(map_type(T.INT64)))])


def dict_vectorizer():
    return ml_model([h.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])],
                    [h.make_value_info("x", map_type(T.STRING))], [value("y", T.FLOAT, [1, 2])])


SEQUENCE_MADE = model([h.make_node("SequenceConstruct", ["x", "x"], ["y"])], [value("x", T.FLOAT, ["n"])],
                      [h.make_tensor_sequence_value_info("y", T.FLOAT, ["n"])])
SEQUENCE_READ = model([h.make_node("SequenceLength", ["x"], ["y"])],
                      [h.make_tensor_sequence_value_info("x", T.FLOAT, ["n"])], [value("y", T.INT64, [])])
OPTIONAL = model([h.make_node("OptionalHasElement", ["x"], ["y"])],
                 [h.make_value_info("x", h.make_optional_type_proto(h.make_tensor_type_proto(T.FLOAT, ["n"])))],
                 [value("y", T.BOOL, [])])
GATHER = model([h.make_node("Gather", ["x", "i"], ["y"], name="pick")],
               [value("x", T.FLOAT, ["n"]), value("i", T.INT64, ["m"])], [value("y", T.FLOAT, ["m"])])
MATMUL = model([h.make_node("MatMul", ["x", "w"], ["y"])], [value("x", T.FLOAT, None), value("w", T.FLOAT, None)],
               [value("y", T.FLOAT, None)])


def with_default(ir_version, opset):
    """y = x + w, where w is an initializer and an input."""
    graph = h.make_graph([h.make_node("Add", ["x", "w"], ["y"])], "g", [value("x", 1, [2]), value("w", 1, [2])],
                         [value("y", 1, [2])], [onnx.numpy_helper.from_array(np.ones(2, np.float32), "w")])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=ir_version).SerializeToString()


OVERRIDABLE, BEFORE_VERSION_4 = with_default(10, 21), with_default(3, 8)

RUNS = {
    "all outputs for None": (linear(), None, {"x": X}),
    "all outputs for []": (linear(), [], {"x": X}),
    "outputs in the order asked for": (linear(), ["z", "y"], {"x": X}),
    "an output twice": (linear(), ("y", "y"), {"x": X}),
    "output_names is a str": (linear(), "y", {"x": X}),
    "an unknown output": (linear(), ["nope"], {"x": X}),
    "an unknown input": (linear(), None, {"x": X, "q": X}),
    "a missing input": (add(), None, {"left": X}),
    "no inputs": (add(), None, {}),
    "the feed is a list": (add(), None, [X, X]),
    "the wrong type": (linear(), None, {"x": X.astype(np.float64)}),
    "the wrong integer type": (identity(T.INT64), None, {"x": np.array([1], np.int32)}),
    "the wrong rank": (linear(), None, {"x": X[0]}),
    "the wrong size": (linear(), None, {"x": X[:, :2]}),
    "sizes of a fixed shape": (heavy(2, 4), None, {"x": X}),
    "a list": (linear(), None, {"x": X.tolist()}),
    "a list of ints for floats": (identity(), None, {"x": [1, 2]}),
    "a list of ints for bools": (identity(T.BOOL), None, {"x": [1, 0]}),
    "a list for float16": (identity(T.FLOAT16), None, {"x": [1.0, 2.5]}),
    "a list for int64": (identity(T.INT64), None, {"x": [1, -2]}),
    "strides": (linear(), None, {"x": X.T.copy().T}),
    "a scalar array": (identity(T.FLOAT, ()), None, {"x": np.array(1.5, np.float32)}),
    "an empty array": (identity(), None, {"x": np.zeros(0, np.float32)}),
    "float16": (identity(T.FLOAT16), None, {"x": np.array([1, 2], np.float16)}),
    "strings in a list": (identity(T.STRING), None, {"x": ["a", "b"]}),
    "strings of NumPy": (identity(T.STRING), None, {"x": np.array(["a", "bc"])}),
    "strings as objects": (identity(T.STRING), None, {"x": np.array(["a", "ä"], object)}),
    "numbers among strings": (identity(T.STRING), None, {"x": np.array([1, "b"], object)}),
    "numbers for strings": (identity(T.STRING), None, {"x": np.array([1.0, 2.0])}),
    "a sequence made": (SEQUENCE_MADE, None, {"x": X[0]}),
    "a sequence read": (SEQUENCE_READ, None, {"x": [X[0], X[1]]}),
    "an empty sequence": (SEQUENCE_READ, None, {"x": []}),
    "maps made": (zipmap(), None, {"x": X[:, :2].copy()}),
    "a map read": (dict_vectorizer(), None, {"x": {"a": 1.0, "b": 2.0}}),
    "a map with other keys": (dict_vectorizer(), None, {"x": {1: 1.0}}),
    "an optional": (OPTIONAL, None, {"x": X[0]}),
    "nothing for an optional": (OPTIONAL, None, {"x": None}),
    "an initializer by default": (OVERRIDABLE, None, {"x": np.ones(2, np.float32)}),
    "an initializer overridden": (OVERRIDABLE, None, {"x": np.ones(2, np.float32), "w": np.zeros(2, np.float32)}),
    "what was an input by rule": (BEFORE_VERSION_4, None, {"x": np.ones(2, np.float32)}),
    "what was an input by rule, overridden": (BEFORE_VERSION_4, None, dict.fromkeys("xw", np.ones(2, np.float32))),
    "an index out of range": (GATHER, None, {"x": X[0], "i": np.array([5])}),
    "shapes that do not fit in a node": (MATMUL, None, {"x": X, "w": X}),
}


@pytest.mark.parametrize("case", RUNS.values(), ids=RUNS)
def test_runs(case):
    data, outputs, feed = case
    assert_same(lambda ort: ort.InferenceSession(data).run(outputs, feed))


NODE = h.make_node("Neg", ["x"], ["y"])
ONE = [value("x", 1, [1])], [value("y", 1, [1])]
BROKEN = {
    "not a model": b"not a model",
    "truncated": linear()[:-20],
    "an unknown operator": model([h.make_node("Nonsense", ["x"], ["y"])], *ONE),
    "an unknown domain": model([h.make_node("Nonsense", ["x"], ["y"], domain="my")], *ONE),
    "an undefined name": model([h.make_node("Add", ["x", "gone"], ["y"])], *ONE),
    "a cycle": model([h.make_node("Add", ["x", "z"], ["y"]), h.make_node("Neg", ["y"], ["z"])], *ONE),
    "a name defined twice": model([NODE, NODE], *ONE),
    "types that do not fit": model([h.make_node("Add", ["x", "w"], ["y"])], [value("x", 1, [1]), value("w", 7, [1])],
                                   ONE[1]),
    "shapes that do not fit": model([h.make_node("MatMul", ["x", "w"], ["y"])],
                                    [value("x", 1, [1, 2]), value("w", 1, [3, 1])], [value("y", 1, [1, 1])]),
    "an unknown attribute": model([h.make_node("Neg", ["x"], ["y"], foo=1)], *ONE),
    "a wrong output type": model([NODE], ONE[0], [value("y", 7, [1])]),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_models_that_do_not_load(data):
    assert_same(lambda ort: ort.InferenceSession(data))


@pytest.mark.parametrize("source", [3, None, bytearray(linear()), onnx.load_from_string(linear()), "none.onnx",
                                    pathlib.Path("none.onnx")], ids=lambda source: type(source).__name__)
def test_sources_that_are_no_model(source):
    assert_same(lambda ort: ort.InferenceSession(source))


def test_models_come_from_paths_and_bytes(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(linear())
    (tmp_path / "junk.onnx").write_bytes(b"junk")
    for source in (path, str(path), linear(), tmp_path / "junk.onnx"):
        assert_same(lambda ort: ort.InferenceSession(source).run(["z"], {"x": X}))
    keywords = dict(path_or_bytes=linear(), sess_options=None, providers=None, provider_options=None)
    assert_same(lambda ort: ort.InferenceSession(**keywords).run(["y"], {"x": X}))
    assert tenon.onnxruntime.InferenceSession(path)._model_path == str(path)


def test_missing_external_data(tmp_path):
    onnx.save(onnx.load_from_string(linear()), tmp_path / "m.onnx", save_as_external_data=True, location="m.data",
              size_threshold=0)
    (tmp_path / "m.data").unlink()
    assert_same(lambda ort: ort.InferenceSession(tmp_path / "m.onnx"))


@pytest.mark.parametrize("data", [linear(), add(), OVERRIDABLE, BEFORE_VERSION_4, SEQUENCE_MADE, SEQUENCE_READ,
                                  zipmap(), dict_vectorizer(),
                                  *(identity(T.FLOAT, shape) for shape in ((), (1, 2), ("a", 2), (None, 2), None, ("", 3))),
                                  *(identity(kind) for kind in (T.DOUBLE, T.FLOAT16, T.BFLOAT16, T.STRING, T.BOOL, T.INT8,
                                                                T.UINT8, T.INT16, T.UINT16, T.INT32, T.UINT32, T.INT64,
                                                                T.UINT64, T.FLOAT8E4M3FN))])
def test_inputs_and_outputs_are_described(data):
    def describe(ort):
        session = ort.InferenceSession(data)
        return [[(arg.name, arg.type, arg.shape, str(arg)) for arg in args]
                for args in (session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())]
    assert_same(describe)


def test_node_args_cannot_be_changed():
    assert_same(lambda ort: setattr(ort.InferenceSession(linear()).get_inputs()[0], "name", "q"))


def test_metadata():
    proto = onnx.load_from_string(linear())
    proto.producer_name, proto.domain, proto.model_version, proto.doc_string = "me", "ai.x", 7, "doc"
    proto.graph.doc_string = "graph doc"
    entry = proto.metadata_props.add()
    entry.key, entry.value = "k", "v"
    names = ("custom_metadata_map", "description", "domain", "graph_description", "graph_name", "producer_name", "version")
    data = proto.SerializeToString()
    assert_same(lambda ort: [getattr(ort.InferenceSession(data).get_modelmeta(), name) for name in names])


def test_terminate_refuses_runs_and_is_taken_back():
    def behaviour(ort):
        session, options = ort.InferenceSession(linear()), ort.RunOptions()
        options.terminate = True
        session.run(None, {"x": X}, options)

    def again(ort):
        session, options = ort.InferenceSession(linear()), ort.RunOptions()
        options.terminate = True
        options.terminate = False
        return session.run(["y"], {"x": X}, options)
    assert_same(behaviour)
    assert_same(again)
    assert_same(lambda ort: ort.InferenceSession(linear()).run(None, {"x": X}, 3))


def test_terminate_ends_a_run_that_goes_on():
    session = tenon.onnxruntime.InferenceSession(heavy(4000, 64))
    options = tenon.onnxruntime.RunOptions()
    timer = threading.Timer(0.02, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(tenon.Error) as caught:
        for _ in range(10000):
            session.run(None, {"x": np.ones((64, 64), np.float32)}, options)
    timer.join()
    assert caught.value.code == "cancelled" and type(caught.value).__name__ == "Fail"


def test_run_async():
    def behaviour(ort, feed, names=None):
        done, heard = threading.Event(), []

        def hear(results, user_data, error):
            heard.extend([results, user_data, bool(error)])
            done.set()
        ort.InferenceSession(linear()).run_async(names, feed, hear, "data")
        assert done.wait(20)
        return heard
    assert_same(lambda ort: behaviour(ort, {"x": X}))
    assert_same(lambda ort: behaviour(ort, {"x": X}, ["z"]))
    assert_same(lambda ort: behaviour(ort, {"x": X.astype(np.float64)}))
    assert_same(lambda ort: behaviour(ort, {}))


def test_errors_name_what_was_expected_and_what_came():
    with pytest.raises(tenon.Error, match="the model takes float, got double") as caught:
        tenon.onnxruntime.InferenceSession(linear()).run(None, {"x": X.astype(np.float64)})
    assert caught.value.tensor == "x" and PREFIX.match(str(caught.value)).groups() == ("2", "INVALID_ARGUMENT")
    with pytest.raises(ValueError, match=r"Required inputs \(\['right'\]\) are missing from input feed \(\['left'\]\)"):
        tenon.onnxruntime.InferenceSession(add()).run(None, {"left": X})


def test_sizes_of_one_name_must_agree():
    with pytest.raises(tenon.Error, match="'batch' is 2 on axis 0 of 'left' but 1"):
        tenon.onnxruntime.InferenceSession(add()).run(None, {"left": X, "right": X[:1]})


def test_sessions_can_be_derived_from():
    class Mine(tenon.onnxruntime.InferenceSession):
        def __init__(self, path):
            super().__init__(path, providers=["CPUExecutionProvider"])
    assert Mine(linear()).run(["y"], {"x": X})[0].shape == (2, 2)
    assert os.path.basename(tenon.onnxruntime.__file__) == "__init__.py"


@pytest.mark.parametrize("bound", [False, True])
def test_sizes_of_one_name_may_differ_where_programs_cannot_be_edited(monkeypatch, bound):
    left, right = np.ones((3, 4), np.float32), np.ones((1, 4), np.float32)

    def run(session):
        if not bound:
            return session.run(None, {"left": left, "right": right})[0]
        binding = session.io_binding()
        binding.bind_cpu_input("left", left)
        binding.bind_cpu_input("right", right)
        binding.bind_output("sum")
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()[0]

    monkeypatch.delenv("TENON_ORT_FALLBACK", raising=False)
    with pytest.raises(tenon.Error, match="'batch' is 3 .* but 1"):
        run(tenon.onnxruntime.InferenceSession(add()))
    monkeypatch.setenv("TENON_ORT_FALLBACK", "warn")
    session = tenon.onnxruntime.InferenceSession(add())
    shapes = [arg.shape for arg in session.get_inputs()]
    with pytest.warns(UserWarning, match="size 'batch' is 3 .* loaded again"):
        np.testing.assert_array_equal(run(session), left + right)
    np.testing.assert_array_equal(run(session), left + right)
    assert [arg.shape for arg in session.get_inputs()] == shapes
    with pytest.raises(tenon.onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="takes rank 2"):
        session.run(None, {"left": left[0], "right": right})
