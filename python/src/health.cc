#include "tenon/tools/health.h"

#include "model.h"
#include "record.h"
#include "tenon/tools/doctor.h"
#include "tenon/tools/measure_machine.h"

namespace tenon::python {
namespace {

NamedValues values_of(nb::handle mapping) {
  NamedValues values;
  if (mapping.is_none()) return values;
  for (nb::handle key : nb::iter(mapping.attr("keys")())) {
    const std::string name = text_of(key);
    values.insert_or_assign(name, import_value(mapping[key], ""));
  }
  return values;
}

tools::HealthReport health(nb::handle source, nb::handle inputs, nb::handle expect, tools::HealthOptions options) {
  options.expected = values_of(expect);
  if (nb::isinstance<Model>(source)) {
    const Model& model = nb::cast<const Model&>(source);
    options.inputs.values = import_inputs(inputs, model.session);
    nb::gil_scoped_release free;
    return tools::check_health(model.session, options);
  }
  options.inputs.values = values_of(inputs);
  const auto path = nb::cast<std::filesystem::path>(source);
  nb::gil_scoped_release free;
  return tools::check_health(path, options);
}

nb::object error_text(const tools::HealthReport& report) {
  return report.error ? nb::object(nb::str(report.error->what())) : nb::none();
}

nb::dict doctor(bool measure) {
  tools::DoctorReport report;
  {
    nb::gil_scoped_release free;
    report = tools::examine_machine({.measure = measure});
  }
  nb::dict sections;
  for (const tools::DoctorReport::Section& section : report.sections) {
    nb::dict lines;
    for (const auto& [name, value] : section.lines) lines[name.c_str()] = python_text(value);
    sections[section.title.c_str()] = lines;
  }
  sections["Warnings"] = report.warnings;
  return sections;
}

void bind_machine(nb::module_& module) {
  using tools::MachineSpeed;
  using Rates = MachineSpeed::Rates;
  Record<Rates>(module, "MachineRates", "What some threads of a machine reach: rates a second.")
      .field("threads", &Rates::threads)
      .field("peak_flops", &Rates::peak_flops, "Of float32 multiply-adds that stay in registers.")
      .field("matmul_flops", &Rates::matmul_flops, "Of a product of two matrices.")
      .field("read_bandwidth", &Rates::read_bandwidth, "Bytes read from memory that no cache holds.")
      .field("copy_bandwidth", &Rates::copy_bandwidth, "Bytes of a copy in such memory, read and written.")
      .field("peak_bandwidth", &Rates::peak_bandwidth, "The larger of the two.");
  Record<MachineSpeed>(module, "MachineSpeed", "What :func:`measure_machine` measured.")
      .field("one", &MachineSpeed::one, "With one thread.")
      .field("all", &MachineSpeed::all, "With as many as models use.")
      .field("memory_bytes", &MachineSpeed::memory_bytes, "That reading and copying went through.")
      .field("seconds", &MachineSpeed::seconds, "That measuring took.");
  module.def("measure_machine", &tools::measure_machine, "threads"_a = 0, nb::call_guard<nb::gil_scoped_release>(),
             "What this machine can do at most, and what Tenon's kernels reach of it, in some two seconds.",
             nb::sig("def measure_machine(threads: int = 0) -> MachineSpeed"));
  module.def("doctor", &doctor, nb::kw_only(), "measure"_a = true,
             "The machine as Tenon sees it: what belongs into a bug report.\n\n"
             ":param measure: with the self-test, which takes two seconds.",
             nb::sig("def doctor(*, measure: bool = True) -> dict[str, typing.Any]"));
}

}  // namespace

void bind_health(nb::module_& module) {
  using tools::HealthCheck;
  using tools::HealthReport;
  bind_machine(module);
  Record<HealthCheck>(module, "HealthCheck", "One thing that :func:`health` looked at.")
      .field("name", &HealthCheck::name,
             "``'load'``, ``'provider'``, ``'run'``, ``'finite'``, ``'expected'`` or ``'latency'``.")
      .field("passed", &HealthCheck::passed)
      .field("reason", &HealthCheck::reason, "What was seen, also where it passed.");
  Record<HealthReport>(module, "HealthReport", "Whether a model is fit to serve.")
      .computed("healthy", &HealthReport::healthy, "Whether every check passed.", "def healthy(self) -> bool")
      .field("checks", &HealthReport::checks)
      .computed("text", &HealthReport::text, "All of it in one line.", "def text(self) -> str")
      .field("load_seconds", &HealthReport::load_seconds)
      .field("first_run_seconds", &HealthReport::first_run_seconds)
      .field("latency", &HealthReport::latency)
      .field("provider_share", &HealthReport::provider_share,
             "Of the FLOPs, 0 to 1, that the required provider runs; None if none is required.")
      .computed("error", &error_text, "What loading or running threw, as text; None if nothing.",
                "def error(self) -> str | None");
  module.def(
      "health",
      [](nb::handle model, nb::handle inputs, nb::handle expect, const std::string& require_provider, double min_share,
         double max_latency_ms, double max_load_ms, double rtol, double atol, bool allow_infinite,
         const std::map<std::string, int64_t>& dims, uint64_t seed, int64_t samples, int64_t runs) {
        tools::HealthOptions options;
        options.require_provider = require_provider;
        options.min_share = min_share;
        options.max_latency_seconds = max_latency_ms / 1e3;
        options.max_load_seconds = max_load_ms / 1e3;
        options.tolerance = {.relative = rtol, .absolute = atol};
        options.allow_infinite = allow_infinite;
        options.inputs.dims = dims;
        options.inputs.seed = seed;
        options.samples = samples;
        options.runs = runs;
        return health(model, inputs, expect, std::move(options));
      },
      "model"_a, "inputs"_a = nb::none(), nb::kw_only(), "expect"_a = nb::none(), "require_provider"_a = "",
      "min_share"_a = 0.9, "max_latency_ms"_a = 0.0, "max_load_ms"_a = 0.0, "rtol"_a = 1e-3, "atol"_a = 1e-7,
      "allow_infinite"_a = false, "dims"_a = std::map<std::string, int64_t>(), "seed"_a = 0, "samples"_a = 3,
      "runs"_a = 5,
      "Loads a model, runs it and says whether it is fit to serve.\n\n"
      ":param model: a path, or a :class:`Model` that is loaded already.\n"
      ":param inputs: arrays by name; what is not given is random.\n"
      ":param expect: what outputs must be for these inputs, by name.\n"
      ":param require_provider: the provider that must run ``min_share`` of the model's FLOPs.\n"
      ":param max_latency_ms: most milliseconds of the median run; 0 for no limit.\n"
      ":param max_load_ms: most milliseconds that loading may take; 0 for no limit.\n"
      ":param dims: sizes of the model's named dimensions in random inputs.\n"
      ":param samples: how many random samples are run.\n"
      ":param runs: how many runs are measured.",
      nb::sig("def health(model: str | os.PathLike | Model, inputs: collections.abc.Mapping[str, typing.Any] | None = "
              "None, *, expect: collections.abc.Mapping[str, typing.Any] | None = None, require_provider: str = '', "
              "min_share: float = 0.9, max_latency_ms: float = 0.0, max_load_ms: float = 0.0, rtol: float = 1e-3, "
              "atol: float = 1e-7, allow_infinite: bool = False, dims: collections.abc.Mapping[str, int] = {}, seed: "
              "int = 0, samples: int = 3, runs: int = 5) -> HealthReport"));
}

}  // namespace tenon::python
