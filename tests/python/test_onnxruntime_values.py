"""OrtValue, OrtDevice and IOBinding of tenon.onnxruntime beside onnxruntime's."""
import ml_dtypes
import numpy as np
import pytest
import tenon
import tenon.onnxruntime as ours
from onnx import TensorProto as T
from onnx import helper as h
from side_by_side import assert_same
from small_models import add, identity, linear, model, value

X = np.ones((1, 3), np.float32)


def of(ort, array):
    return ort.OrtValue.ortvalue_from_numpy(array)


@pytest.mark.parametrize("array", [np.arange(6, dtype=np.float32).reshape(2, 3), np.array(3.0), np.zeros((0, 2), np.int64),
                                   np.arange(6, dtype=np.int8).reshape(2, 3).T, np.array([True, False]),
                                   np.array([1, 2], np.float16)], ids=lambda array: f"{array.dtype}{array.shape}")
def test_values_of_arrays(array):
    def behaviour(ort):
        one = of(ort, array)
        return (one.shape(), one.data_type(), one.element_type(), one.device_name(), one.has_value(), one.is_tensor(),
                one.is_sparse_tensor(), one.is_tensor_sequence(), one.tensor_size_in_bytes(), one.numpy(), np.asarray(one),
                one.__dlpack_device__())
    assert_same(behaviour)


def test_values_share_memory():
    def behaviour(ort):
        array = np.arange(6, dtype=np.float32)
        one = of(ort, array)
        arrays = (one.numpy(), np.asarray(one), np.from_dlpack(one))
        return (one.data_ptr() == array.ctypes.data, [np.shares_memory(other, array) for other in arrays],
                ort.OrtValue.from_dlpack(array).data_ptr() == array.ctypes.data)
    assert_same(behaviour)


@pytest.mark.parametrize("element", [np.float32, np.dtype("int32"), "float64", T.INT64, T.BFLOAT16, T.BOOL], ids=repr)
def test_values_of_shapes(element):
    def behaviour(ort):
        one = ort.OrtValue.ortvalue_from_shape_and_type((2, 3), element)
        return one.shape(), one.data_type(), one.element_type(), one.tensor_size_in_bytes()
    assert_same(behaviour)


@pytest.mark.parametrize("array, kind", [(np.ones(2, np.uint16), T.BFLOAT16), (np.ones((2, 2), np.uint8), T.FLOAT8E4M3FN),
                                         (np.ones(2, np.uint8), T.INT4), (np.ones(2, np.uint8), T.BFLOAT16)])
def test_values_of_bits(array, kind):
    def behaviour(ort):
        one = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, kind)
        return one.data_type(), one.element_type(), one.shape()
    assert_same(behaviour)


def test_types_that_numpy_lacks():
    bits = np.array([0x3F80, 0x4000], np.uint16)
    session = ours.InferenceSession(identity(T.BFLOAT16))
    made = session.run(None, {"x": ours.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, T.BFLOAT16)})[0]
    assert made.dtype == ml_dtypes.bfloat16 and made.tolist() == [1, 2]


@pytest.mark.parametrize("data", [np.full((2, 3), 7, np.float32), np.full((3, 2), 7, np.float32),
                                  np.zeros(3, np.float32), [1]], ids=repr)
def test_values_are_updated_in_place(data):
    def behaviour(ort):
        array = np.zeros((2, 3), np.float32)
        of(ort, array).update_inplace(data)
        return array
    assert_same(behaviour)


@pytest.mark.parametrize("behaviour", [
    lambda ort: of(ort, [1.0, 2.0]), lambda ort: ort.OrtValue(), lambda ort: ort.OrtValue(3),
    lambda ort: ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0), lambda ort: ort.OrtValue.ortvalue_from_numpy(X, "foo", 0),
    lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([2], np.float32, "cuda"),
    lambda ort: ort.OrtDevice.make("foo", 0), lambda ort: ort.OrtDevice(0)])
def test_values_that_make_no_sense(behaviour):
    assert_same(behaviour)


@pytest.mark.parametrize("name", ["cpu", "cuda", "gpu", "dml", "npu", "cann", "webgpu"])
def test_devices(name):
    def behaviour(ort):
        device = ort.OrtDevice.make(name, 1)
        return device.device_type(), device.device_id(), device.device_vendor_id(), device.device_mem_type()
    if name == "cpu":
        assert ours.OrtDevice.make("cpu", 0).device_type() == 0
        return
    assert_same(behaviour)


def test_runs_of_values():
    def behaviour(ort, names=None, feed=None):
        feed = {"x": of(ort, X)} if feed is None else {name: of(ort, array) for name, array in feed.items()}
        made = ort.InferenceSession(linear()).run_with_ort_values(names, feed)
        return type(made).__name__, [(one.numpy(), one.data_type()) for one in made]
    assert_same(behaviour)
    assert_same(lambda ort: behaviour(ort, ["z", "y"]))
    assert_same(lambda ort: behaviour(ort, None, {}))
    assert_same(lambda ort: behaviour(ort, None, {"x": X, "q": X}))
    assert_same(lambda ort: behaviour(ort, None, {"x": X.astype(np.float64)}))
    assert_same(lambda ort: ort.InferenceSession(linear()).run_with_ort_values(None, {"x": X}))
    assert_same(lambda ort: ort.InferenceSession(linear()).run(["y"], {"x": of(ort, X)}))


