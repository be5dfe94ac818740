#include "onnx_model.h"
#include "record.h"
#include "tenon/tools/convert_dtype.h"
#include "tenon/tools/dynamic.h"
#include "tenon/tools/extract.h"
#include "tenon/tools/fix.h"
#include "tenon/tools/merge.h"
#include "tenon/tools/prune.h"
#include "tenon/tools/rename.h"
#include "tenon/tools/strip.h"

namespace tenon::python {
namespace {

using Path = std::filesystem::path;
using tools::ChangedModel;
using tools::OnnxModel;

#define TENON_NAMES "str | collections.abc.Iterable[str]"

// As import_onnx_model; what a tool returned is a model too.
OnnxModel model_of(nb::handle source) {
  if (nb::isinstance<ChangedModel>(source)) return nb::cast<ChangedModel>(source).model;
  return import_onnx_model(source);
}

std::vector<std::pair<std::string, std::string>> pairs_of(const nb::dict& names) {
  std::vector<std::pair<std::string, std::string>> result;
  for (auto [from, to] : names) result.emplace_back(text_of(from), text_of(to));
  return result;
}

std::vector<int64_t> list_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

void bind_changes(nb::module_& module) {
  Record<tools::ModelChange>(module, "ModelChange", "One thing that a tool did to a model.")
      .field("kind", &tools::ModelChange::kind, "Such as ``\"renamed value\"``.")
      .field("name", &tools::ModelChange::name)
      .field("detail", &tools::ModelChange::detail);
  nb::class_<ChangedModel>(module, "ChangedModel",
                           "What a tool made of a model. It can be given to the next tool as it is.")
      .def_ro("model", &ChangedModel::model)
      .def_ro("changes", &ChangedModel::changes)
      .def_ro("notes", &ChangedModel::notes, "What the user may not expect.");
}

void bind_cutting(nb::module_& module) {
  module.def(
      "extract",
      [](nb::handle source, nb::handle inputs, nb::handle outputs) {
        const OnnxModel model = model_of(source);
        const tools::ExtractOptions options{words(inputs), words(outputs)};
        nb::gil_scoped_release free;
        return tools::extract(model, options);
      },
      "model"_a, nb::kw_only(), "inputs"_a = nb::tuple(), "outputs"_a = nb::tuple(),
      "The part of a model between values.\n\n"
      ":param inputs: values that become the inputs; if none are given, those inputs that the outputs need.\n"
      ":param outputs: values that become the outputs; if none are given, those of the model.",
      nb::sig("def extract(model: " TENON_MODEL_SOURCE ", *, inputs: " TENON_NAMES " = (), outputs: " TENON_NAMES
              " = ()) -> ChangedModel"));
  module.def(
      "prune",
      [](nb::handle source, nb::handle keep, nb::handle drop, bool unused_inputs) {
        const OnnxModel model = model_of(source);
        const tools::PruneOptions options{words(keep), words(drop), unused_inputs};
        nb::gil_scoped_release free;
        return tools::prune(model, options);
      },
      "model"_a, nb::kw_only(), "keep"_a = nb::tuple(), "drop"_a = nb::tuple(), "unused_inputs"_a = false,
      "Drops outputs, and all that only they need.\n\n"
      ":param keep: outputs that stay; or\n"
      ":param drop: outputs that go.\n"
      ":param unused_inputs: whether inputs that nothing reads go too.",
      nb::sig("def prune(model: " TENON_MODEL_SOURCE ", *, keep: " TENON_NAMES " = (), drop: " TENON_NAMES
              " = (), unused_inputs: bool = False) -> ChangedModel"));
}

void bind_joining(nb::module_& module) {
  module.def(
      "rename",
      [](nb::handle source, const nb::dict& values, const nb::dict& nodes, const nb::dict& dims,
         const std::string& prefix, bool keep_io) {
        const OnnxModel model = model_of(source);
        const tools::RenameOptions options{pairs_of(values), pairs_of(nodes), pairs_of(dims), prefix, keep_io};
        nb::gil_scoped_release free;
        return tools::rename(model, options);
      },
      "model"_a, "values"_a = nb::dict(), nb::kw_only(), "nodes"_a = nb::dict(), "dims"_a = nb::dict(), "prefix"_a = "",
      "keep_io"_a = false,
      "Other names for values (inputs and outputs too), nodes and dimensions. One ``*`` in an old name stands for any\n"
      "text, which takes the place of the ``*`` in the new one.\n\n"
      ":param prefix: in front of all other names of values and nodes.\n"
      ":param keep_io: whether inputs and outputs of the model go without it.",
      nb::sig("def rename(model: " TENON_MODEL_SOURCE ", values: dict[str, str] = {}, *, nodes: dict[str, str] = {}, "
              "dims: dict[str, str] = {}, prefix: str = '', keep_io: bool = False) -> ChangedModel"));
  module.def(
      "merge",
      [](nb::handle first, nb::handle second, const nb::dict& map, const std::string& first_prefix,
         const std::string& second_prefix, const std::string& clash_prefix, bool keep_joined) {
        const OnnxModel a = model_of(first), b = model_of(second);
        const tools::MergeOptions options{pairs_of(map), first_prefix, second_prefix, clash_prefix, keep_joined};
        nb::gil_scoped_release free;
        return tools::merge(a, b, options);
      },
      "first"_a, "second"_a, "map"_a = nb::dict(), nb::kw_only(), "first_prefix"_a = "", "second_prefix"_a = "",
      "clash_prefix"_a = "second/", "keep_joined"_a = false,
      "The second model behind the first.\n\n"
      ":param map: outputs of the first and the inputs of the second that they become; if none are given, those of "
      "one\n"
      "    name.\n"
      ":param first_prefix: in front of all names of the first model; ``second_prefix`` of the second.\n"
      ":param clash_prefix: in front of names of the second that the first has too.\n"
      ":param keep_joined: whether joined outputs stay outputs.",
      nb::sig("def merge(first: " TENON_MODEL_SOURCE ", second: " TENON_MODEL_SOURCE ", map: dict[str, str] = {}, *, "
              "first_prefix: str = '', second_prefix: str = '', clash_prefix: str = 'second/', keep_joined: bool = "
              "False) -> ChangedModel"));
}

void bind_weights(nb::module_& module) {
  Record<tools::StrippedTensor>(module, "StrippedTensor", "A tensor that was taken out of a model.")
      .field("name", &tools::StrippedTensor::name)
      .field("type", &tools::StrippedTensor::type)
      .computed(
          "shape", [](const tools::StrippedTensor& tensor) { return list_of(tensor.shape); }, "",
          "def shape(self) -> list[int]")
      .field("bytes", &tools::StrippedTensor::bytes)
      .field("hash", &tools::StrippedTensor::hash, "Of its content.");
  nb::class_<tools::StrippedModel>(module, "StrippedModel", "The files that strip wrote, and what it took out.")
      .def_ro("model", &tools::StrippedModel::model)
      .def_ro("weights", &tools::StrippedModel::weights)
      .def_ro("manifest", &tools::StrippedModel::manifest)
      .def_ro("tensors", &tools::StrippedModel::tensors)
      .def_ro("hash", &tools::StrippedModel::hash, "Of all tensors.");
  module.def(
      "strip",
      [](nb::handle source, const Path& path, const std::string& weights_file, int64_t from_bytes, bool overwrite) {
        const OnnxModel model = model_of(source);
        const tools::StripOptions options{from_bytes, weights_file, overwrite};
        nb::gil_scoped_release free;
        return tools::strip(model, path, options);
      },
      "model"_a, "path"_a, nb::kw_only(), "weights_file"_a = "", "from_bytes"_a = 1024, "overwrite"_a = false,
      "Writes a model without its weights, and these into a file beside it, with a list of them (``.json``).\n\n"
      ":param weights_file: the name of that file; the model's and ``.weights`` if not given.\n"
      ":param from_bytes: smaller tensors stay in the model.",
      nb::sig("def strip(model: " TENON_MODEL_SOURCE
              ", path: str | os.PathLike, *, weights_file: str = '', from_bytes: "
              "int = 1024, overwrite: bool = False) -> StrippedModel"));
  module.def(
      "restore",
      [](const Path& path, const std::optional<Path>& weights) {
        nb::gil_scoped_release free;
        return tools::restore(path, weights.value_or(Path()));
      },
      "path"_a, "weights"_a = nb::none(),
      "Puts weights back that :func:`strip` took out.\n\n"
      ":param weights: their file; if not given, it lies beside the model.\n"
      ":raises FileError: if they are not the ones that were taken out.",
      nb::sig("def restore(path: str | os.PathLike, weights: str | os.PathLike | None = None) -> ChangedModel"));
}

void bind_sizes(nb::module_& module) {
  module.def(
      "fix",
      [](nb::handle source, const nb::dict& shapes, const std::map<std::string, int64_t>& dims) {
        const OnnxModel model = model_of(source);
        tools::FixOptions options;
        for (auto [name, shape] : shapes) options.shapes[text_of(name)] = shape_of(shape);
        options.dims = dims;
        nb::gil_scoped_release free;
        return tools::fix(model, options);
      },
      "model"_a, "shapes"_a = nb::dict(), nb::kw_only(), "dims"_a = std::map<std::string, int64_t>(),
      "Pins sizes of inputs, and writes the shapes that follow.\n\n"
      ":param shapes: of inputs, by name.\n"
      ":param dims: sizes of named dimensions.",
      nb::sig("def fix(model: " TENON_MODEL_SOURCE ", shapes: dict[str, collections.abc.Sequence[int]] = {}, *, dims: "
              "dict[str, int] = {}) -> ChangedModel"));
  Record<tools::DynamicBlocker>(module, "DynamicBlocker", "What keeps a size from being free.")
      .field("node", &tools::DynamicBlocker::node)
      .field("constant", &tools::DynamicBlocker::constant)
      .field("reason", &tools::DynamicBlocker::reason);
  nb::class_<tools::DynamicModel>(module, "DynamicModel", "What make_dynamic found, and made.")
      .def_prop_ro(
          "model", [](const tools::DynamicModel& result) { return result.require(); },
          "The model. Raises ModelError with every blocker if there are some.", nb::sig("def model(self) -> OnnxModel"))
      .def_ro("changes", &tools::DynamicModel::changes)
      .def_ro("blockers", &tools::DynamicModel::blockers)
      .def_ro("notes", &tools::DynamicModel::notes)
      .def_ro("proven", &tools::DynamicModel::proven, "Sizes that were run and compared with the original.")
      .def_ro("largest_difference", &tools::DynamicModel::largest_difference);
  module.def(
      "make_dynamic",
      [](nb::handle source, const std::string& name, int axis, const std::map<std::string, int>& inputs,
         const std::map<std::string, int64_t>& sizes, uint64_t seed, double rtol) {
        const OnnxModel model = model_of(source);
        tools::DynamicOptions options;
        options.name = name;
        options.axes.clear();
        for (const auto& [input, input_axis] : inputs) options.axes.push_back({input, input_axis});
        if (inputs.empty()) options.axes.push_back({"", axis});
        options.sizes = sizes;
        options.seed = seed;
        options.tolerance = rtol;
        nb::gil_scoped_release free;
        return tools::make_dynamic(model, options);
      },
      "model"_a, "name"_a = "batch", nb::kw_only(), "axis"_a = 0, "inputs"_a = std::map<std::string, int>(),
      "sizes"_a = std::map<std::string, int64_t>(), "seed"_a = 0, "rtol"_a = 1e-4,
      "Frees a size that is baked into a model, such as the batch, and proves it by running 1, 2 and 3 rows.\n\n"
      ":param name: of the new dimension.\n"
      ":param axis: of all inputs; or\n"
      ":param inputs: the axis of each input that has it.\n"
      ":param sizes: of other named dimensions in the runs that prove it.",
      nb::sig("def make_dynamic(model: " TENON_MODEL_SOURCE
              ", name: str = 'batch', *, axis: int = 0, inputs: dict[str, "
              "int] = {}, sizes: dict[str, int] = {}, seed: int = 0, rtol: float = 1e-4) -> DynamicModel"));
}

void bind_dtype(nb::module_& module) {
  Record<tools::KeptNode>(module, "KeptNode", "A node that computes in float still.")
      .field("node", &tools::KeptNode::node)
      .field("op_type", &tools::KeptNode::op_type)
      .field("reason", &tools::KeptNode::reason);
  using tools::DtypeConversion;
  nb::class_<DtypeConversion>(module, "DtypeConversion", "A model in a smaller type.")
      .def_ro("model", &DtypeConversion::model)
      .def_ro("changes", &DtypeConversion::changes)
      .def_ro("notes", &DtypeConversion::notes)
      .def_ro("converted_nodes", &DtypeConversion::converted_nodes)
      .def_ro("casts", &DtypeConversion::casts)
      .def_ro("kept", &DtypeConversion::kept)
      .def_ro("largest_difference", &DtypeConversion::largest_difference,
              "Of its outputs, as a share of the largest number of each.")
      .def_ro("why_not", &DtypeConversion::why_not, "Why it could not be compared with the original; \"\" if it was.");
  module.def(
      "convert_dtype",
      [](nb::handle source, const std::string& dtype, nb::handle only, nb::handle keep, bool keep_io,
         bool check_overflow, const std::map<std::string, int64_t>& dims, uint64_t seed) {
        const OnnxModel model = model_of(source);
        tools::DtypeOptions options;
        options.type = element_type_named(dtype);
        options.only = words(only);
        options.keep = words(keep);
        options.keep_io = keep_io;
        options.check_overflow = check_overflow;
        options.inputs.dims = dims;
        options.inputs.seed = seed;
        nb::gil_scoped_release free;
        return tools::convert_dtype(model, options);
      },
      "model"_a, "dtype"_a = "float16", nb::kw_only(), "only"_a = nb::tuple(), "keep"_a = nb::tuple(),
      "keep_io"_a = false, "check_overflow"_a = true, "dims"_a = std::map<std::string, int64_t>(), "seed"_a = 0,
      "Float weights and values become ``float16`` or ``bfloat16``, with casts around nodes that stay.\n\n"
      ":param only: nodes, by name or operator, that are converted; one ``*`` stands for any text.\n"
      ":param keep: nodes that are not.\n"
      ":param keep_io: whether inputs and outputs stay float.\n"
      ":param check_overflow: whether the model is run, to keep what would overflow in float.",
      nb::sig("def convert_dtype(model: " TENON_MODEL_SOURCE ", dtype: str = 'float16', *, only: " TENON_NAMES
              " = (), keep: " TENON_NAMES " = (), keep_io: bool = False, check_overflow: bool = True, dims: dict[str, "
              "int] = {}, seed: int = 0) -> DtypeConversion"));
}

}  // namespace

void bind_surgery(nb::module_& module) {
  bind_changes(module);
  bind_cutting(module);
  bind_joining(module);
  bind_weights(module);
  bind_sizes(module);
  bind_dtype(module);
}

}  // namespace tenon::python
