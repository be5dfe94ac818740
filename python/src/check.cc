#include "tenon/tools/check.h"

#include "onnx_model.h"
#include "record.h"

namespace tenon::python {
namespace {

// A path is read here, so that a model whose external data is missing can be looked at too.
tools::CheckReport check(nb::handle source, const std::string& target, const std::string& provider,
                         const std::vector<std::string>& disabled,
                         const std::vector<std::filesystem::path>& custom_operator_libraries) {
  tools::CheckOptions options;
  options.target = target;
  options.provider = provider;
  options.disabled = disabled;
  options.session.custom_operator_libraries = custom_operator_libraries;
  if (nb::isinstance<nb::str>(source) || nb::hasattr(source, "__fspath__")) {
    const auto path = nb::cast<std::filesystem::path>(source);
    nb::gil_scoped_release free;
    return tools::check(path, options);
  }
  const tools::OnnxModel model = import_onnx_model(source);
  nb::gil_scoped_release free;
  return tools::check(model, options);
}

nb::object severity_text(const tools::Finding& finding) {
  const std::string_view name = tools::name_of(finding.severity);
  return nb::str(name.data(), name.size());
}

}  // namespace

void bind_check(nb::module_& module) {
  using tools::CheckReport;
  using tools::Finding;
  Record<Finding>(module, "Finding", "Something that :func:`check` found.")
      .computed("severity", &severity_text, "``'error'``, ``'warning'`` or ``'note'``.", "def severity(self) -> str")
      .field("code", &Finding::code, "A stable word for the rule, such as ``'baked-batch'``.")
      .field("node", &Finding::node, "As errors name it; may be empty, as may the tensor.")
      .field("tensor", &Finding::tensor)
      .field("reason", &Finding::reason)
      .field("fix", &Finding::fix, "What can be done, often a command.");
  Record<CheckReport>(module, "CheckReport", "What :func:`check` found.")
      .computed("ok", &CheckReport::ok, "Whether nothing is an error.", "def ok(self) -> bool")
      .field("findings", &CheckReport::findings, "The gravest first, those of a rule together.")
      .field("target", &CheckReport::target, "The release that was looked at; empty without a target.")
      .field("basis", &CheckReport::basis, "Where the facts about the target come from.")
      .field("nodes", &CheckReport::nodes, "How many were looked at, those of subgraphs and functions included.");
  module.def(
      "check", &check, "model"_a, nb::kw_only(), "target"_a = "", "provider"_a = "cpu",
      "disabled"_a = std::vector<std::string>(), "custom_operator_libraries"_a = std::vector<std::filesystem::path>(),
      "Finds everything that is wrong with a model at once.\n\n"
      ":param target: where it is to run: ``'onnxruntime==1.16'``, ``'openvino==2024.1'``, ``'tensorrt==10'`` or\n"
      "    ``'opset==13'``.\n"
      ":param provider: of onnxruntime: ``'cpu'``, ``'cuda'`` or ``'tensorrt'``.\n"
      ":param disabled: rules to leave out, by code.\n"
      ":raises ModelError: only where there is no model to look at.",
      nb::sig("def check(model: " TENON_MODEL_SOURCE ", *, target: str = '', provider: str = 'cpu', disabled: "
              "collections.abc.Sequence[str] = [], custom_operator_libraries: "
              "collections.abc.Sequence[str | os.PathLike] = []) -> CheckReport"));
}

}  // namespace tenon::python
