#include "tenon/tensor.h"

#include <memory>

#include "bindings.h"
#include "dlpack.h"
#include "tenon/tools/value_text.h"

namespace tenon::python {
namespace {

struct BufferSizes {
  std::vector<Py_ssize_t> shape, strides;
};

int get_buffer(PyObject* object, Py_buffer* view, int) {
  const nb::handle self(object);
  const auto& tensor = *nb::cast<const Tensor*>(self);
  if (is_on_gpu(tensor)) {
    PyErr_SetString(PyExc_BufferError, "the tensor is on the GPU: use tensor.numpy(), tensor.to('cpu') or DLPack");
    view->obj = nullptr;
    return -1;
  }
  const char* format = buffer_format(tensor.type());
  if (!format) {
    PyErr_Format(PyExc_BufferError, "the buffer protocol has no elements of %s: use numpy.asarray(tensor) or DLPack",
                 std::string(dtype_name(tensor.type())).c_str());
    view->obj = nullptr;
    return -1;
  }
  auto sizes = std::make_unique<BufferSizes>();
  sizes->shape.assign(tensor.shape().begin(), tensor.shape().end());
  sizes->strides.resize(sizes->shape.size());
  const Py_ssize_t item = bits_of(tensor.type()) / 8;
  Py_ssize_t stride = item;
  for (size_t axis = sizes->shape.size(); axis-- > 0;) {
    sizes->strides[axis] = stride;
    stride *= sizes->shape[axis];
  }
  view->buf = const_cast<void*>(tensor.raw());
  view->obj = Py_NewRef(object);
  view->len = tensor.bytes();
  view->itemsize = item;
  view->readonly = 0;
  view->format = const_cast<char*>(format);
  view->ndim = tensor.rank();
  view->shape = sizes->shape.data();
  view->strides = sizes->strides.data();
  view->suboffsets = nullptr;
  view->internal = sizes.release();
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<BufferSizes*>(view->internal); }

PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                              {0, nullptr}};

nb::tuple shape_tuple(const Shape& shape) {
  nb::list sizes;
  for (int64_t size : shape) sizes.append(size);
  return nb::tuple(sizes);
}

// What keeps the memory of a tensor alive, and says which device has it.
std::shared_ptr<void> owner_of(Tensor tensor) {
  if (is_on_gpu(tensor)) return tensor.owner();
  return std::make_shared<Tensor>(std::move(tensor));
}

// The elements' bits as unsigned integers of the same shape; as flat bytes where no integers are as wide.
Tensor bits(const Tensor& tensor) {
  if (tensor.type() == ElementType::string) throw Error(ErrorCode::unsupported, "strings have no bits");
  const std::shared_ptr<void> owner = owner_of(tensor);
  void* data = const_cast<void*>(tensor.raw());
  switch (bits_of(tensor.type())) {
    case 16:
      return Tensor::over(ElementType::uint16, tensor.shape(), data, owner);
    case 32:
      return Tensor::over(ElementType::uint32, tensor.shape(), data, owner);
    case 64:
      return Tensor::over(ElementType::uint64, tensor.shape(), data, owner);
    case 8:
      return Tensor::over(ElementType::uint8, tensor.shape(), data, owner);
    default:
      return Tensor::over(ElementType::uint8, {tensor.bytes()}, data, owner);
  }
}

Tensor from_bits(nb::handle array, const std::string& dtype, nb::handle sizes) {
  const ElementType type = element_type_named(dtype);
  const Shape shape = shape_of(sizes);
  std::optional<Tensor> source = import_array(array, ReadOnly::copy, Memory::any);
  if (!source || type == ElementType::string || source->type() == ElementType::string) {
    throw Error(ErrorCode::invalid_argument, "bits are an array of numbers");
  }
  const int64_t needed = byte_size(type, shape.elements());
  if (source->bytes() != needed) {
    throw Error(ErrorCode::shape_mismatch, "a tensor of " + dtype + " " + shape.to_string() + " has " +
                                               std::to_string(needed) + " bytes, " + std::to_string(source->bytes()) +
                                               " were given");
  }
  void* data = source->mutable_raw();
  return Tensor::over(type, shape, data, owner_of(*std::move(source)));
}

// One element a byte, as ml_dtypes has elements below 8 bits.
Tensor unpacked(const Tensor& tensor) {
  if (is_on_gpu(tensor)) return unpacked(on_host(tensor));
  const int width = bits_of(tensor.type());
  if (width >= 8) {
    throw Error(ErrorCode::invalid_argument,
                "elements of " + std::string(dtype_name(tensor.type())) + " are not packed");
  }
  Tensor codes(ElementType::uint8, tensor.shape());
  std::span<uint8_t> to = codes.mutable_data<uint8_t>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    to[static_cast<size_t>(i)] = load_packed(tensor.raw(), width, i);
  }
  return codes;
}