def binding_of(ort, data=None):
    session = ort.InferenceSession(data or linear())
    return session, session.io_binding()


def test_outputs_are_in_the_order_of_binding():
    def behaviour(ort):
        session, binding = binding_of(ort)
        binding.bind_cpu_input("x", X)
        binding.bind_output("z")
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu(), [one.numpy() for one in binding.get_outputs()]
    assert_same(behaviour)


def test_later_runs_write_to_the_same_memory():
    def behaviour(ort):
        session, binding = binding_of(ort)
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        first, copied = binding.get_outputs()[0], binding.copy_outputs_to_cpu()
        binding.bind_cpu_input("x", 2 * X)
        session.run_with_iobinding(binding)
        return first.numpy(), copied, first.data_ptr() == binding.get_outputs()[0].data_ptr()
    assert_same(behaviour)


def test_outputs_may_grow():
    session, binding = binding_of(ours)
    binding.bind_output("y")
    for rows in (1, 4, 2):
        binding.bind_cpu_input("x", np.ones((rows, 3), np.float32))
        session.run_with_iobinding(binding)
        assert binding.get_outputs()[0].shape() == [rows, 2]


def test_outputs_whose_size_follows_from_the_content():
    session, binding = binding_of(ours, model([h.make_node("NonZero", ["x"], ["y"])], [value("x", T.FLOAT, ["n"])],
                                              [value("y", T.INT64, [1, "m"])]))
    binding.bind_output("y")
    for x, expected in (([1, 0, 1], [[0, 2]]), ([1, 1, 1], [[0, 1, 2]]), ([0, 0, 1], [[2]])):
        binding.bind_cpu_input("x", np.array(x, np.float32))
        session.run_with_iobinding(binding)
        assert binding.copy_outputs_to_cpu()[0].tolist() == expected


@pytest.mark.parametrize("shape", [(1, 2), (2, 2)])
def test_memory_of_the_caller(shape):
    def behaviour(ort):
        session, binding = binding_of(ort)
        out = np.zeros(shape, np.float32)
        binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, shape, out.ctypes.data)
        session.run_with_iobinding(binding)
        return out, binding.get_outputs()[0].data_ptr() == out.ctypes.data
    assert_same(behaviour)


def test_values_are_bound():
    def behaviour(ort):
        session, binding = binding_of(ort)
        out = np.zeros((1, 2), np.float32)
        binding.bind_ortvalue_input("x", of(ort, X))
        binding.bind_ortvalue_output("y", of(ort, out))
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return out
    assert_same(behaviour)


def wrong(step):
    def behaviour(ort):
        session, binding = binding_of(ort)
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        step(ort, session, binding)
        session.run_with_iobinding(binding)
    return behaviour


@pytest.mark.parametrize("behaviour", [
    wrong(lambda ort, session, binding: binding.bind_cpu_input("q", X)),
    wrong(lambda ort, session, binding: binding.bind_cpu_input("x", X.astype(np.float64))),
    wrong(lambda ort, session, binding: binding.bind_cpu_input("x", X[0])),
    wrong(lambda ort, session, binding: binding.bind_cpu_input("x", [[1.0, 2.0, 3.0]])),
    wrong(lambda ort, session, binding: binding.clear_binding_inputs()),
    wrong(lambda ort, session, binding: binding.clear_binding_outputs()),
    wrong(lambda ort, session, binding: binding.bind_output("y", buffer_ptr=X.ctypes.data)),
    wrong(lambda ort, session, binding: ort.InferenceSession(add()).run_with_iobinding(binding))])
def test_bindings_that_make_no_sense(behaviour):
    assert_same(behaviour)


def test_vectors_and_copies():
    session = ours.InferenceSession(linear())
    fetches = ours.capi.onnxruntime_pybind11_state.OrtValueVector()
    session.run_with_ortvaluevector(None, ["x"], [of(ours, X)], ["y"], fetches, None)
    assert fetches.element_type_at(0) == 1 and fetches[0].numpy().tolist() == [[7, 8]]
    assert fetches.bool_tensor_indices() == []
    target = np.zeros((1, 3), np.float32)
    ours.copy_tensors([of(ours, X)], [of(ours, target)])
    assert target.tolist() == X.tolist()
    with pytest.raises(ValueError):
        ours.copy_tensors([], [of(ours, target)])
    assert isinstance(session.create_ortvalue_from_shape_and_type([1], np.float32, "cpu"), ours.OrtValue)


def test_a_value_that_is_no_tensor():
    sequence = model([h.make_node("SequenceConstruct", ["x", "x"], ["y"])], [value("x", T.FLOAT, ["n"])],
                     [h.make_tensor_sequence_value_info("y", T.FLOAT, ["n"])])

    def behaviour(ort):
        made = ort.InferenceSession(sequence).run_with_ort_values(None, {"x": of(ort, X[0])})[0]
        return made.data_type(), made.is_tensor(), made.is_tensor_sequence(), made.element_type(), made.has_value()
    assert_same(behaviour)
    with pytest.raises(RuntimeError):
        ours.InferenceSession(sequence).run_with_ort_values(None, {"x": of(ours, X[0])})[0].shape()
    assert issubclass(tenon.RunError, RuntimeError)
