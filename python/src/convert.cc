#include "tenon/tools/convert.h"
#include "onnx_model.h"

namespace tenon::python {

void bind_convert(nb::module_& module) {
  nb::class_<tools::ConversionBlocker>(module, "ConversionBlocker",
                                       "A node that cannot be written in the operator sets that were asked for.")
      .def_ro("node", &tools::ConversionBlocker::node)
      .def_ro("op_type", &tools::ConversionBlocker::op_type)
      .def_ro("reason", &tools::ConversionBlocker::reason);
  module.def(
      "convert",
      [](nb::handle source, const std::optional<int64_t>& opset, const std::map<std::string, int64_t>& opsets,
         const std::optional<int64_t>& ir_version) {
        tools::OnnxModel model = import_onnx_model(source);
        tools::ConvertOptions options;
        options.opsets = opsets;
        if (opset) options.opsets[""] = *opset;
        options.ir_version = ir_version.value_or(0);
        nb::gil_scoped_release free;
        return tools::convert(model, options).require();
      },
      "model"_a, nb::kw_only(), "opset"_a = nb::none(), "opsets"_a = std::map<std::string, int64_t>(),
      "ir_version"_a = nb::none(),
      "The same model in other versions of the operator sets, up or down.\n\n"
      ":param opset: the version of ai.onnx, 7 to 28.\n"
      ":param opsets: versions by domain, such as ``{\"ai.onnx.ml\": 3}``.\n"
      ":param ir_version: of the file format; if not given, on the way down no newer than what the opset was\n"
      "    released with.\n"
      ":raises ModelError: with every node that cannot be expressed there, and why.",
      nb::sig("def convert(model: " TENON_MODEL_SOURCE ", *, opset: int | None = None, opsets: "
              "collections.abc.Mapping[str, int] = {}, ir_version: int | None = None) -> OnnxModel"));
  module.def(
      "conversion_blockers",
      [](nb::handle source, const std::optional<int64_t>& opset, const std::map<std::string, int64_t>& opsets) {
        tools::OnnxModel model = import_onnx_model(source);
        tools::ConvertOptions options;
        options.opsets = opsets;
        if (opset) options.opsets[""] = *opset;
        nb::gil_scoped_release free;
        return tools::convert(model, options).blockers;
      },
      "model"_a, nb::kw_only(), "opset"_a = nb::none(), "opsets"_a = std::map<std::string, int64_t>(),
      "Every node that :func:`convert` could not express there; an empty list if it can.",
      nb::sig("def conversion_blockers(model: " TENON_MODEL_SOURCE ", *, opset: int | None = None, opsets: "
              "collections.abc.Mapping[str, int] = {}) -> list[ConversionBlocker]"));
}

}  // namespace tenon::python
