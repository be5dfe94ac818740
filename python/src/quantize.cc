#include "tenon/tools/quantize.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>

#include "onnx_model.h"
#include "record.h"

namespace tenon::python {
namespace {

using Path = std::filesystem::path;

// Dicts of arrays that a Python object gives, one after the other. Runs go on without the GIL, so each is fetched with
// it.
class PythonSamples final : public tools::Samples {
 public:
  PythonSamples(nb::object source, const Session& session) : source_(std::move(source)), session_(session) {
    iterator_ = iterator_of(source_);
  }
  ~PythonSamples() override {
    nb::gil_scoped_acquire acquire;
    iterator_.reset();
    source_.reset();
  }
  PythonSamples(const PythonSamples&) = delete;
  PythonSamples& operator=(const PythonSamples&) = delete;

  std::optional<NamedValues> next() override {
    nb::gil_scoped_acquire acquire;
    const nb::object item = nb::steal(PyIter_Next(iterator_.ptr()));
    if (!item.is_valid()) {
      if (PyErr_Occurred()) throw nb::python_error();
      return std::nullopt;
    }
    return import_inputs(item, session_);
  }

  // What is its own iterator is gone through once.
  bool rewind() override {
    nb::gil_scoped_acquire acquire;
    nb::object again = iterator_of(source_);
    if (again.is(source_)) return false;
    iterator_ = std::move(again);
    return true;
  }

  int64_t count() const override {
    nb::gil_scoped_acquire acquire;
    const Py_ssize_t length = PyObject_HasAttrString(source_.ptr(), "__len__") ? PyObject_Length(source_.ptr()) : -1;
    PyErr_Clear();
    return length;
  }

 private:
  static nb::object iterator_of(nb::handle source) {
    nb::object iterator = nb::steal(PyObject_GetIter(source.ptr()));
    if (!iterator.is_valid()) throw nb::python_error();
    return iterator;
  }

