"""Tensors of the GPU from Python; tests/test_cuda.py runs this with the stand-in for NVIDIA's libraries and two GPUs."""
import ctypes
import gc
import os
import pathlib

import numpy as np
import onnx
import pytest
import tenon
import tenon.onnxruntime as ort
from onnx import TensorProto, helper
from tenon.onnxruntime.capi.onnxruntime_pybind11_state import OrtValueVector

DRIVER = ctypes.CDLL(str(pathlib.Path(os.environ["TENON_CUDA_PATH"], "libcuda.so.1")))
for _name in ("emulated_given", "emulated_waits"):
    getattr(DRIVER, _name).restype, getattr(DRIVER, _name).argtypes = ctypes.c_int64, [ctypes.c_void_p]
X = np.array([[-1, 2, 3], [4, -5, 6]], np.float32)
DEFAULT_STREAM = 1  # as DLPack numbers it


def value(name, kind=TensorProto.FLOAT, shape=("n", 3)):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [onnx.numpy_helper.from_array(a, name) for name, a in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()


RELU = model([helper.make_node("Relu", ["x"], ["y"])], [value("x")], [value("y")])
# y is read as text on the host too; kept comes from no node of the GPU; places has a size that only the run knows.
MIXED = model([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Cast", ["y"], ["text"], to=TensorProto.STRING),
               helper.make_node("Identity", ["c"], ["kept"]), helper.make_node("NonZero", ["y"], ["places"]),
               helper.make_node("Identity", ["x"], ["same"])],
              [value("x")], [value("y"), value("text", TensorProto.STRING), value("kept", TensorProto.INT64, [2]),
                             value("places", TensorProto.INT64, [2, "m"]), value("same")],
              [("c", np.array([7, 8]))])


@pytest.fixture(scope="module")
def relu():
    return tenon.load(RELU, providers=["cuda", "cpu"])


class Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("array", Array), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("flags", ctypes.c_uint64), ("array", Array)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Foreign:
    """An array of another library in memory that the driver gave, or in that of a NumPy array."""

    def __init__(self, content, device=(2, 0), versioned=True, strides=None, read_only=False, offset=0):
        self.device, self.versioned, self.streams, self.deleted, self.content = device, versioned, [], 0, content
        if device[0] == 2:
            address = ctypes.c_uint64()
            assert DRIVER.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(content.nbytes + offset)) == 0
            self.address = address.value
            assert DRIVER.cuMemcpyHtoD_v2(ctypes.c_uint64(self.address + offset), ctypes.c_void_p(content.ctypes.data),
                                          ctypes.c_size_t(content.nbytes)) == 0
        else:
            self.address = content.ctypes.data
        self.managed = (Versioned if versioned else Managed)()
        if versioned:
            self.managed.major, self.managed.minor, self.managed.flags = 1, 0, int(read_only)
        array = self.managed.array
        array.data, array.byte_offset, array.rank = self.address, offset, content.ndim
        array.device[:] = device
        array.code, array.bits, array.lanes = 2, 32, 1
        self.sizes = (ctypes.c_int64 * content.ndim)(*content.shape)
        array.shape = self.sizes
        if strides:
            self.strides = (ctypes.c_int64 * content.ndim)(*strides)
            array.strides = self.strides
        self.managed.deleter = type(self.managed.deleter)(self.delete)

    def delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if not self.versioned and "max_version" in options:
            raise TypeError("unexpected keyword max_version")
        self.streams.append(options.get("stream"))
        return new_capsule(ctypes.addressof(self.managed), b"dltensor_versioned" if self.versioned else b"dltensor", None)


