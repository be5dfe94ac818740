#include "dlpack.h"

#include <array>
#include <memory>
#include <utility>

#include "bindings.h"
#include "import_array.h"

namespace tenon::python {
namespace {

struct TypeRow {
  ElementType type;
  dlpack::DataType code;
};

constexpr TypeRow types[] = {
    {ElementType::float32, {dlpack::code_float, 32, 1}},
    {ElementType::uint8, {dlpack::code_uint, 8, 1}},
    {ElementType::int8, {dlpack::code_int, 8, 1}},
    {ElementType::uint16, {dlpack::code_uint, 16, 1}},
    {ElementType::int16, {dlpack::code_int, 16, 1}},
    {ElementType::int32, {dlpack::code_int, 32, 1}},
    {ElementType::int64, {dlpack::code_int, 64, 1}},
    {ElementType::boolean, {dlpack::code_bool, 8, 1}},
    {ElementType::float16, {dlpack::code_float, 16, 1}},
    {ElementType::float64, {dlpack::code_float, 64, 1}},
    {ElementType::uint32, {dlpack::code_uint, 32, 1}},
    {ElementType::uint64, {dlpack::code_uint, 64, 1}},
    {ElementType::complex64, {dlpack::code_complex, 64, 1}},
    {ElementType::complex128, {dlpack::code_complex, 128, 1}},
    {ElementType::bfloat16, {dlpack::code_bfloat, 16, 1}},
    {ElementType::float8e4m3fn, {10, 8, 1}},
    {ElementType::float8e4m3fnuz, {11, 8, 1}},
    {ElementType::float8e5m2, {12, 8, 1}},
    {ElementType::float8e5m2fnuz, {13, 8, 1}},
    {ElementType::float8e8m0, {14, 8, 1}},
};

ElementType type_of(const dlpack::DataType& code) {
  for (const TypeRow& row : types) {
    if (row.code.code == code.code && row.code.bits == code.bits && code.lanes == 1) return row.type;
  }
  throw Error(ErrorCode::unsupported, "an array of DLPack's type " + std::to_string(code.code) + " with " +
                                          std::to_string(code.bits) + " bits cannot be taken");
}

dlpack::DataType code_of(ElementType type) {
  for (const TypeRow& row : types) {
    if (row.type == type) return row.code;
  }
  throw Error(ErrorCode::unsupported, "DLPack has no tensors of " + std::string(dtype_name(type)));
}

bool on_cpu(int32_t device) {
  return device == dlpack::device_cpu || device == dlpack::device_cuda_host || device == dlpack::device_rocm_host;
}

bool on_cuda(int32_t device) { return device == dlpack::device_cuda || device == dlpack::device_cuda_managed; }

[[noreturn]] void fail_on_device(int32_t device, const std::string& reason) {
  throw Error(ErrorCode::unsupported,
              "the array is on another device (" + std::to_string(device) + " in DLPack)" + reason,
              "copy it to the CPU first, such as with .cpu()");
}

// Before the array is asked for: afterwards it would have to be given back.
void require_usable(const dlpack::Device& device) {
  if (on_cpu(device.type)) return;
  if (!on_cuda(device.type)) fail_on_device(device.type, "");
  try {
    over_cuda_memory(ElementType::uint8, {0}, nullptr, nullptr, device.id);
  } catch (const Error& error) {
    fail_on_device(device.type, ": " + error.message());
  }
}

// Where arrays that are asked for must be ready.
thread_local void* ready_in = nullptr;

nb::object ask_for_capsule(nb::handle object, bool is_on_cuda) {
  nb::object method = object.attr("__dlpack__");
  // The producer makes the stream wait for whatever writes the array.
  nb::dict options;
  if (is_on_cuda) options["stream"] = ready_in ? reinterpret_cast<int64_t>(ready_in) : dlpack::default_stream;
  try {
    return method("max_version"_a = nb::make_tuple(dlpack::major_version, dlpack::minor_version), **options);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method(**options);
}

template <typename Capsule>
ForeignArray take(nb::object& capsule, const char* name, const char* used_name, bool read_only) {
  auto* managed = static_cast<Capsule*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!managed || PyCapsule_SetName(capsule.ptr(), used_name) != 0) nb::raise_python_error();
  // From here on the memory is ours to give back. The producer's code may be Python's, so it is called with the GIL.
  std::shared_ptr<void> owner(managed, [](void* pointer) {
    if (nb::detail::cleanup_guard guard{}) {
      auto* array = static_cast<Capsule*>(pointer);
      if (array->deleter) array->deleter(array);
    }
  });
  const dlpack::Array& array = managed->array;
  require_usable(array.device);
  ForeignArray result;
  if (on_cuda(array.device.type)) result.gpu = array.device.id;
  result.type = type_of(array.type);
  result.owner = std::move(owner);
  result.data = static_cast<char*>(array.data) + array.byte_offset;
  result.read_only = read_only;
  const auto rank = static_cast<size_t>(array.rank);
  result.shape = Shape(std::span<const int64_t>(array.shape, rank));
  if (array.strides) {
    const int64_t bytes = bits_of(result.type) / 8;
    for (size_t axis = 0; axis < rank; ++axis) result.byte_strides.push_back(array.strides[axis] * bytes);
  }
  return result;
}

template <typename Capsule>
struct Exported {
  Capsule managed{};
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <typename Capsule>
nb::object make_capsule(const Tensor& tensor, const char* name) {
  auto exported = std::make_unique<Exported<Capsule>>();
  exported->tensor = tensor;
  exported->shape.assign(tensor.shape().begin(), tensor.shape().end());
  exported->strides.resize(exported->shape.size());
  int64_t stride = 1;
  for (size_t axis = exported->shape.size(); axis-- > 0;) {
    exported->strides[axis] = stride;
    stride *= exported->shape[axis];
  }
  dlpack::Array& array = exported->managed.array;
  array.data = exported->tensor.mutable_raw();
  array.device = {is_on_gpu(tensor) ? dlpack::device_cuda : dlpack::device_cpu, device_number(tensor)};
  array.rank = tensor.rank();
  array.type = code_of(tensor.type());
  array.shape = exported->shape.data();
  array.strides = exported->strides.data();
  exported->managed.context = exported.get();
  exported->managed.deleter = [](Capsule* managed) { delete static_cast<Exported<Capsule>*>(managed->context); };
  // A capsule that nobody took still has its first name.
  nb::object capsule = nb::steal(PyCapsule_New(&exported->managed, name, [](PyObject* object) {
    const char* current = PyCapsule_GetName(object);
    const bool versioned = std::is_same_v<Capsule, dlpack::Versioned>;
    const char* unused = versioned ? dlpack::versioned_name : dlpack::managed_name;
    if (!current || std::string_view(current) != unused) return;
    auto* managed = static_cast<Capsule*>(PyCapsule_GetPointer(object, unused));
    managed->deleter(managed);
  }));
  if (!capsule.is_valid()) nb::raise_python_error();
  static_cast<void>(exported.release());
  return capsule;
}

ForeignArray take_capsule(nb::object capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::versioned_name)) {
    auto* versioned = static_cast<dlpack::Versioned*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::versioned_name));
    if (versioned->major != dlpack::major_version) {
      throw Error(ErrorCode::unsupported, "the array speaks version " + std::to_string(versioned->major) +
                                              " of DLPack, Tenon version " + std::to_string(dlpack::major_version));
    }
    return take<dlpack::Versioned>(capsule, dlpack::versioned_name, dlpack::used_versioned_name,
                                   (versioned->flags & dlpack::flag_read_only) != 0);
  }
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::managed_name)) {
    return take<dlpack::Managed>(capsule, dlpack::managed_name, dlpack::used_managed_name, false);
  }
  throw Error(ErrorCode::invalid_argument, "__dlpack__ did not return a DLPack capsule");
}

}  // namespace

