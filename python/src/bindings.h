// What the files of the extension module share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <atomic>

#include "tenon/tenon.h"

namespace tenon::python {

namespace nb = nanobind;
using namespace nb::literals;

// What a run threw: types and shapes that do not fit are then the inputs', if no node found that.
struct ErrorOfRun : Error {
  explicit ErrorOfRun(const Error& error) : Error(error) {}
};

// What `call` returns, called as a part of running a model.
template <typename Call>
auto as_run(Call call) {
  try {
    return call();
  } catch (const Error& error) {
    throw ErrorOfRun(error);
  }
}

void bind_errors(nb::module_& module);
void bind_tensors(nb::module_& module);
void bind_reports(nb::module_& module);
void bind_models(nb::module_& module);
void bind_tools(nb::module_& module);
void bind_compiled(nb::module_& module);
void bind_onnx_models(nb::module_& module);
void bind_convert(nb::module_& module);
void bind_surgery(nb::module_& module);
void bind_check(nb::module_& module);
void bind_watch(nb::module_& module);
void bind_health(nb::module_& module);
void bind_compare(nb::module_& module);
void bind_quantize(nb::module_& module);
void bind_report_page(nb::module_& module);

// What Python calls an element type: the name that NumPy or ml_dtypes has for it, "str" for strings.
std::string_view dtype_name(ElementType type);
// The type of such a name, or of ONNX's own. Throws ErrorCode::invalid_argument.
ElementType element_type_named(std::string_view name);
// The format of the buffer protocol; null for types that it has none for.
const char* buffer_format(ElementType type);

// Something of a Python module, which is imported when it is first asked for.
class ModuleAttribute {
 public:
  constexpr ModuleAttribute(const char* module, const char* name) : module_(module), name_(name) {}
  nb::handle get() {
    PyObject* object = object_.load(std::memory_order_acquire);
    if (!object) {
      // Threads that come at once find the same one; it stays until the process ends.
      object = nb::object(nb::module_::import_(module_).attr(name_)).release().ptr();
      object_.store(object, std::memory_order_release);
    }
    return object;
  }

 private:
  const char *module_, *name_;
  std::atomic<PyObject*> object_ = nullptr;
};

// Whether it is an array of NumPy's, and of no type that is derived from it.
bool is_numpy_array(nb::handle object);

// What becomes of memory that must not be written to: what Python can reach through a Tensor, it can write to.
enum class ReadOnly : unsigned char { share, copy };

// Where imported tensors may be: what is on a GPU is copied to the host, unless it may stay.
enum class Memory : unsigned char { host, any };

// A tensor over the memory of a Python object that has the buffer protocol or DLPack; copied if it is not contiguous,
// or starts where its elements may not. Nothing if the object has neither, or elements that neither can tell.
std::optional<Tensor> import_array(nb::handle object, ReadOnly read_only, Memory memory = Memory::host);
// The same for memory that is written to: throws ErrorCode::invalid_argument where that would need a copy.
Tensor import_destination(nb::handle object);
// As import_array; what has neither protocol (lists, numbers, strings, arrays of types that NumPy lacks) is copied, and
// becomes `declared` where its own type says nothing.
Tensor import_tensor(nb::handle object, ElementType declared, ReadOnly read_only = ReadOnly::share,
                     Memory memory = Memory::host);
// A capsule of DLPack's over the tensor's memory.
nb::object export_dlpack(const Tensor& tensor, bool versioned);

// A value for something that ONNX declares as `type`, such as "seq(tensor(float))"; "" takes what the object is.
Value import_value(nb::handle object, std::string_view type, Memory memory = Memory::host);
// NumPy arrays over the tensors' own memory, and tensors that are on a GPU as they are; lists, dicts and None for
// sequences, maps and empty optionals.
nb::object export_value(const Value& value);

// The tensors of a mapping, by name.
NamedValues import_inputs(nb::handle mapping, const Session& session, Memory memory = Memory::host);

inline bool is_on_gpu(const Tensor& tensor) { return memory_of(tensor) != "host"; }
// A copy in memory of its own, on the device that the tensor is on.
Tensor clone_in_place(const Tensor& tensor);

// ONNX's strings are UTF-8; bytes that are none survive the way through Python.
nb::object python_text(const std::string& text);
// What a str or bytes holds; nothing for other objects.
std::optional<std::string> onnx_text(nb::handle object);

// Throws TypeError where the object is no string.
std::string text_of(nb::handle object);
// Options that are one word or a list of them.
std::vector<std::string> words(nb::handle object);
// The lengths of a shape.
Shape shape_of(nb::handle object);

// Something of C++ that holds a Python object, and may be let go by any thread at any time.
std::shared_ptr<void> share(nb::object object);

}  // namespace tenon::python