class OnlyDlpack:
    """A tensor as other libraries see it."""

    def __init__(self, tensor, new):
        self.tensor, self.new = tensor, new

    def __dlpack__(self, **options):
        if not self.new and "max_version" in options:
            raise TypeError("unexpected keyword max_version")
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_a_tensor_on_the_gpu():
    tensor = tenon.Tensor(X).to("cuda")
    assert (tensor.device, tensor.shape, tensor.dtype, tensor.nbytes) == ("cuda", (2, 3), "float32", 24)
    assert tensor.to("cuda").address == tensor.address and tenon.Tensor(X).to("cpu").device == "cpu"
    back = tensor.to("cpu")
    assert back.device == "cpu" and back.address != tensor.address
    for array in (tensor.numpy(), np.asarray(tensor), np.asarray(back)):
        np.testing.assert_array_equal(array, X)
    assert "on cuda" in repr(tensor) and "[2, 3]" in repr(tensor)
    with pytest.raises(BufferError, match="on the GPU"):
        memoryview(tensor)
    with pytest.raises(ValueError, match="only in a copy"):
        tensor.__array__(copy=False)
    with pytest.raises(tenon.ArgumentError, match="'cpu' or 'cuda', not 'tpu'"):
        tensor.to("tpu")
    with pytest.raises(tenon.ArgumentError, match="text stays"):
        tenon.Tensor(["a"]).to("cuda")


def test_bits_stay_on_the_gpu():
    bits = tenon.Tensor(X).to("cuda").bits()
    assert (bits.device, bits.dtype) == ("cuda", "uint32")
    again = tenon.Tensor.from_bits(bits, "float32", [3, 2])
    assert again.device == "cuda" and again.address == bits.address
    np.testing.assert_array_equal(again.numpy(), X.reshape(3, 2))
    packed = tenon.Tensor.packed(np.arange(5, dtype=np.uint8), "uint4")
    assert packed.to("cuda").unpacked().numpy().tolist() == [0, 1, 2, 3, 4]


def test_elements_are_copied_between_memories():
    there, other = tenon.Tensor.empty([2, 3], "float32", "cuda"), tenon.Tensor.empty([2, 3], "float32", "cuda")
    there.copy_from(X)
    other.copy_from(there)
    here = tenon.Tensor.empty([2, 3], "float32")
    here.copy_from(other)
    np.testing.assert_array_equal(here.numpy(), X)
    with pytest.raises(tenon.Error, match=r"float.* \[3\] is to be copied into"):
        there.copy_from(np.zeros(3, np.float32))


@pytest.mark.parametrize("new", [True, False])
def test_dlpack_between_tensors(new):
    tensor = tenon.Tensor(X).to("cuda")
    assert tensor.__dlpack_device__() == (2, 0)
    taken = tenon.Tensor(OnlyDlpack(tensor, new))
    assert taken.device == "cuda" and taken.address == tensor.address
    del tensor
    gc.collect()
    np.testing.assert_array_equal(taken.numpy(), X)
    tenon.Tensor(X).to("cuda").__dlpack__()  # a capsule that nobody takes


def test_dlpack_to_the_host_and_as_a_copy():
    tensor = tenon.Tensor(X).to("cuda")
    np.testing.assert_array_equal(np.from_dlpack(OnlyDlpack(tensor.to("cpu"), True)), X)

    class Asked(OnlyDlpack):
        def __init__(self, device, **asked):
            super().__init__(tensor, True)
            self.device, self.asked = device, asked

        def __dlpack__(self, **options):
            options.pop("stream", None)
            return self.tensor.__dlpack__(**options, **self.asked)

        def __dlpack_device__(self):
            return self.device

    host = tenon.Tensor(Asked((1, 0), dl_device=(1, 0)))
    assert host.device == "cpu"
    np.testing.assert_array_equal(host.numpy(), X)
    copy = tenon.Tensor(Asked((2, 0), copy=True))
    assert copy.device == "cuda" and copy.address != tensor.address
    np.testing.assert_array_equal(copy.numpy(), X)
    with pytest.raises(BufferError, match="on the GPU"):
        tensor.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="on the CPU"):
        tenon.Tensor(X).__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize("versioned", [True, False])