ReadyInStream::ReadyInStream(void* stream) : before_(std::exchange(ready_in, stream)) {}
ReadyInStream::~ReadyInStream() { ready_in = before_; }

ForeignArray import_dlpack(nb::handle object) {
  bool is_on_cuda = false;
  if (nb::hasattr(object, "__dlpack_device__")) {
    nb::tuple pair(object.attr("__dlpack_device__")());
    const dlpack::Device device{nb::cast<int32_t>(nb::int_(pair[0])), nb::cast<int32_t>(nb::int_(pair[1]))};
    require_usable(device);
    is_on_cuda = on_cuda(device.type);
  }
  ForeignArray array = take_capsule(ask_for_capsule(object, is_on_cuda));
  const bool comes_after_it = is_on_cuda && ready_in;  // what reads it, as it is in that stream
  if (array.gpu >= 0 && !comes_after_it) {
    // A producer that did not say where the array is was not told of the stream either: then all work is waited for.
    void* stream = is_on_cuda ? reinterpret_cast<void*>(dlpack::default_stream) : nullptr;
    nb::gil_scoped_release free;
    wait_for_cuda_stream(stream, array.gpu);
  }
  return array;
}

nb::object export_dlpack(const Tensor& tensor, bool versioned) {
  if (!versioned) return make_capsule<dlpack::Managed>(tensor, dlpack::managed_name);
  nb::object capsule = make_capsule<dlpack::Versioned>(tensor, dlpack::versioned_name);
  auto* managed = static_cast<dlpack::Versioned*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::versioned_name));
  managed->major = dlpack::major_version;
  managed->minor = dlpack::minor_version;
  return capsule;
}

}  // namespace tenon::python
