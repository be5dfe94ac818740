"""Arrays go in and come out without copies, of every type."""
import array
import gc
import subprocess
import sys
import weakref

import ml_dtypes
import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper
from small_models import identity, linear, linear_reference, model, value

NUMPY_TYPES = ["float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "bool", "float16", "float64", "uint32",
               "uint64", "complex64", "complex128"]
ML_TYPES = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "int4", "uint4",
            "float4_e2m1fn", "float8_e8m0fnu", "int2", "uint2"]


def address(x):
    return x.__array_interface__["data"][0]


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_numpy_types_make_the_way_through_a_model(name):
    x = np.array([0, 1, 1, 0, 1]).astype(name)
    y = tenon.load(identity(helper.np_dtype_to_tensor_dtype(x.dtype))).run(x=x)["y"]
    assert y.dtype == x.dtype and y.dtype.char == x.dtype.char
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ML_TYPES)
def test_types_of_ml_dtypes_make_the_way_through_a_model(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    x = np.array([1, 0, 1, 1, 0]).astype(dtype) if name != "float8_e8m0fnu" else np.array([1, 2, 4, 8, 1]).astype(dtype)
    if name in ("int4", "int2"):
        x[1] = -2
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    y = tenon.load(identity(kind)).run(x=x)["y"]
    assert y.dtype == dtype
    np.testing.assert_array_equal(x.astype(np.float32), y.astype(np.float32))


def test_strings_make_the_way_through_a_model():
    strings = tenon.load(identity(TensorProto.STRING, ("n", "m")))
    expected = [["a", "", "ü"], ["日本", "b\0c", "x" * 1000]]
    for x in (expected, np.array(expected), np.array(expected, dtype=object), np.array(expected, dtype="U1000")):
        y = strings.run(x=x)["y"]
        assert y.shape == (2, 3) and y.tolist() == np.asarray(x).tolist()
    assert strings.run(x=[[b"\xff\xfe"]])["y"][0, 0].encode(errors="surrogateescape") == b"\xff\xfe"
    bytes_of_none = np.array([[b"\xff\xfe", b"\xff\xfe".decode(errors="surrogateescape")]], dtype=object)
    assert [text.encode(errors="surrogateescape") for text in strings.run(x=bytes_of_none)["y"][0]] == [b"\xff\xfe"] * 2
    other_order = np.array([["a", "b", "c"], ["d", "e", "f"]], dtype=object).T
    assert strings.run(x=other_order)["y"].tolist() == other_order.tolist()


def test_a_string_that_is_no_string_is_an_error():
    with pytest.raises(tenon.InputError, match="element 1 is of .*int.*, not a string") as caught:
        tenon.load(identity(TensorProto.STRING)).run(x=np.array(["a", 1], dtype=object))
    assert caught.value.tensor == "x"


def test_tensors_share_the_memory_of_arrays():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = tenon.Tensor(x)
    assert tensor.address == address(x) and tensor.shape == (2, 3) and tensor.dtype == "float32" and tensor.nbytes == 24
    assert address(np.asarray(tensor)) == address(x)
    assert address(np.from_dlpack(tensor)) == address(x)
    assert address(tensor.numpy()) == address(x)
    tensor.numpy()[0, 0] = 7
    assert x[0, 0] == 7
    assert memoryview(tensor).format == "f" and memoryview(tensor).tolist() == x.tolist()


def test_memory_that_is_read_only_stays_as_it_is():
    x = np.arange(3, dtype=np.float32)
    x.flags.writeable = False
    # NumPy 1 does not hand out read-only arrays through DLPack.
    for source in (x, OnlyDlpack(x)) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else (x,):
        tensor = tenon.Tensor(source)
        tensor.numpy()[0] = 7
        assert x[0] == 0
    tenon.Tensor(b"abc").numpy()[0] = 0
    outputs = tenon.load(identity()).run(x=x)
    outputs["y"][0] = 7
    assert x[0] == 0
    with pytest.raises(tenon.ArgumentError, match="cannot be written into"):
        tenon.load(identity()).run({"x": [1.0, 2.0, 3.0]}, into={"y": x})


@pytest.mark.parametrize("make", [
    lambda x: x.T, lambda x: x[::2], lambda x: x[:, ::-1], lambda x: x[:, 1:], lambda x: np.broadcast_to(x[:1], x.shape),
    lambda x: x.astype(">f4"), lambda x: np.asfortranarray(x)], ids=["transposed", "every other", "backwards", "part",
                                                                    "broadcast", "big endian", "column major"])
def test_arrays_that_are_not_contiguous_are_copied_right(make):
    x = make(np.arange(20, dtype=np.float32).reshape(4, 5))
    tensor = tenon.Tensor(x)
    assert tensor.address != address(x)
    np.testing.assert_array_equal(tensor.numpy(), x)


def test_a_misaligned_array_is_copied():
    x = np.frombuffer(b"_" + np.arange(4, dtype=np.float32).tobytes(), dtype=np.float32, offset=1, count=4)
    tensor = tenon.Tensor(x)
    assert tensor.address != address(x)
    np.testing.assert_array_equal(tensor.numpy(), np.arange(4))


def test_arrays_without_elements_and_scalars():
    copy = tenon.load(identity(shape=("n", "m")))
    assert copy.run(x=np.zeros((0, 3), np.float32))["y"].shape == (0, 3)
    assert copy.run(x=np.zeros((4, 0), np.float32).T)["y"].shape == (0, 4)
    scalar = tenon.load(identity(shape=()))
    for x in (np.float32(2.5), 2.5, np.array(2.5, np.float32)):
        y = scalar.run(x=x)["y"]
        assert y.shape == () and y == 2.5


def test_other_objects_with_the_buffer_protocol():
    copy = tenon.load(identity(TensorProto.INT64))
    assert copy.run(x=array.array("q", [1, 2, 3]))["y"].tolist() == [1, 2, 3]
    assert copy.run(x=memoryview(np.array([4, 5])))["y"].tolist() == [4, 5]
    assert tenon.load(identity(TensorProto.UINT8)).run(x=b"ab")["y"].tolist() == [97, 98]


class OnlyDlpack:
    """An array that speaks DLPack and nothing else, as those of other libraries."""

    def __init__(self, array, new=True):
        self.array, self.new = array, new

    def __dlpack__(self, **options):
        if not self.new and options:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("new", [True, False])
def test_dlpack_in_shares_memory_and_keeps_it_alive(new):
    x = np.arange(5, dtype=np.float32)
    tensor = tenon.Tensor(OnlyDlpack(x, new))
    assert tensor.address == address(x)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is not None and tensor.numpy().tolist() == [0, 1, 2, 3, 4]
    del tensor
    gc.collect()
    assert gone() is None


def test_dlpack_out_keeps_the_memory_alive():
    x = np.arange(1000, dtype=np.float64)
    y = np.from_dlpack(tenon.Tensor(x.copy()))
    gc.collect()
    np.testing.assert_array_equal(y, x)
    tenon.Tensor(x).__dlpack__()  # a capsule that nobody takes


@pytest.mark.parametrize("device", [2, 8])
def test_dlpack_of_another_device_is_an_error(device):
    if device == 2 and "cuda" in tenon.available_providers():
        pytest.skip("this machine has a GPU")

    class OnGpu(OnlyDlpack):
        def __dlpack_device__(self):
            return device, 0
    with pytest.raises(tenon.UnavailableError, match="another device.*\n.*to the CPU") as caught:
        tenon.load(identity()).run(x=OnGpu(np.zeros(3, np.float32)))
    assert caught.value.tensor == "x"


@pytest.mark.parametrize("data", [identity(), model(
    [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Identity", ["r"], ["y"])],
    [value("x", TensorProto.FLOAT, ["n"])], [value("y", TensorProto.FLOAT, None)], {"shape": np.array([1, -1])})])
def test_a_run_does_not_keep_its_inputs(data):
    loaded = tenon.load(data)
    for wrap in (lambda x: x, OnlyDlpack):
        x = np.arange(5, dtype=np.float32)
        gone = weakref.ref(x)
        outputs = loaded.run(x=wrap(x))
        del x
        gc.collect()
        assert gone() is None and outputs["y"].ravel().tolist() == [0, 1, 2, 3, 4]


def test_a_run_that_fails_does_not_keep_its_inputs():
    pick = tenon.load(model([helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Gather", ["n", "i"], ["y"])],
                            [value("x", TensorProto.FLOAT, ["n"]), value("i", TensorProto.INT64, ["m"])],
                            [value("y", TensorProto.FLOAT, ["m"])]))
    x = np.arange(5, dtype=np.float32)
    gone = weakref.ref(x)
    with pytest.raises(tenon.RunError):
        pick.run(x=OnlyDlpack(x), i=[9])
    del x
    gc.collect()
    assert gone() is None
    assert pick.run(x=[1.0, 2.0], i=[1])["y"].tolist() == [-2]


def test_outputs_live_longer_than_their_session():
    x = np.ones((4, 3), np.float32)
    loaded = tenon.load(linear())
    y = loaded.run(x=x)["y"]
    z = loaded.run(x=x)["z"]
    del loaded
    gc.collect()
    np.testing.assert_array_equal(y, linear_reference(x)[0])
    np.testing.assert_array_equal(z, linear_reference(x)[1])


def test_outputs_are_the_callers_own():
    constant = tenon.load(model([helper.make_node("Identity", ["x"], ["y"])], [value("x", TensorProto.FLOAT, [2])],
                                [value("y", TensorProto.FLOAT, [2]), value("w", TensorProto.FLOAT, [2])],
                                {"w": np.array([1, 2], np.float32)}))
    x = np.array([3, 4], np.float32)
    for _ in range(2):
        outputs = constant.run(x=x)
        assert outputs["y"].tolist() == [3, 4] and outputs["w"].tolist() == [1, 2] and x.tolist() == [3, 4]
        outputs["y"][:] = outputs["w"][:] = 9


def test_outputs_of_one_run_stay_when_the_next_comes():
    loaded = tenon.load(linear())
    kept = [loaded.run(x=np.full((2, 3), i, np.float32))["y"] for i in range(5)]
    for i, y in enumerate(kept):
        np.testing.assert_array_equal(y, linear_reference(np.full((2, 3), i, np.float32))[0])


def test_outputs_are_written_into_arrays_of_the_caller():
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 2), np.float32)
    outputs = tenon.load(linear()).run({"x": x}, into={"y": y})
    assert outputs["y"] is y
    np.testing.assert_array_equal(y, linear_reference(x)[0])
    np.testing.assert_array_equal(outputs["z"], -y)


@pytest.mark.parametrize("bad, error, text", [
    (np.zeros((2, 3), np.float32), tenon.InputError, r"float \[2, 3\], the run made float \[2, 2\]"),
    (np.zeros((2, 2)), tenon.InputError, r"double \[2, 2\], the run made float \[2, 2\]"),
    (np.zeros((2, 4), np.float32)[:, ::2], tenon.ArgumentError, "not contiguous"),
    (b"read-only, and bytes", tenon.ArgumentError, "cannot be written into"),
    ([[0, 0], [0, 0]], tenon.ArgumentError, "cannot be written into")])
def test_destinations_that_do_not_fit(bad, error, text):
    with pytest.raises(error, match=text) as caught:
        tenon.load(linear()).run(x=np.ones((2, 3), np.float32), into={"y": bad})
    assert caught.value.tensor == "y"


def test_lists_and_numbers_become_the_declared_type():
    assert tenon.load(linear()).run(x=[[1, 2, 3]])["y"].tolist() == [[17, 21]]
    halves = tenon.load(identity(TensorProto.BFLOAT16)).run(x=[0.5, 2])["y"]
    assert halves.dtype == ml_dtypes.bfloat16 and halves.tolist() == [0.5, 2]


@pytest.mark.parametrize("kind, given, text", [
    (TensorProto.INT64, [1.5], "float64 cannot become int64 without losing digits"),
    (TensorProto.BOOL, [0.5], "float64 cannot become bool"),
    (TensorProto.FLOAT, [1j], "complex128 cannot become float32"),
    (TensorProto.FLOAT, ["1.5"], "takes float, got string"),
    (TensorProto.FLOAT, [[1], [2, 3]], "inhomogeneous"),
    (TensorProto.INT64, [2**70], "int too large"),
    (TensorProto.INT4, [1.5], "float64 cannot become int4")])
def test_lists_that_would_lose_something_are_errors(kind, given, text):
    with pytest.raises(tenon.InputError, match=text):
        tenon.load(identity(kind)).run(x=given)


def test_lists_of_whole_numbers_become_any_number():
    for kind in (TensorProto.FLOAT, TensorProto.UINT8, TensorProto.BOOL, TensorProto.COMPLEX64, TensorProto.INT4):
        assert tenon.load(identity(kind)).run(x=[0, 1, 1])["y"].astype(complex).tolist() == [0, 1, 1]
        assert tenon.load(identity(kind)).run(x=[])["y"].shape == (0,)


class Table:
    """What pandas' tables look like: no dtype of their own, but an array on request."""
    def __array__(self, dtype=None, copy=None):
        return np.array([1.5, 2.5])


def test_what_is_an_array_on_request_keeps_its_type():
    assert tenon.load(identity(TensorProto.DOUBLE)).run(x=Table())["y"].tolist() == [1.5, 2.5]
    with pytest.raises(tenon.InputError, match="takes float, got double"):
        tenon.load(identity()).run(x=Table())


def test_sequences_maps_and_optionals():
    tensors = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    sequence = helper.make_value_info("s", helper.make_sequence_type_proto(tensors))
    at = tenon.load(model([helper.make_node("SequenceAt", ["s", "i"], ["y"]), helper.make_node("Identity", ["s"], ["t"])],
                          [sequence, value("i", TensorProto.INT64, [])],
                          [value("y", TensorProto.FLOAT, None),
                           helper.make_value_info("t", helper.make_sequence_type_proto(tensors))]))
    items = [np.array([1, 2], np.float32), np.array([[3]], np.float32)]
    outputs = at.run(s=items, i=1)
    assert outputs["y"].tolist() == [[3]] and [t.tolist() for t in outputs["t"]] == [[1, 2], [[3]]]
    outputs["t"][0][:] = 9
    assert items[0].tolist() == [1, 2]

    optional = helper.make_value_info("o", helper.make_optional_type_proto(tensors))
    has = tenon.load(model([helper.make_node("OptionalHasElement", ["o"], ["y"])], [optional],
                           [value("y", TensorProto.BOOL, [])]))
    assert not has.run(o=None)["y"] and has.run(o=items[0])["y"]
    with pytest.raises(tenon.InputError, match="a sequence is given as a list, got float"):
        at.run(s=1.0, i=0)


def test_maps_are_dicts():
    scores = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b"])
    maps = helper.make_sequence_type_proto(onnx.helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))
    graph = helper.make_graph([scores], "graph", [value("x", TensorProto.FLOAT, ["n", 2])],
                              [helper.make_value_info("y", maps)])
    zipped = tenon.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3),
                                                                helper.make_opsetid("", 18)], ir_version=8))
    assert zipped.run(x=[[0.25, 0.75], [1, 0]])["y"] == [{"a": 0.25, "b": 0.75}, {"a": 1.0, "b": 0.0}]