def test_a_foreign_array_is_taken_where_it_is(relu, versioned):
    x = Foreign(X, versioned=versioned)
    waits = DRIVER.emulated_waits(DEFAULT_STREAM)
    tensor = tenon.Tensor(x)
    assert tensor.device == "cuda" and tensor.address == x.address
    # The producer is told of the default stream, which is waited for.
    assert x.streams[-1] == DEFAULT_STREAM and DRIVER.emulated_waits(DEFAULT_STREAM) == waits + 1
    view = tensor.bits()
    del tensor
    gc.collect()
    assert x.deleted == 0
    del view
    gc.collect()
    assert x.deleted == 1
    np.testing.assert_array_equal(relu.run(x=x)["y"], np.maximum(X, 0))
    gc.collect()
    assert x.deleted == 2


def test_a_foreign_array_may_start_anywhere_in_its_memory(relu):
    x = Foreign(X, offset=4)
    assert tenon.Tensor(x).address == x.address + 4
    np.testing.assert_array_equal(relu.run(x=x)["y"], np.maximum(X, 0))


def test_a_read_only_array_is_copied_for_a_tensor(relu):
    x = Foreign(X, read_only=True)
    tensor = tenon.Tensor(x)
    assert tensor.device == "cuda" and tensor.address != x.address and x.deleted == 1
    np.testing.assert_array_equal(tensor.numpy(), X)
    np.testing.assert_array_equal(relu.run(x=x)["y"], np.maximum(X, 0))
    with pytest.raises(tenon.ArgumentError, match="cannot be written"):
        relu.run(x=X, into={"y": x})


def test_arrays_that_cannot_be_taken(relu):
    turned = Foreign(X, strides=(1, 2))
    with pytest.raises(tenon.Error, match="row-major order(.|\n)*contiguous"):
        relu.run(x=turned)
    assert turned.deleted == 1
    there = Foreign(X, device=(2, 7))
    with pytest.raises(tenon.UnavailableError, match="there is no GPU 7(.|\n)*to the CPU"):
        relu.run(x=there)
    assert there.streams == []
    with pytest.raises(tenon.UnavailableError, match="another device"):
        relu.run(x=Foreign(X, device=(8, 0)))


def test_pinned_memory_is_the_hosts(relu):
    x = Foreign(X, device=(3, 0))
    assert tenon.Tensor(x).device == "cpu" and x.streams == [None]
    np.testing.assert_array_equal(relu.run(x=x)["y"], np.maximum(X, 0))


def test_another_gpu_than_the_models(relu):
    x = Foreign(X, device=(2, 1))
    assert tenon.Tensor(x).__dlpack_device__() == (2, 1)
    with pytest.raises(tenon.Error, match="memory of cuda:1, the model runs on cuda") as caught:
        relu.run(x=x)
    assert caught.value.tensor == "x"
    with pytest.raises(tenon.Error, match="memory of cuda:1"):
        relu.run(x=X, into={"y": x})
    np.testing.assert_array_equal(tenon.load(RELU).run(x=x)["y"], np.maximum(X, 0))


@pytest.mark.parametrize("providers", [["cuda", "cpu"], ["cpu"]])
def test_outputs_on_the_gpu(providers):
    loaded = tenon.load(RELU, providers=providers)
    made = []
    for rows in (2, 5, 2, 2, 0):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32) + len(made)
        y = loaded.run(x=tenon.Tensor(x).to("cuda"), outputs_on="cuda")["y"]
        assert isinstance(y, tenon.Tensor) and y.device == "cuda"
        made.append((x, y))
    for x, y in made:  # later runs have written elsewhere
        np.testing.assert_array_equal(y.numpy(), np.maximum(x, 0))
    y = loaded.run(loaded.run(x=X - 3, outputs_on="cuda")["y"])["y"]
    assert isinstance(y, np.ndarray)
    np.testing.assert_array_equal(y, np.maximum(X - 3, 0))
    assert isinstance(loaded.run(x=X, outputs_on={"y": "cpu"})["y"], np.ndarray)
    with pytest.raises(tenon.Error, match="no output 'z'"):
        loaded.run(x=X, outputs_on={"z": "cuda"})
    with pytest.raises(tenon.Error, match="tpu"):
        loaded.run(x=X, outputs_on="tpu")


