#include <nanobind/nanobind.h>

#include "bindings.h"

NB_MODULE(_tenon, module) {
  using namespace tenon::python;
  // What is still alive when the interpreter ends is the user's affair; Tenon does not print.
  nb::set_leak_warnings(false);
  module.doc() = "What tenon is made of. Import tenon instead.";
  const std::string_view version = tenon::version();
  module.attr("version") = nb::str(version.data(), version.size());
  bind_errors(module);
  bind_tensors(module);
  bind_reports(module);
  bind_models(module);
  bind_tools(module);
  bind_compiled(module);
  bind_onnx_models(module);
  bind_convert(module);
  bind_surgery(module);
  bind_check(module);
  bind_watch(module);
  bind_health(module);
  bind_compare(module);
  bind_quantize(module);
  bind_report_page(module);
}