Tensor packed(nb::handle array, const std::string& dtype) {
  const ElementType type = element_type_named(dtype);
  const int width = bits_of(type);
  const std::optional<Tensor> codes = import_array(array, ReadOnly::copy);
  if (!codes || codes->type() != ElementType::uint8 || width >= 8) {
    throw Error(ErrorCode::invalid_argument, "elements of less than 8 bits are packed from an array of uint8");
  }
  Tensor tensor(type, codes->shape());
  std::memset(tensor.mutable_raw(), 0, static_cast<size_t>(tensor.bytes()));
  const std::span<const uint8_t> from = codes->data<uint8_t>();
  const auto mask = static_cast<uint8_t>((1 << width) - 1);
  for (size_t i = 0; i < from.size(); ++i) {
    store_packed(tensor.mutable_raw(), width, static_cast<int64_t>(i), from[i] & mask);
  }
  return tensor;
}

nb::list strings(const Tensor& tensor) {
  nb::list result;
  for (const std::string& text : tensor.data<std::string>()) result.append(python_text(text));
  return result;
}

Tensor from_strings(nb::handle items, nb::handle sizes) {
  Tensor tensor(ElementType::string, shape_of(sizes));
  std::span<std::string> to = tensor.mutable_data<std::string>();
  size_t i = 0;
  for (nb::handle item : nb::iter(items)) {
    if (i == to.size()) break;
    std::optional<std::string> text = onnx_text(item);
    if (!text) {
      throw Error(ErrorCode::type_mismatch,
                  "element " + std::to_string(i) + " is of " + nb::repr(item.type()).c_str() + ", not a string");
    }
    to[i++] = *std::move(text);
  }
  if (i != to.size()) throw Error(ErrorCode::shape_mismatch, "fewer strings than the shape has elements");
  return tensor;
}

// Throws ErrorCode::invalid_argument for names of other memory.
bool names_gpu(std::string_view device) {
  if (device != "cpu" && device != "cuda") {
    throw Error(ErrorCode::invalid_argument,
                "tensors are on the device 'cpu' or 'cuda', not '" + std::string(device) + "'");
  }
  return device == "cuda";
}

Tensor moved_to(const Tensor& tensor, std::string_view device) {
  nb::gil_scoped_release free;
  return names_gpu(device) == is_on_gpu(tensor) ? tensor : is_on_gpu(tensor) ? on_host(tensor) : on_device(tensor);
}

Tensor make_empty(nb::handle sizes, const std::string& dtype, std::string_view device) {
  const ElementType type = element_type_named(dtype);
  return names_gpu(device) ? empty_on_device(type, shape_of(sizes)) : Tensor(type, shape_of(sizes));
}

Tensor over_cuda(uintptr_t address, const std::string& dtype, nb::handle sizes, int gpu) {
  const ElementType type = element_type_named(dtype);
  if (type == ElementType::string) throw Error(ErrorCode::invalid_argument, "text stays in the memory of the host");
  return over_cuda_memory(type, shape_of(sizes), reinterpret_cast<void*>(address), nullptr, gpu);
}

nb::object to_dlpack(Tensor tensor, const nb::kwargs& options) {
  const bool versioned = options.contains("max_version") && !options["max_version"].is_none() &&
                         nb::cast<int>(nb::object(options["max_version"][0])) >= 1;
  const nb::object copy = options.contains("copy") ? nb::object(options["copy"]) : nb::none();
  bool is_copy = false;
  if (options.contains("dl_device") && !options["dl_device"].is_none()) {
    const auto wanted = nb::cast<int>(nb::object(options["dl_device"][0]));
    if (is_on_gpu(tensor) && wanted == dlpack::device_cpu && !copy.is(Py_False)) {
      tensor = on_host(tensor);
      is_copy = true;
    }
    if (wanted != (is_on_gpu(tensor) ? dlpack::device_cuda : dlpack::device_cpu)) {
      throw nb::buffer_error(is_on_gpu(tensor) ? "the tensor is on the GPU" : "the tensor is on the CPU");
    }
  }
  // The consumer's stream need not wait for anything: what makes a tensor is done before Python sees it, or was asked
  // for with run(wait=False), which says that it is up to the caller.
  return export_dlpack(copy.is(Py_True) && !is_copy ? clone_in_place(tensor) : tensor, versioned);
}