@pytest.mark.parametrize("providers", [["cuda", "cpu"], ["cpu"]])
def test_outputs_into_memory_of_the_gpu(providers):
    loaded = tenon.load(RELU, providers=providers)
    y, foreign = tenon.Tensor.empty([2, 3], "float32", "cuda"), Foreign(np.zeros_like(X))
    for _ in range(3):
        assert loaded.run(x=X, into={"y": y})["y"] is y
    assert loaded.run(x=X, into={"y": foreign})["y"] is foreign
    np.testing.assert_array_equal(y.numpy(), np.maximum(X, 0))
    np.testing.assert_array_equal(tenon.Tensor(foreign).numpy(), np.maximum(X, 0))
    with pytest.raises(tenon.Error, match="the run made"):
        loaded.run(x=X[:1], into={"y": y})


@pytest.mark.parametrize("providers", [["cuda", "cpu"], ["cpu"]])
def test_outputs_that_the_host_makes_or_reads(providers):
    loaded = tenon.load(MIXED, providers=providers)
    expected = tenon.load(MIXED).run(x=X)
    for x in (X, tenon.Tensor(X).to("cuda"), Foreign(X)):
        made = loaded.run(x=x, outputs_on="cuda")
        assert {name: getattr(one, "device", "cpu") for name, one in made.items()} == {
            "y": "cuda", "text": "cpu", "kept": "cuda", "places": "cuda", "same": "cuda"}
        for name, one in made.items():
            np.testing.assert_array_equal(one.numpy() if name != "text" else one, expected[name])
    into = {name: tenon.Tensor(np.zeros_like(expected[name])).to("cuda") for name in ("y", "kept", "places", "same")}
    loaded.run(x=X, into=into)
    for name, one in into.items():
        np.testing.assert_array_equal(one.numpy(), expected[name])


def test_runs_in_the_callers_stream():
    stream = ctypes.c_void_p()
    assert DRIVER.cuStreamCreate(ctypes.byref(stream), 1) == 0
    loaded = tenon.load(RELU, providers=["cuda", "cpu"], stream=stream.value)
    own = tenon.load(RELU, providers=["cuda", "cpu"])
    x, y = tenon.Tensor(X).to("cuda"), tenon.Tensor.empty([2, 3], "float32", "cuda")
    for _ in range(4):  # the later ones are replays of a graph
        given, waits = DRIVER.emulated_given(stream), DRIVER.emulated_waits(stream)
        loaded.run(x=x, into={"y": y})
        assert DRIVER.emulated_given(stream) > given and DRIVER.emulated_waits(stream) == waits + 1
    np.testing.assert_array_equal(y.numpy(), np.maximum(X, 0))
    given = DRIVER.emulated_given(stream)
    own.run(x=x)
    assert DRIVER.emulated_given(stream) == given
    session = ort.InferenceSession(RELU, providers=[("CUDAExecutionProvider", {"user_compute_stream": str(stream.value)}),
                                                    "CPUExecutionProvider"])
    session.run(None, {"x": X})
    assert DRIVER.emulated_given(stream) > given
    assert session.get_provider_options()["CUDAExecutionProvider"]["user_compute_stream"] == str(stream.value)
    del loaded, session
    gc.collect()
    assert DRIVER.cuStreamDestroy_v2(stream) == 0  # it is still the caller's to give back
    with pytest.raises(Exception, match="address of a stream as a number"):
        ort.InferenceSession(RELU, providers=[("CUDAExecutionProvider", {"user_compute_stream": "mine"})])