  nb::object source_, iterator_;
  const Session& session_;
};

std::unique_ptr<tools::Samples> samples_of(nb::object source, const Session& session,
                                           const tools::PictureOptions& pictures) {
  if (source.is_none()) return nullptr;
  if (nb::isinstance<nb::str>(source) || nb::hasattr(source, "__fspath__"))
    return tools::read_samples(nb::cast<Path>(source), session.inputs(), pictures);
  return std::make_unique<PythonSamples>(std::move(source), session);
}

tools::TensorOverride override_of(nb::handle given) {
  tools::TensorOverride result;
  for (nb::handle key : nb::iter(given.attr("keys")())) {
    const std::string name = text_of(key);
    if (name == "type")
      result.type = tools::code_type(text_of(given[key]));
    else if (name == "symmetric")
      result.symmetric = nb::cast<bool>(given[key]);
    else if (name == "low")
      result.low = nb::cast<double>(given[key]);
    else if (name == "high")
      result.high = nb::cast<double>(given[key]);
    else
      throw Error(ErrorCode::invalid_argument, "overrides: '" + name + "' is not understood",
                  "type, symmetric, low and high are");
  }
  return result;
}

std::vector<std::string> words_or_none(nb::handle object) {
  return object.is_none() ? std::vector<std::string>() : words(object);
}

// What Python is asked while runs go on without the GIL.
std::function<double(const tools::OnnxModel&)> metric_of(nb::object function) {
  if (function.is_none()) return {};
  return [held = share(std::move(function))](const tools::OnnxModel& model) {
    nb::gil_scoped_acquire acquire;
    return nb::cast<double>(nb::handle(static_cast<PyObject*>(held.get()))(nb::cast(model)));
  };
}

std::function<void(const std::string&, double)> progress_of(nb::object function) {
  if (function.is_none()) return {};
  return [held = share(std::move(function))](const std::string& what, double done) {
    nb::gil_scoped_acquire acquire;
    nb::handle(static_cast<PyObject*>(held.get()))(what, done);
  };
}

tools::QuantizeReport quantize(nb::handle source, const std::string& mode, nb::object calibration,
                               nb::object evaluation, const std::string& method, double percentile,
                               const std::string& format, const std::string& activations,
                               const std::optional<std::string>& weights, bool per_channel, bool symmetric_activations,
                               bool symmetric_weights, nb::handle only, nb::handle keep_float, nb::handle overrides,
                               bool bias_correction, const std::optional<double>& smooth,
                               const std::optional<std::string>& float_type, const std::string& weight_method,
                               int64_t block_size, const std::optional<double>& max_loss, nb::object metric,
                               bool measure, const std::vector<float>& mean, const std::vector<float>& std,
                               const std::map<std::string, int64_t>& sizes, int threads, nb::object progress) {
  const tools::OnnxModel model = import_onnx_model(source);
  tools::QuantizeOptions options;
  options.mode = tools::quantize_mode(mode);
  options.format = tools::quantize_format(format);
  options.range = tools::range_method(method);
  options.percentile = percentile;
  options.activations = tools::code_type(activations);
  const bool weight_only = options.mode == tools::QuantizeMode::weight_only;
  options.weights = tools::code_type(weights.value_or(weight_only ? "int4" : "int8"));
  options.per_channel = per_channel;
  options.symmetric_activations = symmetric_activations;
  options.symmetric_weights = symmetric_weights;
  options.only = words_or_none(only);
  options.keep = words_or_none(keep_float);
  if (!overrides.is_none()) {
    for (nb::handle key : nb::iter(overrides.attr("keys")()))
      options.overrides[text_of(key)] = override_of(overrides[key]);
  }
  options.bias_correction = bias_correction;
  options.smooth = smooth;
  if (float_type) options.float_type = tools::float_type(*float_type);
  options.weight_method = tools::weight_method(weight_method);
  options.block_size = block_size;
  options.loss.most = max_loss;
  options.loss.metric = metric_of(std::move(metric));
  options.measure = measure;
  options.session.threads = threads;
  options.progress = progress_of(std::move(progress));
  const Session session = model.open(options.session);
  const std::unique_ptr<tools::Samples> calibrated = samples_of(std::move(calibration), session, {mean, std});
  const std::unique_ptr<tools::Samples> evaluated = samples_of(std::move(evaluation), session, {mean, std});
  tools::QuantizeData data{calibrated.get(), evaluated.get(), {}};
  data.random.dims = sizes;
  nb::gil_scoped_release free;
  return tools::quantize(model, options, data);
}

void bind_report(nb::module_& module) {
  using tools::OutputReport;
  using tools::QuantizedNodeReport;
  using tools::QuantizeReport;
  using tools::RangeReport;
  Record<QuantizedNodeReport>(module, "QuantizedNode", "A node that could be quantized.")
      .field("node", &QuantizedNodeReport::node)
      .field("op_type", &QuantizedNodeReport::op_type)
      .field("is_quantized", &QuantizedNodeReport::is_quantized)
      .field("why_float", &QuantizedNodeReport::why_float, "Empty if it is quantized.")
      .field("sqnr", &QuantizedNodeReport::sqnr, "Of the outputs when it alone is quantized, in dB, where measured.")
      .field("own_sqnr", &QuantizedNodeReport::own_sqnr, "Of what it makes, in dB, where measured.");
  Record<RangeReport>(module, "QuantizedRange", "The range of an activation.")
      .field("tensor", &RangeReport::tensor)
      .field("seen_low", &RangeReport::seen_low, "The smallest number of the calibration.")
      .field("seen_high", &RangeReport::seen_high)
      .field("low", &RangeReport::low, "What the lowest code stands for.")
      .field("high", &RangeReport::high)
      .field("scale", &RangeReport::scale)
      .field("zero_point", &RangeReport::zero_point)
      .field("clipped", &RangeReport::clipped, "Share of the numbers seen that are outside.");
  Record<OutputReport>(module, "QuantizedOutput", "How far an output is off, over all samples compared.")
      .field("output", &OutputReport::output)
      .field("sqnr", &OutputReport::sqnr, "In dB.")
      .field("cosine", &OutputReport::cosine)
      .field("max_absolute", &OutputReport::max_absolute);
  nb::class_<QuantizeReport>(module, "QuantizeReport", "What :func:`quantize` made, and what it is like.")
      .def_ro("model", &QuantizeReport::model, "The quantized model; ``report.model.save(path)`` writes it.")
      .def_ro("bytes_before", &QuantizeReport::bytes_before, "Of weights.")
      .def_ro("bytes_after", &QuantizeReport::bytes_after)
      .def_ro("seconds_before", &QuantizeReport::seconds_before, "Of a run, where measured.")
      .def_ro("seconds_after", &QuantizeReport::seconds_after)
      .def_ro("outputs", &QuantizeReport::outputs)
      .def_ro("loss", &QuantizeReport::loss, "As the budget counts it.")
      .def_ro("metric_before", &QuantizeReport::metric_before)
      .def_ro("metric_after", &QuantizeReport::metric_after)
      .def_prop_ro(
          "float_type", [](const QuantizeReport& report) { return std::string(name_of(report.float_type)); },
          "What stayed float computes in it: ``float32`` or ``float16``.")
      .def_ro("samples", &QuantizeReport::samples, "Of the calibration.")
      .def_ro("evaluated", &QuantizeReport::evaluated, "Samples that the models were compared on.")
      .def_ro("nodes", &QuantizeReport::nodes)
      .def_ro("ranges", &QuantizeReport::ranges)
      .def_ro("warnings", &QuantizeReport::warnings)
      .def_prop_ro("quantized_nodes", &QuantizeReport::quantized_nodes, "How many nodes are quantized.")
      .def("__str__", [](const QuantizeReport& report) { return tools::to_text(report); })
      .def(
          "to_json", [](const QuantizeReport& report) { return tools::to_json(report); }, "All of it as JSON.")
      .def(
          "to_html",
          [](const QuantizeReport& report, const std::string& title) { return tools::to_html(report, title); },
          "title"_a = "model", "A page to look at.");
}

}  // namespace

void bind_quantize(nb::module_& module) {
  bind_report(module);
  module.def(
      "quantize", &quantize, "model"_a, nb::kw_only(), "mode"_a = "static", "calibration"_a = nb::none(),
      "evaluation"_a = nb::none(), "method"_a = "mse", "percentile"_a = 99.99, "format"_a = "qdq",
      "activations"_a = "uint8", "weights"_a = nb::none(), "per_channel"_a = true, "symmetric_activations"_a = false,
      "symmetric_weights"_a = true, "only"_a = nb::none(), "keep_float"_a = nb::none(), "overrides"_a = nb::none(),
      "bias_correction"_a = false, "smooth"_a = nb::none(), "float_type"_a = nb::none(), "weight_method"_a = "round",
      "block_size"_a = 32, "max_loss"_a = 0.01, "metric"_a = nb::none(), "measure"_a = true,
      "mean"_a = std::vector<float>{0}, "std"_a = std::vector<float>{1}, "sizes"_a = std::map<std::string, int64_t>(),
      "threads"_a = 0, "progress"_a = nb::none(),
      "A model that computes in integers, in the opset it had.\n\n"
      ":param mode: ``static``, ``dynamic`` or ``weight-only``.\n"
      ":param calibration: data like that of production: a path of .npz or .npy files or pictures, or an iterable of\n"
      "    dicts of arrays; random numbers, with a warning, if there is none.\n"
      ":param evaluation: the same, for comparing the models; some of the calibration if there is none.\n"
      ":param method: how ranges follow from data: ``mse``, ``minmax``, ``moving-average``, ``percentile``, "
      "``entropy``.\n"
      ":param format: ``qdq`` or ``qoperator``.\n"
      ":param activations: ``uint8``, ``int8``, ``uint16`` or ``int16``.\n"
      ":param weights: ``int8`` or ``uint8``, and for weight-only ``int4`` or ``uint4``.\n"
      ":param only: nodes, by name or operator, that are quantized and no others; ``*`` is any text.\n"
      ":param keep_float: nodes that stay float.\n"
      ":param overrides: by tensor: ``{\"type\": \"uint16\", \"symmetric\": True, \"low\": -1, \"high\": 1}``.\n"
      ":param bias_correction: take what rounding the weights adds on average off the biases.\n"
      ":param smooth: SmoothQuant: how much of the differences between channels goes into weights, 0 to 1.\n"
      ":param float_type: what stays float computes in ``float32`` or ``float16``; by default in float16 where nodes\n"
      "    stay float to hold the budget and this machine is faster so.\n"
      ":param weight_method: for weight-only: ``round`` or ``gptq``.\n"
      ":param block_size: for weight-only: how many weights share a scale; 0: a whole column.\n"
      ":param max_loss: share of the outputs' power that their error may have, or of the metric that may be lost;\n"
      "    nodes stay float to hold it. None: no limit.\n"
      ":param metric: is called with an :class:`OnnxModel` and says how good it is, the larger the better.\n"
      ":param measure: whether what is slower in integers on this machine stays float.\n"
      ":param mean: of pictures, for all or for each channel.\n"
      ":param std: of pictures.\n"
      ":param sizes: of named dimensions of random inputs.\n"
      ":param progress: is called with what is done and how much of it, 0 to 1.",
      nb::sig("def quantize(model: " TENON_MODEL_SOURCE
              ", *, mode: str = 'static', calibration: str | os.PathLike | collections.abc.Iterable[dict[str, "
              "typing.Any]] | None = None, evaluation: str | os.PathLike | collections.abc.Iterable[dict[str, "
              "typing.Any]] | None = None, method: str = 'mse', percentile: float = 99.99, format: str = 'qdq', "
              "activations: str = 'uint8', weights: str | None = None, per_channel: bool = True, "
              "symmetric_activations: bool = False, symmetric_weights: bool = True, only: str | "
              "collections.abc.Sequence[str] | None = None, keep_float: str | collections.abc.Sequence[str] | None = "
              "None, overrides: collections.abc.Mapping[str, collections.abc.Mapping[str, typing.Any]] | None = None, "
              "bias_correction: bool = False, smooth: float | None = None, float_type: str | None = None, "
              "weight_method: str = 'round', block_size: "
              "int = 32, max_loss: float | None = 0.01, metric: collections.abc.Callable[[OnnxModel], float] | None = "
              "None, measure: bool = True, mean: collections.abc.Sequence[float] = [0], std: "
              "collections.abc.Sequence[float] = [1], sizes: collections.abc.Mapping[str, int] = {}, threads: int = 0, "
              "progress: collections.abc.Callable[[str, float], None] | None = None) -> QuantizeReport"));
}

}  // namespace tenon::python
