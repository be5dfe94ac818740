#include "tenon/tools/watch.h"

#include "model.h"
#include "record.h"
#include "tenon/compile.h"

namespace tenon::python {
namespace {

using Path = std::filesystem::path;

// The model in the file that a session was loaded from, if it is still there: watchers then know more.
std::optional<tools::OnnxModel> model_behind(const Model& model) {
  try {
    if (!model.name.empty() && !is_compiled(model.name)) return tools::OnnxModel::load(model.name);
  } catch (const Error&) {
  }
  return std::nullopt;
}

tools::NanReport find_nan(const Model& model, nb::handle inputs, bool allow_infinite) {
  const NamedValues values = as_run([&] { return import_inputs(inputs, model.session); });
  nb::gil_scoped_release free;
  const std::optional<tools::OnnxModel> known = model_behind(model);
  return as_run([&] {
    return tools::find_nan(model.session, values, known ? &*known : nullptr, {.allow_infinite = allow_infinite});
  });
}

tools::DumpReport dump(const Model& model, nb::handle inputs, const Path& folder, nb::handle filter) {
  const NamedValues values = as_run([&] { return import_inputs(inputs, model.session); });
  const tools::DumpOptions options{folder, filter.is_none() ? std::vector<std::string>() : words(filter)};
  nb::gil_scoped_release free;
  const std::optional<tools::OnnxModel> known = model_behind(model);
  return as_run([&] { return tools::dump(model.session, values, options, known ? &*known : nullptr); });
}

nb::object shape_tuple(const tools::DumpedValue& value) {
  nb::list sizes;
  for (int64_t size : value.shape) sizes.append(size);
  return nb::tuple(sizes);
}

void bind_values(nb::module_& module) {
  using tools::TensorStats;
  using tools::ValueSummary;
  Record<TensorStats>(module, "TensorStats", "What is in a tensor, at a glance.")
      .field("elements", &TensorStats::elements)
      .field("nans", &TensorStats::nans)
      .field("infinities", &TensorStats::infinities)
      .field("zeros", &TensorStats::zeros)
      .field("min", &TensorStats::min, "Of the finite ones, as the next three; 0 where there are none.")
      .field("max", &TensorStats::max)
      .field("mean", &TensorStats::mean)
      .field("std", &TensorStats::std);
  Record<ValueSummary>(module, "ValueSummary", "A value that a node read or made.")
      .field("name", &ValueSummary::name)
      .field("value", &ValueSummary::value, "Type and shape, such as ``float [2, 3]``.")
      .field("origin", &ValueSummary::origin, "An input, a constant, or the node that made it.")
      .field("stats", &ValueSummary::stats)
      .field("first", &ValueSummary::first, "The first elements, as text.")
      .field("is_seen", &ValueSummary::is_seen, "False of weights that only their kernel still has, rearranged.");
}

}  // namespace

void bind_watch(nb::module_& module) {
  using tools::DumpedValue;
  using tools::DumpReport;
  using tools::NanFinding;
  using tools::NanReport;
  bind_values(module);
  Record<NanFinding>(module, "NanFinding", "A node that made NaN or infinite numbers.")
      .field("node", &NanFinding::node)
      .field("op_type", &NanFinding::op_type, "As it ran.")
      .field("attributes", &NanFinding::attributes,
             "As the model has them; known of models that were loaded from a file.")
      .field("inputs", &NanFinding::inputs)
      .field("outputs", &NanFinding::outputs)
      .computed(
          "text", [](const NanFinding& finding) { return tools::to_text(finding); }, "All of it, for people.",
          "def text(self) -> str");
  Record<NanReport>(module, "NanReport", "What :func:`find_nan` found.")
      .field("finding", &NanReport::finding, "The node; None if none made NaN or infinite numbers.")
      .field("bad_sources", &NanReport::bad_sources, "Inputs and constants that were not finite to begin with.");
  module.def(
      "find_nan", &find_nan, "model"_a, "inputs"_a, nb::kw_only(), "allow_infinite"_a = false,
      "Runs a model up to the first node that makes NaN or infinite numbers out of finite inputs, or NaN out of\n"
      "inputs that have none.\n\n"
      "Load the model with ``level='none'`` to have its own nodes watched rather than those that the optimiser\n"
      "made of them.\n\n"
      ":param allow_infinite: only NaN counts.",
      nb::sig("def find_nan(model: Model, inputs: collections.abc.Mapping[str, typing.Any], *, allow_infinite: "
              "bool = False) -> NanReport"));
  Record<DumpedValue>(module, "DumpedValue", "A value that :func:`dump` saved.")
      .field("name", &DumpedValue::name, "As the model's file has it.")
      .field("file", &DumpedValue::file, "In the folder.")
      .field("node", &DumpedValue::node, "That made it; empty of inputs, views and what follows from weights alone.")
      .field("run_name", &DumpedValue::run_name, "In the model as it ran.")
      .field("type", &DumpedValue::type)
      .computed("shape", &shape_tuple, "", "def shape(self) -> tuple[int, ...]")
      .field("stats", &DumpedValue::stats);
  Record<DumpReport>(module, "DumpReport", "What :func:`dump` saved.")
      .field("values", &DumpReport::values)
      .field(
          "missing", &DumpReport::missing,
          "Values of the model that no step read or made: the optimiser took them away, no output needs them, or they\n"
          "follow from shapes alone.")
      .field("left_out", &DumpReport::left_out, "Values that could not be saved, with the reason.");
  module.def("dump", &dump, "model"_a, "inputs"_a, "folder"_a, nb::kw_only(), "filter"_a = nb::none(),
             "Runs a model and saves its inputs and what its nodes make as .npy files, by the names that the model's\n"
             "file has for them, with an index.json.\n\n"
             ":param filter: patterns such as ``'encoder/*'``; names that match one are saved.",
             nb::sig("def dump(model: Model, inputs: collections.abc.Mapping[str, typing.Any], folder: str | "
                     "os.PathLike, *, filter: str | collections.abc.Iterable[str] | None = None) -> DumpReport"));
}

}  // namespace tenon::python