@pytest.fixture
def late(monkeypatch):
    """The stand-in does nothing before somebody waits for it."""
    monkeypatch.setenv("TENON_EMULATED_ORDER", "late")  # which the driver reads: os.environ sets the process's own
    stream = ctypes.c_void_p()
    assert DRIVER.cuStreamCreate(ctypes.byref(stream), 1) == 0
    yield stream.value
    assert DRIVER.cuStreamDestroy_v2(stream) == 0


def content(tensor):
    """Of memory of the stand-in's GPU, at this moment."""
    return np.ctypeslib.as_array((ctypes.c_float * 6).from_address(tensor.address)).reshape(2, 3).copy()


def test_runs_that_return_early(late):
    loaded = tenon.load(RELU, providers=["cuda", "cpu"], stream=late)
    y = tenon.Tensor(np.full_like(X, 7)).to("cuda")
    waits = DRIVER.emulated_waits(late), DRIVER.emulated_waits(DEFAULT_STREAM)
    x = Foreign(X)
    assert list(loaded.run(x=x, into={"y": y}, wait=False)) == ["y"]
    assert x.streams[-1] == late and (DRIVER.emulated_waits(late), DRIVER.emulated_waits(DEFAULT_STREAM)) == waits
    assert (content(y) == 7).all() and x.deleted == 0
    tenon.wait_for_cuda(late)
    np.testing.assert_array_equal(content(y), np.maximum(X, 0))
    made = loaded.run(x=tenon.Tensor(-X).to("cuda"), outputs_on="cuda", wait=False)["y"]
    np.testing.assert_array_equal(made.numpy(), np.maximum(-X, 0))  # waits by itself
    np.testing.assert_array_equal(loaded.run(x=X, wait=False)["y"], np.maximum(X, 0))
    with pytest.raises(tenon.ArgumentError, match="no stream of the caller's"):
        tenon.load(RELU, providers=["cuda", "cpu"]).run(x=X, wait=False)
    del loaded
    gc.collect()


def test_onnxruntimes_option_not_to_wait(late):
    options = ort.RunOptions()
    options.add_run_config_entry("disable_synchronize_execution_providers", "1")
    for stream in (late, None):
        given = {"user_compute_stream": str(stream)} if stream else {}
        session = ort.InferenceSession(RELU, providers=[("CUDAExecutionProvider", given), "CPUExecutionProvider"])
        y = tenon.Tensor(np.full_like(X, 7)).to("cuda")
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0))
        binding.bind_output("y", "cuda", 0, np.float32, [2, 3], y.address)
        session.run_with_iobinding(binding, options)
        assert (content(y) == 7).all() == bool(stream)
        binding.synchronize_outputs()
        np.testing.assert_array_equal(content(y), np.maximum(X, 0))
        del session, binding
        gc.collect()


def test_ort_values():
    one = ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0)
    assert (one.device_name(), one.shape(), one.data_type()) == ("cuda", [2, 3], "tensor(float)")
    assert one.data_ptr() != X.ctypes.data and one.__dlpack_device__() == (2, 0)
    np.testing.assert_array_equal(one.numpy(), X)
    taken = ort.OrtValue.from_dlpack(one)
    assert taken.device_name() == "cuda" and taken.data_ptr() == one.data_ptr()
    taken.update_inplace(X + 1)
    np.testing.assert_array_equal(one.numpy(), X + 1)
    empty = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "cuda", 0)
    empty.update_inplace(one)
    host = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
    host.update_inplace(empty)
    np.testing.assert_array_equal(host.numpy(), X + 1)
    with pytest.raises(RuntimeError, match="the array is of float32"):
        empty.update_inplace(X[:1])
    with pytest.raises(tenon.UnavailableError, match="'cuda' 1: values live on the CPU and GPU 0"):
        ort.OrtValue.ortvalue_from_numpy(X, "cuda", 1)