def test_tensors_of_types_that_numpy_lacks():
    tensor = tenon.Tensor(np.array([1, 2], ml_dtypes.bfloat16))
    assert tensor.dtype == "bfloat16" and tensor.bits().dtype == "uint16"
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(tensor)
    assert np.asarray(tensor).dtype == ml_dtypes.bfloat16
    assert np.asarray(tensor, dtype=np.float32).tolist() == [1, 2]
    packed = tenon.Tensor.from_bits(np.array([0x21, 0x43], np.uint8), "int4", (4,))
    assert packed.numpy().astype(int).tolist() == [1, 2, 3, 4] and packed.nbytes == 2
    with pytest.raises(tenon.Error, match="has 2 bytes, 1 were given"):
        tenon.Tensor.from_bits(np.zeros(1, np.uint8), "int4", (4,))
    with pytest.raises(tenon.ArgumentError, match="no element type is called 'float33'"):
        tenon.Tensor.from_bits(np.zeros(1, np.uint8), "float33", (4,))


def test_without_ml_dtypes_there_are_tensors(tmp_path):
    (tmp_path / "m.onnx").write_bytes(model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)],
                                            [value("x", TensorProto.FLOAT, [2])], [value("y", TensorProto.BFLOAT16, [2])]))
    code = """if True:
        import sys
        sys.modules["ml_dtypes"] = None
        import numpy, tenon
        y = tenon.load(sys.argv[1]).run(x=[1.0, -2.0])["y"]
        assert isinstance(y, tenon.Tensor) and y.dtype == "bfloat16" and y.shape == (2,)
        assert numpy.asarray(y.bits()).tolist() == [0x3f80, 0xc000]
        try:
            numpy.asarray(y)
        except TypeError as error:
            print(error)
    """
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "m.onnx"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "install the package ml_dtypes" in run.stdout


def test_an_array_of_no_type_of_onnx_is_an_error():
    with pytest.raises(tenon.InputError, match=r"ONNX has no elements of NumPy's type datetime64"):
        tenon.load(identity()).run(x=np.array(["2020-01-01"], dtype="datetime64[D]"))
