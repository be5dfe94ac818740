#include "bindings.h"
#include "model.h"
#include "tenon/session_config.h"
#include "tenon/tools/compare_values.h"
#include "tenon/tools/inspect.h"
#include "tenon/tools/onnx_model.h"
#include "tenon/tools/operators.h"
#include "tenon/tools/optimize.h"

namespace tenon::python {
namespace {

using Path = std::filesystem::path;

std::vector<Path> paths(nb::handle object) {
  if (nb::isinstance<nb::str>(object) || nb::hasattr(object, "__fspath__")) return {nb::cast<Path>(object)};
  std::vector<Path> result;
  for (nb::handle item : nb::iter(object)) {
    result.emplace_back(nb::hasattr(item, "__fspath__") ? nb::cast<Path>(item) : Path(text_of(item)));
  }
  return result;
}

// What is told about a load; may be called by threads that do not hold the GIL.
std::function<void(const std::string&)> log_to(nb::object function) {
  std::shared_ptr<void> held = share(std::move(function));
  return [held](const std::string& text) {
    nb::gil_scoped_acquire acquire;
    nb::handle(static_cast<PyObject*>(held.get()))(text);
  };
}

Model load(nb::object source, int threads, int spin_microseconds, bool parallel_branches, bool flush_denormals,
           nb::handle providers, bool allow_fallback, int64_t memory_limit, const std::string& memory,
           const std::string& precision, nb::handle decompose, const std::string& level, nb::handle disabled_passes,
           nb::handle keep, nb::handle custom_operator_libraries, nb::object log,
           const std::map<std::string, std::string>& config, const std::optional<Path>& folder,
           const std::map<std::string, int64_t>& sizes, const std::map<std::string, int64_t>& denoted_sizes,
           nb::handle initializers, uintptr_t stream) {
  void* callers = reinterpret_cast<void*>(stream);
  const CallersStream callers_stream(callers);
  SessionOptions options;
  options.threads = threads;
  options.spin_microseconds = spin_microseconds;
  options.parallel_branches = parallel_branches;
  options.flush_denormals = flush_denormals;
  options.providers = words(providers);
  options.allow_fallback = allow_fallback;
  options.memory_limit = memory_limit;
  set_config(options, "tenon.memory", memory);
  set_config(options, "tenon.precision", precision);
  options.decompose = words(decompose);
  options.level = optimization_level(level);
  options.disabled_passes = words(disabled_passes);
  options.keep = words(keep);
  options.custom_operator_libraries = paths(custom_operator_libraries);
  options.sizes = sizes;
  options.denoted_sizes = denoted_sizes;
  if (!initializers.is_none()) {
    for (nb::handle key : nb::iter(initializers.attr("keys")())) {
      options.initializers.emplace(text_of(key), import_tensor(initializers[key], ElementType::undefined));
    }
  }
  if (!log.is_none()) options.log = log_to(std::move(log));
  for (const auto& [key, value] : config) set_config(options, key, value);

  if (nb::isinstance<tools::OnnxModel>(source)) {
    const tools::OnnxModel model = nb::cast<tools::OnnxModel>(source);
    nb::gil_scoped_release free;
    return {model.open(options), "", callers};
  }
  if (nb::hasattr(source, "SerializeToString")) source = source.attr("SerializeToString")();
  if (nb::isinstance<nb::str>(source) || nb::hasattr(source, "__fspath__")) {
    const Path path = nb::cast<Path>(source);
    nb::gil_scoped_release free;
    return {Session::load(path, options), path.string(), callers};
  }
  const std::optional<Tensor> bytes = import_array(source, ReadOnly::share);
  if (!bytes || bytes->type() == ElementType::string) {
    throw Error(ErrorCode::invalid_argument,
                std::string("a model is a path, bytes, an onnx.ModelProto or an OnnxModel, not ") +
                    nb::type_name(source.type()).c_str());
  }
  const auto size = static_cast<size_t>(bytes->bytes());
  nb::gil_scoped_release free;
  return {Session::from_bytes({static_cast<const std::byte*>(bytes->raw()), size}, options, folder.value_or(Path())),
          "", callers};
}

tools::OptimizeOptions optimize_options(const std::string& level, nb::handle disabled_passes, nb::handle keep,
                                        nb::handle custom_operator_libraries) {
  tools::OptimizeOptions options;
  options.level = optimization_level(level);
  options.disabled_passes = words(disabled_passes);
  options.keep = words(keep);
  options.custom_operator_libraries = paths(custom_operator_libraries);
  return options;
}

SessionOptions with_libraries(nb::handle custom_operator_libraries) {
  SessionOptions options;
  options.custom_operator_libraries = paths(custom_operator_libraries);
  return options;
}

void bind_optimizer(nb::module_& module) {
  nb::class_<tools::OptimizedModel>(module, "OptimizedModel", "What the optimiser made of a model.")
      .def_ro("operators", &tools::OptimizedModel::operators,
              "How often operators occur, those that changed most first.")
      .def_ro("nodes_before", &tools::OptimizedModel::nodes_before)
      .def_ro("nodes_after", &tools::OptimizedModel::nodes_after)
      .def_ro("rewrites", &tools::OptimizedModel::rewrites)
      .def_ro("seconds", &tools::OptimizedModel::seconds, "That the passes took.")
      .def_ro("notes", &tools::OptimizedModel::notes)
      .def("save", &tools::OptimizedModel::save, "path"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Writes a standard ONNX model of the input's opsets and IR version.");
  module.def(
      "optimize",
      [](const Path& path, const std::string& level, nb::handle disabled_passes, nb::handle keep,
         nb::handle libraries) {
        const tools::OptimizeOptions options = optimize_options(level, disabled_passes, keep, libraries);
        nb::gil_scoped_release free;
        return tools::optimize(path, options);
      },
      "path"_a, nb::kw_only(), "level"_a = "basic", "disabled_passes"_a = nb::tuple(), "keep"_a = nb::tuple(),
      "custom_operator_libraries"_a = nb::tuple(), "Reads a model and optimises it. Options are those of :func:`load`.",
      nb::sig("def optimize(path: str | os.PathLike, *, level: str = 'basic', disabled_passes: str | "
              "collections.abc.Iterable[str] = (), keep: str | collections.abc.Iterable[str] = (), "
              "custom_operator_libraries: str | os.PathLike | collections.abc.Iterable[str | os.PathLike] = ()) -> "
              "OptimizedModel"));
  module.def(
      "verify_optimization",
      [](const Path& path, nb::handle inputs, const std::string& level, nb::handle disabled_passes, nb::handle keep,
         nb::handle libraries, double rtol, double atol) {
        const tools::OptimizeOptions options = optimize_options(level, disabled_passes, keep, libraries);
        SessionOptions plain = with_libraries(libraries);
        plain.level = OptimizationLevel::none;
        const NamedValues values = import_inputs(inputs, Session::load(path, plain));
        nb::gil_scoped_release free;
        return tools::verify_optimization(path, options, values, {.relative = rtol, .absolute = atol});
      },
      "path"_a, "inputs"_a, nb::kw_only(), "level"_a = "basic", "disabled_passes"_a = nb::tuple(),
      "keep"_a = nb::tuple(), "custom_operator_libraries"_a = nb::tuple(), "rtol"_a = 1e-3, "atol"_a = 1e-7,
      "Runs the model as it is, and again after every pass that changed it. Each output must be within\n"
      "``atol + rtol * (its largest magnitude)``. Returns the first failure; an empty list when all is well.",
      nb::sig("def verify_optimization(path: str | os.PathLike, inputs: collections.abc.Mapping[str, typing.Any], *, "
              "level: str = 'basic', disabled_passes: str | collections.abc.Iterable[str] = (), keep: str | "
              "collections.abc.Iterable[str] = (), custom_operator_libraries: str | os.PathLike | "
              "collections.abc.Iterable[str | os.PathLike] = (), rtol: float = 1e-3, atol: float = 1e-7) -> "
              "list[VerifyFailure]"));
  module.def("optimization_passes", &optimization_passes,
             "Every pass of the optimiser, in the order in which they run.");
}

constexpr const char* load_doc =
    "Loads a model and makes it ready to run.\n\n"
    ":param model: a path, the bytes of a model, an ``onnx.ModelProto``, or an :class:`OnnxModel` as other tools make\n"
    "    it. A path may be that of a file that :func:`compile` wrote.\n"
    ":param threads: to compute with. 0: the pool that all models share, one for each CPU of the process.\n"
    ":param spin_microseconds: that threads of its own wait for work before they sleep; 50 times as long within a "
    "run.\n"
    ":param parallel_branches: lets nodes that do not depend on each other run at the same time, where that is "
    "faster.\n"
    ":param flush_denormals: takes and gives numbers too small for full precision as zero.\n"
    ":param providers: in order of preference. One that cannot start is an error, unless ``allow_fallback``.\n"
    ":param allow_fallback: goes on without providers that cannot start; :attr:`Model.notes` says which and why.\n"
    ":param memory_limit: most bytes that runs may hold at once. 0: what is available.\n"
    ":param memory: ``low`` holds no weights twice and nothing between runs; both take time.\n"
    ":param precision: ``fast`` rounds to bfloat16 in products with weights, where this CPU is faster so; "
    ":meth:`Model.placement` says where.\n"
    ":param decompose: operators to run as smaller ones; ``'all'`` for every one that can.\n"
    ":param level: how much the model is rewritten: ``none``, ``exact``, ``basic``, ``extended`` or ``all``.\n"
    ":param disabled_passes: passes that do not run, by the names of :func:`optimization_passes`.\n"
    ":param keep: values that no rewrite may take away or rename.\n"
    ":param custom_operator_libraries: shared libraries with operators of your own. They must be trusted.\n"
    ":param log: is called with what a user should know but need not act on.\n"
    ":param config: options by name, as onnxruntime and ``tenon --config`` have them.\n"
    ":param folder: where a model in memory has its external data.\n"
    ":param sizes: of dimensions that the model names, such as ``{'batch': 1}``.\n"
    ":param denoted_sizes: of dimensions that inputs denote, such as ``{'DATA_BATCH': 1}``.\n"
    ":param initializers: arrays to use in place of the model's weights, by name; of the same type and shape.\n"
    ":param stream: of the GPU that runs give their work to, a ``cudaStream_t`` as a number, such as\n"
    "    ``torch.cuda.Stream().cuda_stream``, which must outlive the model. 0: one of the model's own.\n"
    ":raises FileError: if the file is not there or not ONNX.\n"
    ":raises ModelError: if the model breaks ONNX's rules.\n"
    ":raises UnavailableError: if something that it needs is not there.";

}  // namespace

void bind_tools(nb::module_& module) {
  module.def(
      "load", &load, "model"_a, nb::kw_only(), "threads"_a = 0, "spin_microseconds"_a = -1,
      "parallel_branches"_a = false, "flush_denormals"_a = false, "providers"_a = "cpu", "allow_fallback"_a = false,
      "memory_limit"_a = 0, "memory"_a = "normal", "precision"_a = "full", "decompose"_a = nb::tuple(),
      "level"_a = "all", "disabled_passes"_a = nb::tuple(), "keep"_a = nb::tuple(),
      "custom_operator_libraries"_a = nb::tuple(), "log"_a = nb::none(),
      "config"_a = std::map<std::string, std::string>(), "folder"_a = nb::none(),
      "sizes"_a = std::map<std::string, int64_t>(), "denoted_sizes"_a = std::map<std::string, int64_t>(),
      "initializers"_a = nb::none(), "stream"_a = 0, load_doc,
      nb::sig("def load(model: typing.Any, *, threads: int = 0, spin_microseconds: int = -1, parallel_branches: bool "
              "= False, flush_denormals: bool = False, providers: str | collections.abc.Iterable[str] = 'cpu', "
              "allow_fallback: bool = False, memory_limit: int = 0, memory: str = 'normal', precision: str = 'full', "
              "decompose: str | "
              "collections.abc.Iterable[str] = (), level: str = 'all', "
              "disabled_passes: str | collections.abc.Iterable[str] = (), keep: str | "
              "collections.abc.Iterable[str] = (), custom_operator_libraries: str | os.PathLike | "
              "collections.abc.Iterable[str | os.PathLike] = (), log: collections.abc.Callable[[str], None] | None "
              "= None, config: collections.abc.Mapping[str, str] = {}, folder: str | os.PathLike | None = None, "
              "sizes: collections.abc.Mapping[str, int] = {}, denoted_sizes: collections.abc.Mapping[str, int] = {}, "
              "initializers: collections.abc.Mapping[str, typing.Any] | None = None, stream: int = 0) -> Model"));
  module.def("config_keys", &config_keys, "Every key that ``config`` of :func:`load` may have.");
  module.def("available_providers", &available_providers,
             "The providers of this build that can start on this machine.");
  bind_optimizer(module);
  module.def(
      "inspect",
      [](const Path& path, nb::handle libraries) {
        const SessionOptions options = with_libraries(libraries);
        nb::gil_scoped_release free;
        return tools::inspect(path, options);
      },
      "path"_a, nb::kw_only(), "custom_operator_libraries"_a = nb::tuple(),
      "Reads a model and says what is in it, also when it could not run.",
      nb::sig("def inspect(path: str | os.PathLike, *, custom_operator_libraries: str | os.PathLike | "
              "collections.abc.Iterable[str | os.PathLike] = ()) -> ModelSummary"));
  module.def(
      "model_text",
      [](const Path& path, bool inferred, nb::handle libraries) {
        const SessionOptions options = with_libraries(libraries);
        nb::gil_scoped_release free;
        return tools::model_text(path, inferred, options);
      },
      "path"_a, nb::kw_only(), "inferred"_a = false, "custom_operator_libraries"_a = nb::tuple(),
      "The model as text, one node a line. With ``inferred``, lifted to the newest operators and with inferred types.",
      nb::sig("def model_text(path: str | os.PathLike, *, inferred: bool = False, custom_operator_libraries: str | "
              "os.PathLike | collections.abc.Iterable[str | os.PathLike] = ()) -> str"));
  module.def(
      "difference",
      [](nb::handle actual, nb::handle expected, double rtol, double atol) {
        return tools::difference(import_value(actual, ""), import_value(expected, ""),
                                 {.relative = rtol, .absolute = atol});
      },
      "actual"_a, "expected"_a, "rtol"_a = 1e-3, "atol"_a = 1e-7,
      "How two values differ: empty if every element is within ``|actual - expected| <= atol + rtol * |expected|``, "
      "else\n"
      "a sentence with the largest errors, the place, and both elements there.",
      nb::sig(
          "def difference(actual: typing.Any, expected: typing.Any, rtol: float = 1e-3, atol: float = 1e-7) -> str"));
  module.def("operators", &tools::list_operators, "Every operator that Tenon knows, by domain and name.");
}

}  // namespace tenon::python