@pytest.fixture(scope="module", params=["CUDAExecutionProvider", "CPUExecutionProvider"])
def session(request):
    return ort.InferenceSession(RELU, providers=[request.param])


def test_sessions_take_values_of_the_gpu(session):
    x = ort.OrtValue.ortvalue_from_numpy(X, "cuda")
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.maximum(X, 0))
    made = session.run_with_ort_values(["y"], {"x": x})[0]
    assert made.device_name() == "cpu"
    fetches = OrtValueVector()
    session.run_with_ortvaluevector(None, ["x"], [x], ["y"], fetches, [ort.OrtDevice.make("cuda", 0)])
    assert fetches[0].device_name() == "cuda"
    np.testing.assert_array_equal(fetches[0].numpy(), np.maximum(X, 0))


def test_bindings_to_the_gpu(session):
    binding = session.io_binding()
    x, y = Foreign(X), Foreign(np.zeros_like(X))
    binding.bind_input("x", "cuda", 0, np.float32, X.shape, x.address)
    binding.bind_output("y", "cuda", 0, np.float32, X.shape, y.address)
    waits = DRIVER.emulated_waits(None)
    binding.synchronize_inputs()
    assert DRIVER.emulated_waits(None) == waits + 1
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    made = binding.get_outputs()[0]
    assert made.device_name() == "cuda" and made.data_ptr() == y.address
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], np.maximum(X, 0))
    np.testing.assert_array_equal(tenon.Tensor(y).numpy(), np.maximum(X, 0))
    assert (x.streams, y.deleted) == ([], 1)

    # Memory that the run allocates stays as long as sizes do.
    binding.bind_output("y", "cuda")
    addresses = []
    for shift in range(3):
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X - shift, "cuda"))
        session.run_with_iobinding(binding)
        made = binding.get_outputs()[0]
        assert made.device_name() == "cuda"
        addresses.append(made.data_ptr())
        np.testing.assert_array_equal(made.numpy(), np.maximum(X - shift, 0))
    assert len(set(addresses)) == 1
    binding.bind_cpu_input("x", X[:1])
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].device_name() == "cuda"
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], np.maximum(X[:1], 0))

    binding.clear_binding_outputs()
    value_there = ort.OrtValue.ortvalue_from_shape_and_type([1, 3], np.float32, "cuda")
    binding.bind_ortvalue_output("y", value_there)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(value_there.numpy(), np.maximum(X[:1], 0))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].device_name() == "cpu"
    with pytest.raises(tenon.UnavailableError, match="no memory on the device 'cuda' 1"):
        binding.bind_output("y", "cuda", 1)


def test_what_reads_inputs_on_the_host():
    """A run that is watched, and tools that look at values."""
    x = tenon.Tensor(np.full_like(X, np.inf)).to("cuda")
    for providers in (["cuda", "cpu"], ["cpu"]):
        loaded = tenon.load(RELU, providers=providers)
        assert [source.name for source in tenon.find_nan(loaded, {"x": x}).bad_sources] == ["x"]
        steps = []
        made = loaded.run(x=x, outputs_on="cuda", profile=steps)["y"]
        assert steps and made.device == "cuda"
    assert tenon.difference(tenon.Tensor(X).to("cuda"), X) == ""


def test_weights_on_the_gpu():
    """They are read on the host when a model is loaded."""
    weighted = model([helper.make_node("Add", ["x", "c"], ["y"])], [value("x")], [value("y")], [("c", np.ones(3, np.float32))])
    for providers in (["cuda", "cpu"], ["cpu"]):
        loaded = tenon.load(weighted, providers=providers, initializers={"c": tenon.Tensor(X[0]).to("cuda")})
        np.testing.assert_array_equal(loaded.run(x=X)["y"], X + X[0])
