"""Loading and saving a model changes nothing: compared message by message with the onnx package."""
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx_suite import write_suite

from conftest import ROOT

REWRITE = ROOT / "build" / "rewrite"


def rewrite(*pairs):
    run = subprocess.run([REWRITE, *pairs], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def without_empty_fields(message):
    """A field set to its default means the same as one that is not set."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in value if field.is_repeated else [value]:
                without_empty_fields(item)
        elif not field.is_repeated and value == field.default_value:
            message.ClearField(field.name)
    return message


def assert_same(before, after):
    one, two = (without_empty_fields(onnx.load(path, load_external_data=False)) for path in (before, after))
    assert one == two, f"{before} changed"


def test_suite_models_stay_equal(tmp_path):
    models = sorted(write_suite().glob("*/*/model.onnx"))
    assert len(models) > 2000
    for start in range(0, len(models), 100):
        part = models[start:start + 100]
        targets = [tmp_path / f"{start + i}.onnx" for i in range(len(part))]
        rewrite(*[path for pair in zip(part, targets) for path in pair])
        for model, target in zip(part, targets):
            assert_same(model, target)
            target.unlink()


def test_everything_a_model_can_hold_stays(tmp_path):
    f, i, s = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
    body = helper.make_graph([helper.make_node("Add", ["x", "outer"], ["z"])], "body", [helper.make_tensor_value_info("x", f, ["n"])],
                             [helper.make_tensor_value_info("z", f, ["n"])], [numpy_helper.from_array(np.ones(3, np.float32), "w")])
    sparse = helper.make_sparse_tensor(helper.make_tensor("sv", f, [2], [1, 2]), helper.make_tensor("si", i, [2], [0, 3]), [4])
    node = helper.make_node("Everything", ["x", "", "late"], ["a", "", "b"], name="n", domain="custom", doc_string="doc", overload="o",
                            f=1.5, i=-3, s="text", fs=[1.0, 2.0], ints=[1, -2], ss=["a", "b"], t=helper.make_tensor("t", f, [1], [3]),
                            g=body, ts=[helper.make_tensor("t1", i, [1], [3])], gs=[body, body], sp=sparse, sps=[sparse, sparse],
                            tp=helper.make_tensor_type_proto(f, ["n", 3]), tps=[helper.make_sequence_type_proto(helper.make_tensor_type_proto(i, None))])
    node.metadata_props.add(key="k", value="v")
    node.attribute.add(name="r", type=onnx.AttributeProto.INT, ref_attr_name="outer_r")
    late = helper.make_node("Late", ["x"], ["late"])
    typed = [helper.make_tensor("i8", TensorProto.INT8, [3], [-1, 2, 3]), helper.make_tensor("u64", TensorProto.UINT64, [1], [2**63 + 1]),
             helper.make_tensor("f16", TensorProto.FLOAT16, [2], [1.5, -2]), helper.make_tensor("c64", TensorProto.COMPLEX64, [1], [1 + 2j]),
             helper.make_tensor("d", TensorProto.DOUBLE, [2], [1.5, 2]), helper.make_tensor("str", s, [2], [b"a", b"\xff"]),
             helper.make_tensor("b", TensorProto.BOOL, [2], [True, False]), helper.make_tensor("i4", TensorProto.INT4, [3], [1, -2, 3]),
             helper.make_tensor("empty", f, [0], []), helper.make_tensor("f8", TensorProto.FLOAT8E4M3FN, [2], [1.0, 2.0])]
    graph = helper.make_graph(
        [node, late], "g",
        [helper.make_tensor_value_info("x", f, ["batch", 3, None]), helper.make_value_info("seq", helper.make_sequence_type_proto(helper.make_tensor_type_proto(s, None))),
         helper.make_value_info("opt", helper.make_optional_type_proto(helper.make_tensor_type_proto(f, [])))],
        [helper.make_tensor_value_info("a", f, None), helper.make_tensor_value_info("x", f, None)], initializer=typed, doc_string="graph doc",
        value_info=[helper.make_tensor_value_info("b", i, [2]), helper.make_tensor_value_info("nowhere", i, [2])], sparse_initializer=[sparse])
    graph.quantization_annotation.add(tensor_name="a").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    graph.metadata_props.add(key="gk", value="gv")
    graph.input[0].type.denotation = "IMAGE"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    function = helper.make_function("custom", "Everything", ["x"], ["y"], [helper.make_node("Relu", ["x"], ["y"])], [helper.make_opsetid("", 20)],
                                    attributes=["r"], attribute_protos=[helper.make_attribute("d", 3)], overload="o",
                                    value_info=[helper.make_tensor_value_info("y", f, None)])
    model = helper.make_model(graph, functions=[function], producer_name="p", producer_version="1", doc_string="m",
                              opset_imports=[helper.make_opsetid("custom", 1), helper.make_opsetid("", 21)], ir_version=10)
    model.metadata_props.add(key="mk", value="mv")
    model.training_info.add().algorithm.name = "training"
    model.configuration.add(name="device", num_devices=2)
    source = tmp_path / "model.onnx"
    # Field 99 is unknown to every version so far.
    source.write_bytes(model.SerializeToString() + b"\x9a\x06\x03abc")
    rewrite(source, tmp_path / "again.onnx")
    assert_same(source, tmp_path / "again.onnx")
    assert b"\x9a\x06\x03abc" in (tmp_path / "again.onnx").read_bytes()


def test_external_data_stays_external(tmp_path):
    array = np.arange(5000, dtype=np.float32)
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [helper.make_tensor_value_info("y", 1, [5000])],
                              [numpy_helper.from_array(array, "w")])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "out").mkdir()
    rewrite(tmp_path / "m.onnx", tmp_path / "out" / "m.onnx")
    again = onnx.load(tmp_path / "out" / "m.onnx")
    assert (tmp_path / "out" / "m.onnx.data").stat().st_size == array.nbytes
    np.testing.assert_array_equal(numpy_helper.to_array(again.graph.initializer[0]), array)
