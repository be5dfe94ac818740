#include "bindings.h"
#include "record.h"
#include "tenon/session_config.h"

namespace tenon::python {
namespace {

using Path = std::filesystem::path;
using Sizes = std::map<std::string, int64_t>;

CompiledModelInfo compile_model(const Path& model, const Path& output, nb::handle providers, const std::string& level,
                                nb::handle disabled_passes, nb::handle keep, nb::handle decompose,
                                const std::string& memory, const std::string& precision, const Sizes& sizes,
                                const Sizes& denoted_sizes, const std::map<std::string, std::string>& config) {
  SessionOptions options;
  options.providers = words(providers);
  options.level = optimization_level(level);
  options.disabled_passes = words(disabled_passes);
  options.keep = words(keep);
  options.decompose = words(decompose);
  set_config(options, "tenon.memory", memory);
  set_config(options, "tenon.precision", precision);
  options.sizes = sizes;
  options.denoted_sizes = denoted_sizes;
  for (const auto& [key, value] : config) set_config(options, key, value);
  nb::gil_scoped_release free;
  return compile(model, output, options);
}

}  // namespace

void bind_compiled(nb::module_& module) {
  Record<CompiledModelInfo>(module, "CompiledModelInfo", "What is in a compiled file.")
      .field("bytes", &CompiledModelInfo::bytes, "Of the file.")
      .field("graph_bytes", &CompiledModelInfo::graph_bytes, "Of it, the optimised graph.")
      .field("tensor_bytes", &CompiledModelInfo::tensor_bytes, "Tensors that kernels read as they are.")
      .field("packed_bytes", &CompiledModelInfo::packed_bytes, "Weights as kernels want them.")
      .field("nodes", &CompiledModelInfo::nodes)
      .field("tensors", &CompiledModelInfo::tensors)
      .field("packed", &CompiledModelInfo::packed)
      .field("version", &CompiledModelInfo::version, "Of Tenon that it is for.")
      .field("processor", &CompiledModelInfo::processor, "That it is for.")
      .field("options", &CompiledModelInfo::options, "That are not as by default, by name.")
      .field("model", &CompiledModelInfo::model, "That it was compiled from.");
  module.def(
      "compile", &compile_model, "model"_a, "output"_a, nb::kw_only(), "providers"_a = "cpu", "level"_a = "all",
      "disabled_passes"_a = nb::tuple(), "keep"_a = nb::tuple(), "decompose"_a = nb::tuple(), "memory"_a = "normal",
      "precision"_a = "full", "sizes"_a = Sizes(), "denoted_sizes"_a = Sizes(),
      "config"_a = std::map<std::string, std::string>(),
      "Writes a model so that it loads at once: the graph after all passes, with weights packed for this\n"
      "processor. :func:`load` maps such a file, and processes that load it share its pages. Options are those\n"
      "of :func:`load`. The file is of use to the same version of Tenon on processors with the same features;\n"
      "where it is stale or damaged, :func:`load` says so and takes the model instead, if that is there.",
      nb::sig("def compile(model: str | os.PathLike, output: str | os.PathLike, *, providers: str | "
              "collections.abc.Iterable[str] = 'cpu', level: str = 'all', disabled_passes: str | "
              "collections.abc.Iterable[str] = (), keep: str | collections.abc.Iterable[str] = (), decompose: "
              "str | collections.abc.Iterable[str] = (), memory: str = 'normal', precision: str = 'full', sizes: "
              "collections.abc.Mapping[str, int] = {}, denoted_sizes: collections.abc.Mapping[str, int] = {}, "
              "config: collections.abc.Mapping[str, str] = {}) -> CompiledModelInfo"));
  module.def("check_compiled", &check_compiled, "path"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Reads a compiled file in full and compares all checksums, which :func:`load` does for the graph only.",
             nb::sig("def check_compiled(path: str | os.PathLike) -> CompiledModelInfo"));
}

}  // namespace tenon::python
