#include "bindings.h"
#include "tenon/error.h"

namespace tenon::python {
namespace {

// The classes are written in Python: tenon/errors.py.
void raise(const Error& error, bool of_run) {
  nb::object exception = nb::module_::import_("tenon.errors")
                             .attr("from_parts")(code_name(error.code()), error.what(), error.message(), error.node(),
                                                 error.tensor(), error.hint(), of_run);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      try {
        raise(error, dynamic_cast<const ErrorOfRun*>(&error) != nullptr);
      } catch (nb::python_error& failed) {
        failed.restore();
      }
    }
  });
}

}  // namespace tenon::python
