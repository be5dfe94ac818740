#include "tenon/tools/compare.h"

#include "onnx_model.h"
#include "record.h"
#include "tenon/session_config.h"
#include "tenon/tools/bisect.h"
#include "tenon/tools/reduce.h"

namespace tenon::python {
namespace {

using Dims = std::map<std::string, int64_t>;

// What an option says of the first side or the second; one word is for both.
std::string word_for(nb::handle option, size_t side, const char* otherwise) {
  const std::vector<std::string> list = words(option);
  return list.empty() ? otherwise : list[std::min(side, list.size() - 1)];
}

tools::ErrorLimit limit_of(double rtol, double atol, const std::string& measure, double quantile) {
  return {tools::error_measure(measure), quantile, {rtol, atol}};
}

tools::InputSources sources_of(nb::handle inputs, const Dims& dims, uint64_t seed) {
  tools::InputSources sources;
  sources.dims = dims;
  sources.seed = seed;
  if (inputs.is_none()) return sources;
  for (nb::handle key : nb::iter(inputs.attr("keys")())) sources.values[text_of(key)] = import_value(inputs[key], "");
  return sources;
}

nb::dict exported(const NamedValues& values) {
  nb::dict result;
  for (const auto& [name, value] : values) result[nb::str(name.c_str(), name.size())] = export_value(value);
  return result;
}

tools::Comparison compare_models(nb::handle first, nb::handle second, nb::handle against, nb::handle inputs,
                                 nb::handle level, nb::handle precision, double rtol, double atol,
                                 const std::string& measure, double quantile,
                                 const std::map<std::string, double>& tolerances, nb::handle only, bool outputs_only,
                                 const Dims& dims, uint64_t seed) {
  const tools::OnnxModel model = import_onnx_model(first);
  const tools::OnnxModel other = second.is_none() ? model : import_onnx_model(second);
  tools::CompareOptions options;
  options.limit = limit_of(rtol, atol, measure, quantile);
  for (const auto& [pattern, tolerance] : tolerances) options.tolerances.push_back({pattern, {tolerance, atol}});
  options.only = words(only);
  options.outputs_only = outputs_only;
  options.inputs = sources_of(inputs, dims, seed);
  const auto side = [&](size_t number, const tools::OnnxModel& of, const char* usual) {
    SessionOptions how;
    const std::string at = word_for(level, number, usual);
    how.level = optimization_level(at);
    set_config(how, "tenon.precision", word_for(precision, number, "full"));
    return tools::CompareSide::of(of, how, "level " + at);
  };
  const bool one_way = second.is_none() && words(level).empty() && words(precision).empty();
  tools::CompareSide expected = side(0, model, one_way ? "none" : "all");
  const tools::CompareSide actual = side(1, other, "all");
  if (nb::isinstance<nb::str>(against) && text_of(against) == "onnxruntime") {
    options.inputs.values = tools::make_inputs(model.open(actual.session), options.inputs).values;
    const std::string python = nb::cast<std::string>(nb::module_::import_("sys").attr("executable"));
    expected = tools::CompareSide::of_onnxruntime(model, options.inputs.values, python);
  } else if (nb::isinstance<nb::str>(against) || nb::hasattr(against, "__fspath__")) {
    expected = tools::CompareSide::of_file(nb::cast<std::filesystem::path>(against), model, options.inputs);
  } else if (!against.is_none()) {
    expected = {"given", std::nullopt, {}, sources_of(against, {}, 0).values};
  }
  nb::gil_scoped_release free;
  return tools::compare(expected, actual, options);
}

void bind_comparisons(nb::module_& module) {
  using tools::ComparedTensor;
  using tools::Comparison;
  using tools::ErrorStatistics;
  Record<ErrorStatistics>(module, "ErrorStatistics", "How far the numbers of a tensor are from those expected.")
      .field("elements", &ErrorStatistics::elements)
      .field("max_absolute", &ErrorStatistics::max_absolute)
      .field("max_relative", &ErrorStatistics::max_relative, "Of numbers that should not be 0.")
      .field("mean_absolute", &ErrorStatistics::mean_absolute)
      .field("cosine", &ErrorStatistics::cosine, "Of the angle between the two as vectors.")
      .field("sqnr", &ErrorStatistics::sqnr, "Power of what was expected by that of the error, in dB.")
      .field("max_ulps", &ErrorStatistics::max_ulps, "Steps from one number of the type to the next.")
      .field("largest", &ErrorStatistics::largest, "Magnitude that was expected.")
      .field("nans", &ErrorStatistics::nans)
      .field("infinities", &ErrorStatistics::infinities)
      .field("expected_nans", &ErrorStatistics::expected_nans)
      .field("expected_infinities", &ErrorStatistics::expected_infinities)
      .field("worst", &ErrorStatistics::worst, "The element that is furthest off, -1 if none is.");
  Record<ComparedTensor>(module, "ComparedTensor", "A tensor that both sides made.")
      .field("name", &ComparedTensor::name)
      .field("expected_name", &ComparedTensor::expected_name)
      .field("actual_name", &ComparedTensor::actual_name)
      .field("node", &ComparedTensor::node, "That made it, in the second.")
      .field("op_type", &ComparedTensor::op_type)
      .field("type", &ComparedTensor::type)
      .field("is_output", &ComparedTensor::is_output)
      .field("problem", &ComparedTensor::problem, "Why the numbers cannot be compared; \"\" if they were.")
      .computed(
          "match", [](const ComparedTensor& t) { return std::string(name_of(t.match)); },
          "How it was found: ``'name'``, ``'rewrite'`` or ``'position'``.", "def match(self) -> str")
      .computed(
          "ok", [](const ComparedTensor& t) { return t.ok(); }, "Whether it is within the tolerance.",
          "def ok(self) -> bool")
      .computed(
          "statistics", [](const ComparedTensor& t) { return t.verdict.statistics; }, "",
          "def statistics(self) -> ErrorStatistics");
  Record<Comparison>(module, "Comparison", "What :func:`compare` found.")
      .field("expected", &Comparison::expected, "What was run first.")
      .field("actual", &Comparison::actual, "And second.")
      .field("tensors", &Comparison::tensors, "In the order in which the second made them.")
      .field("only_expected", &Comparison::only_expected, "Tensors that only the first made.")
      .field("only_actual", &Comparison::only_actual)
      .computed(
          "ok", [](const Comparison& c) { return c.ok(); }, "Whether every tensor is within its tolerance.",
          "def ok(self) -> bool")
      .computed(
          "first",
          [](const Comparison& c) -> std::optional<ComparedTensor> {
            if (c.ok()) return std::nullopt;
            return c.tensors[static_cast<size_t>(c.first)];
          },
          "The first tensor that is not; None if all are.", "def first(self) -> ComparedTensor | None");
  module.def(
      "compare", &compare_models, "expected"_a, "actual"_a = nb::none(), nb::kw_only(), "against"_a = nb::none(),
      "inputs"_a = nb::none(), "level"_a = nb::tuple(), "precision"_a = nb::tuple(), "rtol"_a = 1e-3, "atol"_a = 1e-6,
      "measure"_a = "max", "quantile"_a = 0.99, "tolerances"_a = std::map<std::string, double>(),
      "only"_a = nb::tuple(), "outputs_only"_a = false, "dims"_a = Dims(), "seed"_a = 0,
      "Runs two models, or one in two ways, and compares every tensor that both compute.\n\n"
      ":param actual: another model; the same one if not given, at level ``none`` and at ``all``.\n"
      ":param against: ``'onnxruntime'``, a file or folder of saved tensors, or a mapping of them, to compare with.\n"
      ":param inputs: by name; what is not given is random.\n"
      ":param level: of optimisation, one for both sides or two. ``precision`` likewise.\n"
      ":param measure: of each tensor's errors: ``max``, ``mean``, ``median``, ``quantile`` or ``elementwise``.\n"
      ":param tolerances: ``rtol`` by pattern of names, in which ``*`` is any text.\n"
      ":param only: patterns of names of tensors to look at.",
      nb::sig("def compare(expected: " TENON_MODEL_SOURCE ", actual: " TENON_MODEL_SOURCE
              " | None = None, *, against: typing.Any = None, inputs: collections.abc.Mapping[str, typing.Any] | None "
              "= None, level: str | collections.abc.Iterable[str] = (), precision: str | "
              "collections.abc.Iterable[str] = (), rtol: float = 0.001, atol: float = 1e-06, measure: str = 'max', "
              "quantile: float = 0.99, tolerances: collections.abc.Mapping[str, float] = {}, only: str | "
              "collections.abc.Iterable[str] = (), outputs_only: bool = False, dims: collections.abc.Mapping[str, int] "
              "= {}, seed: int = 0) -> Comparison"));
}

tools::BisectOptions bisect_options(nb::handle inputs, const std::string& level, double rtol, double atol,
                                    const std::string& measure, const Dims& dims, uint64_t seed) {
  tools::BisectOptions options;
  options.session.level = optimization_level(level);
  options.limit = limit_of(rtol, atol, measure, 0.99);
  options.inputs = sources_of(inputs, dims, seed);
  return options;
}

void bind_node_bisection(nb::module_& module) {
  using tools::NodeBisection;
  Record<NodeBisection>(module, "NodeBisection", "What :func:`bisect_nodes` found.")
      .field("candidates", &NodeBisection::candidates, "Nodes that compute in less than full precision.")
      .field("keep", &NodeBisection::keep, "Those that must not.")
      .field("before", &NodeBisection::before, "Errors with all candidates rounded.")
      .field("after", &NodeBisection::after, "Errors without those that are kept.")
      .field("model", &NodeBisection::model, "The converted or quantized model with those in float.")
      .field("runs", &NodeBisection::runs)
      .computed(
          "outcome",
          [](const NodeBisection& b) {
            static constexpr const char* names[] = {"found", "holds", "wrong already", "nothing rounds"};
            return std::string(names[static_cast<size_t>(b.outcome)]);
          },
          "``'found'``, ``'holds'``, ``'wrong already'`` or ``'nothing rounds'``.", "def outcome(self) -> str");
  module.def(
      "bisect_nodes",
      [](nb::handle source, nb::handle quantized, const std::optional<std::string>& dtype, nb::handle inputs,
         const std::string& level, double rtol, double atol, const std::string& measure, const Dims& dims,
         uint64_t seed) {
        const tools::OnnxModel model = import_onnx_model(source);
        const tools::BisectOptions options = bisect_options(inputs, level, rtol, atol, measure, dims, seed);
        if (!quantized.is_none()) {
          const tools::OnnxModel other = import_onnx_model(quantized);
          nb::gil_scoped_release free;
          return tools::bisect_quantization(model, other, options);
        }
        nb::gil_scoped_release free;
        return dtype ? tools::bisect_dtype(model, element_type_named(*dtype), options)
                     : tools::bisect_precision(model, options);
      },
      "model"_a, nb::kw_only(), "quantized"_a = nb::none(), "dtype"_a = nb::none(), "inputs"_a = nb::none(),
      "level"_a = "all", "rtol"_a = 1e-3, "atol"_a = 1e-6, "measure"_a = "max", "dims"_a = Dims(), "seed"_a = 0,
      "The nodes that must stay in full precision so that outputs keep within the tolerance.\n\n"
      ":param quantized: the same model, quantized with QuantizeLinear and DequantizeLinear.\n"
      ":param dtype: ``'float16'`` or ``'bfloat16'``, as :func:`convert_dtype` makes it. Without both, the nodes are "
      "those that ``precision='fast'`` rounds.",
      nb::sig("def bisect_nodes(model: " TENON_MODEL_SOURCE ", *, quantized: " TENON_MODEL_SOURCE
              " | None = None, dtype: str | None = None, inputs: collections.abc.Mapping[str, typing.Any] | None = "
              "None, level: str = 'all', rtol: float = 0.001, atol: float = 1e-06, measure: str = 'max', dims: "
              "collections.abc.Mapping[str, int] = {}, seed: int = 0) -> NodeBisection"));
}

void bind_bisections(nb::module_& module) {
  using tools::OutputErrors;
  using tools::RewriteBisection;
  Record<OutputErrors>(module, "OutputErrors", "The outputs of one run beside those that are right.")
      .field("within", &OutputErrors::within)
      .field("output", &OutputErrors::output, "That is furthest off.")
      .field("error", &OutputErrors::error)
      .field("limit", &OutputErrors::limit);
  Record<RewriteBisection>(module, "RewriteBisection", "What :func:`bisect` found of the optimiser's rewrites.")
      .field("rewrites", &RewriteBisection::rewrites)
      .field("number", &RewriteBisection::number, "Of the one that was found, counted from 1; 0 if none was.")
      .field("rewrite", &RewriteBisection::rewrite)
      .field("before", &RewriteBisection::before)
      .field("after", &RewriteBisection::after)
      .field("without_pass", &RewriteBisection::without_pass)
      .field("runs", &RewriteBisection::runs)
      .computed(
          "outcome",
          [](const RewriteBisection& b) {
            static constexpr const char* names[] = {"found", "holds", "wrong already"};
            return std::string(names[static_cast<size_t>(b.outcome)]);
          },
          "``'found'``, ``'holds'`` or ``'wrong already'``.", "def outcome(self) -> str");
  module.def(
      "bisect",
      [](nb::handle source, nb::handle inputs, const std::string& level, double rtol, double atol,
         const std::string& measure, const Dims& dims, uint64_t seed) {
        const tools::OnnxModel model = import_onnx_model(source);
        const tools::BisectOptions options = bisect_options(inputs, level, rtol, atol, measure, dims, seed);
        nb::gil_scoped_release free;
        return tools::bisect_rewrites(model, options);
      },
      "model"_a, nb::kw_only(), "inputs"_a = nb::none(), "level"_a = "all", "rtol"_a = 1e-3, "atol"_a = 1e-6,
      "measure"_a = "max", "dims"_a = Dims(), "seed"_a = 0,
      "The first rewrite of the optimiser that takes outputs beyond the tolerance.",
      nb::sig("def bisect(model: " TENON_MODEL_SOURCE ", *, inputs: collections.abc.Mapping[str, typing.Any] | None = "
              "None, level: str = 'all', rtol: float = 0.001, atol: float = 1e-06, measure: str = 'max', dims: "
              "collections.abc.Mapping[str, int] = {}, seed: int = 0) -> RewriteBisection"));
  bind_node_bisection(module);
  using tools::ReducedModel;
  nb::class_<ReducedModel>(module, "ReducedModel", "The smallest part of a model that still shows something.")
      .def_ro("model", &ReducedModel::model)
      .def_prop_ro(
          "inputs", [](const ReducedModel& r) { return exported(r.inputs); }, "For its inputs, by name.")
      .def_ro("nodes_before", &ReducedModel::nodes_before)
      .def_ro("nodes_after", &ReducedModel::nodes_after)
      .def_ro("tried", &ReducedModel::tried)
      .def_ro("notes", &ReducedModel::notes);
  module.def(
      "reduce",
      [](nb::handle source, const nb::callable& shows, nb::handle inputs, const Dims& dims, uint64_t seed) {
        const tools::OnnxModel model = import_onnx_model(source);
        tools::ReduceOptions options;
        options.inputs = sources_of(inputs, dims, seed);
        options.shows = [&](const tools::OnnxModel& part, const NamedValues& values) {
          return nb::cast<bool>(nb::bool_(shows(part, exported(values))));
        };
        return tools::reduce(model, options);
      },
      "model"_a, "shows"_a, nb::kw_only(), "inputs"_a = nb::none(), "dims"_a = Dims(), "seed"_a = 0,
      "The smallest part of a model for which ``shows(model, inputs)`` is still true.",
      nb::sig("def reduce(model: " TENON_MODEL_SOURCE ", shows: collections.abc.Callable[[OnnxModel, dict[str, "
              "typing.Any]], bool], *, inputs: collections.abc.Mapping[str, typing.Any] | None = None, dims: "
              "collections.abc.Mapping[str, int] = {}, seed: int = 0) -> ReducedModel"));
}

}  // namespace

void bind_compare(nb::module_& module) {
  bind_comparisons(module);
  bind_bisections(module);
}

}  // namespace tenon::python
