#include "onnx_model.h"

namespace tenon::python {
namespace {

using Path = std::filesystem::path;
using tools::OnnxModel;
using tools::SaveOptions;

SaveOptions save_options(const std::optional<bool>& external_data, int64_t external_from, const std::string& data_file,
                         bool overwrite) {
  SaveOptions options;
  if (external_data) options.data = *external_data ? SaveOptions::Data::outside : SaveOptions::Data::inside;
  options.outside_from = external_from;
  options.data_file = data_file;
  options.overwrite = overwrite;
  return options;
}

constexpr const char* save_doc =
    "Writes the model; returns the files that were written.\n\n"
    ":param external_data: whether tensors of ``external_from`` bytes or more go into a file beside the model;\n"
    "    ``None`` leaves each where it was.\n"
    ":param data_file: the name of that file; the model's and ``.data`` if not given.\n"
    ":param overwrite: whether files that the model was read from may be replaced.";

}  // namespace

OnnxModel import_onnx_model(nb::handle source) {
  if (nb::isinstance<OnnxModel>(source)) return nb::cast<OnnxModel>(source);
  nb::object held = nb::borrow(source);
  if (nb::hasattr(held, "SerializeToString")) held = held.attr("SerializeToString")();
  if (nb::isinstance<nb::str>(held) || nb::hasattr(held, "__fspath__")) {
    const Path path = nb::cast<Path>(held);
    nb::gil_scoped_release free;
    return OnnxModel::load(path);
  }
  const std::optional<Tensor> bytes = import_array(held, ReadOnly::share);
  if (!bytes || bytes->type() == ElementType::string) {
    throw Error(ErrorCode::invalid_argument,
                std::string("a model is a path, bytes, an onnx.ModelProto or an OnnxModel, not ") +
                    nb::type_name(held.type()).c_str());
  }
  const std::span content(static_cast<const std::byte*>(bytes->raw()), static_cast<size_t>(bytes->bytes()));
  nb::gil_scoped_release free;
  return OnnxModel::from_bytes(content);
}

void bind_onnx_models(nb::module_& module) {
  nb::class_<OnnxModel>(module, "OnnxModel",
                        "A model as its file has it, to be changed by tools and written again. It does not change\n"
                        "itself: tools return new ones.")
      .def(
          "save",
          [](const OnnxModel& model, const Path& path, const std::optional<bool>& external_data, int64_t external_from,
             const std::string& data_file, bool overwrite) {
            const SaveOptions options = save_options(external_data, external_from, data_file, overwrite);
            nb::gil_scoped_release free;
            return model.save(path, options).files;
          },
          "path"_a, nb::kw_only(), "external_data"_a = nb::none(), "external_from"_a = 1024, "data_file"_a = "",
          "overwrite"_a = false, save_doc)
      .def(
          "to_bytes",
          [](const OnnxModel& model) {
            const std::string bytes = [&] {
              nb::gil_scoped_release free;
              return model.to_bytes();
            }();
            return nb::bytes(bytes.data(), bytes.size());
          },
          "The model with all its tensors, as :func:`load` and other runtimes take it.");
  module.def("read_onnx", &import_onnx_model, "model"_a,
             "Reads a model as its file has it, from a path, bytes or an ``onnx.ModelProto``.",
             nb::sig("def read_onnx(model: " TENON_MODEL_SOURCE ") -> OnnxModel"));
}

}  // namespace tenon::python
