#include "tenon/tools/report.h"

#include "bindings.h"

namespace tenon::python {
namespace {

using Path = std::filesystem::path;

nb::object report(const Path& path, const std::optional<Path>& output, nb::handle inputs,
                  const std::map<std::string, int64_t>& dims, uint64_t seed, int threads, const std::string& level,
                  nb::handle providers, bool run, int64_t runs, int64_t warmup, const std::string& errors) {
  tools::ReportOptions options;
  options.session.threads = threads;
  options.session.level = optimization_level(level);
  options.session.providers = words(providers);
  options.inputs.dims = dims;
  options.inputs.seed = seed;
  options.run = run;
  options.measure_peaks = run;
  options.runs = runs;
  options.warmup = warmup;
  options.errors = errors;
  if (!inputs.is_none()) options.values = import_inputs(inputs, Session::load(path, options.session));
  tools::Report made;
  {
    nb::gil_scoped_release free;
    made = tools::make_report(path, options);
    if (output) tools::write_report(*output, made);
  }
  return nb::module_::import_("json").attr("loads")(python_text(made.json));
}

}  // namespace

void bind_report_page(nb::module_& module) {
  module.def(
      "report", &report, "path"_a, "output"_a.none() = "report.html", nb::kw_only(), "inputs"_a = nb::none(),
      "dims"_a = std::map<std::string, int64_t>(), "seed"_a = 0, "threads"_a = 0, "level"_a = "all",
      "providers"_a = "cpu", "run"_a = true, "runs"_a = 10, "warmup"_a = 3, "errors"_a = "",
      "Writes one HTML page about a model: its graph, time, memory, placement, weights and what the optimiser did.\n\n"
      ":param output: the page to write; ``None`` for none.\n"
      ":param inputs: by name; random if there are none, named sizes as in ``dims``, else 1.\n"
      ":param run: whether to run it; without, there are no times.\n"
      ":param errors: what ``tenon compare --json`` printed, to colour the graph with.\n"
      ":return: what the page shows, as a document.",
      nb::sig("def report(path: str | os.PathLike, output: str | os.PathLike | None = 'report.html', *, inputs: "
              "collections.abc.Mapping[str, typing.Any] | None = None, dims: collections.abc.Mapping[str, int] = {}, "
              "seed: int = 0, threads: int = 0, level: str = 'all', providers: str | "
              "collections.abc.Iterable[str] = 'cpu', run: bool = True, runs: int = 10, warmup: int = 3, errors: str = "
              "'') -> dict[str, typing.Any]"));
}

}  // namespace tenon::python
