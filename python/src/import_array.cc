#include "import_array.h"

#include <cstring>
#include <memory>

namespace tenon::python {
namespace {

// The element type of a buffer; undefined for structures, strings, and numbers of another byte order.
ElementType type_of_format(const char* format, Py_ssize_t bytes) {
  std::string_view text = format ? format : "B";
  if (!text.empty() && (text[0] == '@' || text[0] == '=' || text[0] == '<')) text.remove_prefix(1);
  if (text == "Zf") return ElementType::complex64;
  if (text == "Zd") return ElementType::complex128;
  if (text.size() != 1) return ElementType::undefined;
  const auto sized = [&](ElementType one, ElementType two, ElementType four, ElementType eight) {
    switch (bytes) {
      case 1:
        return one;
      case 2:
        return two;
      case 4:
        return four;
      case 8:
        return eight;
      default:
        return ElementType::undefined;
    }
  };
  switch (text[0]) {
    case '?':
      return ElementType::boolean;
    case 'e':
      return ElementType::float16;
    case 'f':
      return ElementType::float32;
    case 'd':
      return ElementType::float64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return sized(ElementType::int8, ElementType::int16, ElementType::int32, ElementType::int64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return sized(ElementType::uint8, ElementType::uint16, ElementType::uint32, ElementType::uint64);
    default:
      return ElementType::undefined;
  }
}

constinit ModuleAttribute ndarray("numpy", "ndarray");

struct Buffer {
  Py_buffer view{};
  bool held = false;

  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (!held) return;
    if (nb::detail::cleanup_guard guard{}) PyBuffer_Release(&view);
  }
};

// Nothing if the object has no buffer, or one of elements that Tenon has not.
std::optional<ForeignArray> import_buffer(nb::handle object, bool writable) {
  if (!PyObject_CheckBuffer(object.ptr())) return std::nullopt;
  auto buffer = std::make_shared<Buffer>();
  if (PyObject_GetBuffer(object.ptr(), &buffer->view, PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) !=
      0) {
    PyErr_Clear();
    return std::nullopt;
  }
  buffer->held = true;
  const Py_buffer& view = buffer->view;
  ForeignArray array;
  array.type = type_of_format(view.format, view.itemsize);
  if (array.type == ElementType::undefined || bits_of(array.type) != view.itemsize * 8) return std::nullopt;
  for (int axis = 0; axis < view.ndim; ++axis) {
    array.shape.push_back(view.shape[axis]);
    array.byte_strides.push_back(view.strides[axis]);
  }
  array.data = static_cast<char*>(view.buf);
  array.read_only = view.readonly != 0;
  array.owner = std::move(buffer);
  return array;
}

// Whether elements of so many bytes lie in row-major order, without gaps.
template <typename Size, typename Stride>
bool are_in_order(int rank, const Size* sizes, const Stride* strides, int64_t bytes) {
  for (int axis = rank; axis-- > 0;) {
    if (sizes[axis] == 0) return true;
    if (sizes[axis] != 1 && strides[axis] != bytes) return false;
    bytes *= sizes[axis];
  }
  return true;
}

// The strings of an array of objects that lies in order; nothing of other arrays.
std::optional<Tensor> import_objects(nb::handle object) {
  Buffer buffer;
  if (PyObject_GetBuffer(object.ptr(), &buffer.view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  buffer.held = true;
  const Py_buffer& view = buffer.view;
  if (!view.format || std::string_view(view.format) != "O") return std::nullopt;
  if (!are_in_order(view.ndim, view.shape, view.strides, view.itemsize)) return std::nullopt;
  Shape shape;
  for (int axis = 0; axis < view.ndim; ++axis) shape.push_back(view.shape[axis]);
  Tensor tensor(ElementType::string, shape);
  auto* const* item = static_cast<PyObject* const*>(view.buf);
  for (std::string& to : tensor.mutable_data<std::string>()) {
    std::optional<std::string> text = onnx_text(*item++);
    if (!text) return std::nullopt;
    to = *std::move(text);
  }
  return tensor;
}

bool is_contiguous(const ForeignArray& array) {
  if (array.byte_strides.empty()) return true;
  return are_in_order(array.shape.rank(), array.shape.begin(), array.byte_strides.data(), bits_of(array.type) / 8);
}

bool is_aligned(const ForeignArray& array) {
  const size_t needed = std::min<size_t>(static_cast<size_t>(bits_of(array.type) / 8), 8);
  return reinterpret_cast<uintptr_t>(array.data) % needed == 0;
}

void copy_strided(const ForeignArray& array, int axis, const char* from, char*& to, int64_t bytes) {
  if (axis == array.shape.rank()) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    to += bytes;
    return;
  }
  const int64_t stride = array.byte_strides[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < array.shape[axis]; ++i) copy_strided(array, axis + 1, from + i * stride, to, bytes);
}

Tensor over(ForeignArray array) {
  if (array.gpu >= 0)
    return over_cuda_memory(array.type, std::move(array.shape), array.data, std::move(array.owner), array.gpu);
  return Tensor::over(array.type, std::move(array.shape), array.data, std::move(array.owner));
}

Tensor copy_of(const ForeignArray& array) {
  if (array.gpu >= 0) {
    if (!is_contiguous(array)) {
      throw Error(ErrorCode::invalid_argument, "an array on a GPU is taken in row-major order, without gaps",
                  "make a copy of it first, such as with .contiguous()");
    }
    return clone_in_place(over(array));
  }
  Tensor tensor(array.type, array.shape);
  if (tensor.elements() == 0) return tensor;
  if (is_contiguous(array)) {
    std::memcpy(tensor.mutable_raw(), array.data, static_cast<size_t>(tensor.bytes()));
  } else {
    char* to = static_cast<char*>(tensor.mutable_raw());
    copy_strided(array, 0, array.data, to, bits_of(array.type) / 8);
  }
  return tensor;
}

// Runs copy what is on a GPU from there, and into it, so that it may start anywhere.
bool usable_in_place(const ForeignArray& array) {
  return is_contiguous(array) && (array.gpu >= 0 || is_aligned(array));
}

Tensor in_memory(const Tensor& tensor, Memory memory) { return memory == Memory::any ? tensor : on_host(tensor); }

}  // namespace

std::shared_ptr<void> share(nb::object object) {
  PyObject* pointer = object.release().ptr();
  return std::shared_ptr<void>(pointer, [](void* held) {
    if (nb::detail::cleanup_guard guard{}) Py_DECREF(static_cast<PyObject*>(held));
  });
}

bool is_numpy_array(nb::handle object) { return object.type().is(ndarray.get()); }

Tensor clone_in_place(const Tensor& tensor) {
  if (!is_on_gpu(tensor)) return tensor.clone();
  Tensor copy = empty_on_device(tensor.type(), tensor.shape());
  copy_elements(tensor, copy);
  return copy;
}

std::optional<Tensor> import_array(nb::handle object, ReadOnly read_only, Memory memory) {
  if (!is_numpy_array(object) && nb::isinstance<Tensor>(object)) return in_memory(nb::cast<Tensor>(object), memory);
  std::optional<ForeignArray> array = import_buffer(object, false);
  // What NumPy cannot tell through its buffers, it cannot through DLPack either.
  if (!array && !PyObject_CheckBuffer(object.ptr()) && nb::hasattr(object, "__dlpack__")) array = import_dlpack(object);
  if (!array) return std::nullopt;
  const bool must_copy = !usable_in_place(*array) || (array->read_only && read_only == ReadOnly::copy);
  const Tensor tensor = must_copy ? copy_of(*array) : over(std::move(*array));
  return in_memory(tensor, memory);
}

Tensor import_destination(nb::handle object) {
  if (nb::isinstance<Tensor>(object)) return nb::cast<Tensor>(object);
  std::optional<ForeignArray> array = import_buffer(object, true);
  if (!array && !PyObject_CheckBuffer(object.ptr()) && nb::hasattr(object, "__dlpack__")) array = import_dlpack(object);
  if (!array || array->read_only) {
    throw Error(ErrorCode::invalid_argument, "an output cannot be written into this object",
                "give a writable NumPy array, or one with DLPack, of the output's type and shape");
  }
  if (!usable_in_place(*array)) {
    throw Error(ErrorCode::invalid_argument, "an output cannot be written into an array that is not contiguous",
                "give one that is in row-major order, without gaps");
  }
  return over(std::move(*array));
}

Tensor import_tensor(nb::handle object, ElementType declared, ReadOnly read_only, Memory memory) {
  if (declared == ElementType::string && is_numpy_array(object)) {
    if (std::optional<Tensor> tensor = import_objects(object)) return *std::move(tensor);
  }
  if (declared != ElementType::string || nb::isinstance<Tensor>(object)) {
    if (std::optional<Tensor> tensor = import_array(object, read_only, memory)) return *std::move(tensor);
  }
  nb::object made = nb::module_::import_("tenon._arrays")
                        .attr("to_tensor")(object, declared == ElementType::undefined ? "" : dtype_name(declared));
  return nb::cast<Tensor>(made);
}

}  // namespace tenon::python