nb::object to_numpy(nb::handle tensor) { return nb::module_::import_("tenon._arrays").attr("to_numpy")(tensor); }

}  // namespace

nb::object python_text(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

std::optional<std::string> onnx_text(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) {
    Py_ssize_t length = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &length))
      return std::string(text, static_cast<size_t>(length));
    PyErr_Clear();
    const nb::object encoded = nb::steal(PyUnicode_AsEncodedString(object.ptr(), "utf-8", "surrogateescape"));
    if (!encoded.is_valid()) nb::raise_python_error();
    return onnx_text(encoded);
  }
  if (!PyBytes_Check(object.ptr())) return std::nullopt;
  const nb::bytes bytes = nb::borrow<nb::bytes>(object);
  return std::string(bytes.c_str(), bytes.size());
}

Shape shape_of(nb::handle object) {
  Shape shape;
  for (nb::handle size : nb::iter(object)) {
    const auto length = nb::cast<int64_t>(nb::int_(nb::borrow(size)));
    if (length < 0) throw Error(ErrorCode::invalid_argument, "a size is negative: " + std::to_string(length));
    shape.push_back(length);
  }
  return shape;
}

void bind_tensors(nb::module_& module) {
  nb::class_<Tensor>(module, "Tensor", nb::type_slots(buffer_slots),
                     "A dense tensor of any of ONNX's element types, those that NumPy lacks included.\n\n"
                     "It shares its memory through the buffer protocol and DLPack, so that NumPy, PyTorch and others\n"
                     "read it without a copy: ``numpy.asarray(tensor)``, ``torch.from_dlpack(tensor)``. One in the\n"
                     "memory of a GPU is shared through DLPack; for NumPy it is copied.")
      .def(
          "__init__",
          [](Tensor* self, nb::handle array, std::optional<std::string> dtype) {
            Tensor tensor = import_tensor(array, dtype ? element_type_named(*dtype) : ElementType::undefined,
                                          ReadOnly::copy, Memory::any);
            if (dtype && tensor.type() != element_type_named(*dtype)) {
              throw Error(ErrorCode::type_mismatch, "the array is of " + std::string(dtype_name(tensor.type())) +
                                                        ", a tensor of " + *dtype + " was asked for");
            }
            new (self) Tensor(std::move(tensor));
          },
          "array"_a, "dtype"_a = nb::none(),
          nb::sig("def __init__(self, array: typing.Any, dtype: str | None = None) -> None"),
          "A tensor over the memory of an array, which stays alive as long; a copy of arrays that are read-only or "
          "not\n"
          "contiguous, and of lists, numbers and strings.")
      .def_prop_ro(
          "shape", [](const Tensor& tensor) { return shape_tuple(tensor.shape()); }, "The sizes, outermost first.",
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype", [](const Tensor& tensor) { return dtype_name(tensor.type()); },
          "The element type by the name that NumPy or ml_dtypes has for it, such as ``'float32'`` or ``'bfloat16'``;\n"
          "``'str'`` for strings.")
      .def_prop_ro(
          "nbytes", [](const Tensor& tensor) { return tensor.bytes(); }, "Bytes of all elements.")
      .def_prop_ro(
          "address", [](const Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.raw()); },
          "Where the first element is in memory.")
      .def_prop_ro(
          "device", [](const Tensor& tensor) { return is_on_gpu(tensor) ? "cuda" : "cpu"; },
          "Whose memory it is in: ``'cpu'`` or ``'cuda'``.", nb::sig("def device(self) -> str"))
      .def("to", &moved_to, "device"_a,
           "A copy in the memory of a device, ``'cpu'`` or ``'cuda'``; the tensor itself if it is there.")
      .def(
          "copy_from",
          [](Tensor& tensor, nb::handle source) {
            const Tensor from = import_tensor(source, tensor.type(), ReadOnly::share, Memory::any);
            nb::gil_scoped_release free;
            copy_elements(from, tensor);
          },
          "source"_a, "Writes the elements of an array of the same type and size into the tensor's memory.",
          nb::sig("def copy_from(self, source: typing.Any) -> None"))
      .def_static("empty", &make_empty, "shape"_a, "dtype"_a, "device"_a = "cpu",
                  "A tensor whose elements nobody wrote.",
                  nb::sig("def empty(shape: typing.Iterable[int], dtype: str, device: str = 'cpu') -> Tensor"))
      .def_static("over_cuda", &over_cuda, "address"_a, "dtype"_a, "shape"_a, "gpu"_a = 0,
                  "A tensor over memory of a GPU, which the caller keeps alive. What writes it must be done.",
                  nb::sig("def over_cuda(address: int, dtype: str, shape: typing.Iterable[int], gpu: int = 0) -> "
                          "Tensor"))
      .def(
          "numpy", [](nb::handle self) { return to_numpy(self); },
          "As a NumPy array over the same memory; elements below 8 bits, strings and what is on a GPU are copied.\n"
          "Types that NumPy lacks need the package ml_dtypes.",
          nb::sig("def numpy(self) -> typing.Any"))
      .def("bits", &bits,
           "The same memory as a tensor of unsigned integers as wide as the elements; as flat bytes where there are no "
           "such\n"
           "integers.")
      .def_static("from_bits", &from_bits, "bits"_a, "dtype"_a, "shape"_a,
                  "The reverse of :meth:`bits`: a tensor over an array's memory, whatever its element type.",
                  nb::sig("def from_bits(bits: typing.Any, dtype: str, shape: typing.Iterable[int]) -> Tensor"))
      .def_static(
          "from_strings", &from_strings, "items"_a, "shape"_a, "A tensor of strings, row by row.",
          nb::sig("def from_strings(items: typing.Iterable[str | bytes], shape: typing.Iterable[int]) -> Tensor"))
      .def("strings", &strings, "The elements of a tensor of strings, row by row.",
           nb::sig("def strings(self) -> list[str]"))
      .def("unpacked", &unpacked, "The codes of elements below 8 bits as uint8, one element a byte.")
      .def_static("packed", &packed, "codes"_a, "dtype"_a, "The reverse of :meth:`unpacked`.",
                  nb::sig("def packed(codes: typing.Any, dtype: str) -> Tensor"))
      .def(
          "__dlpack__", [](const Tensor& tensor, const nb::kwargs& options) { return to_dlpack(tensor, options); },
          nb::sig("def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[int, int] | None = None, "
                  "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any"))
      .def(
          "__dlpack_device__",
          [](const Tensor& tensor) {
            return nb::make_tuple(is_on_gpu(tensor) ? dlpack::device_cuda : dlpack::device_cpu, device_number(tensor));
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def(
          "__array__",
          [](nb::handle self, nb::handle dtype, nb::handle copy) {
            return nb::module_::import_("tenon._arrays").attr("as_array")(self, dtype, copy);
          },
          "dtype"_a = nb::none(), "copy"_a = nb::none(),
          nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> typing.Any"))
      .def("__len__",
           [](const Tensor& tensor) {
             if (tensor.rank() == 0) throw nb::type_error("a scalar has no length");
             return tensor.dim(0);
           })
      .def("__repr__", [](const Tensor& tensor) {
        return "<tenon.Tensor " + tools::value_text(on_host(tensor)) + (is_on_gpu(tensor) ? " on cuda>" : ">");
      });

  module.def(
      "wait_for_cuda", [](uintptr_t stream) { wait_for_cuda_stream(reinterpret_cast<void*>(stream)); }, "stream"_a = 0,
      nb::call_guard<nb::gil_scoped_release>(), "Until what a stream of the GPU was given is done; 0: all of them.");

  nb::class_<SparseTensor>(
      module, "SparseTensor",
      "The elements of a tensor that are not zero. ``indices`` are int64: [n] positions in row-major\n"
      "order, or [n, rank].")
      .def(
          "__init__",
          [](SparseTensor* self, nb::handle values, nb::handle indices, nb::handle shape) {
            new (self) SparseTensor{import_tensor(values, ElementType::undefined, ReadOnly::copy),
                                    import_tensor(indices, ElementType::int64, ReadOnly::copy), shape_of(shape)};
          },
          "values"_a, "indices"_a, "shape"_a,
          nb::sig("def __init__(self, values: typing.Any, indices: typing.Any, shape: typing.Iterable[int]) -> None"))
      .def_prop_ro(
          "values", [](const SparseTensor& sparse) { return export_value(sparse.values); },
          nb::sig("def values(self) -> typing.Any"))
      .def_prop_ro(
          "indices", [](const SparseTensor& sparse) { return export_value(sparse.indices); },
          nb::sig("def indices(self) -> typing.Any"))
      .def_prop_ro(
          "shape", [](const SparseTensor& sparse) { return shape_tuple(sparse.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"));
}

}  // namespace tenon::python
