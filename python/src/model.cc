#include "model.h"

#include <chrono>

#include "bindings.h"
#include "import_array.h"
#include "tenon/tools/benchmark.h"
#include "tenon/tools/make_inputs.h"
#include "tenon/tools/profile.h"

namespace tenon::python {
namespace {

const ValueInfo* find(const std::vector<ValueInfo>& infos, std::string_view name) {
  for (const ValueInfo& info : infos) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

Value import_input(nb::handle object, std::string_view name, const Session& session, Memory memory = Memory::any) {
  const ValueInfo* info = find(session.inputs(), name);
  if (!info) info = find(session.overridable_initializers(), name);
  try {
    return import_value(object, info ? std::string_view(info->type) : "", memory);
  } catch (Error& error) {
    error.on_tensor(name);
    throw;
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    const std::string type = info ? info->type : "an array";
    throw Error(ErrorCode::type_mismatch, "the model takes " + type + ", which " +
                                              nb::type_name(object.type()).c_str() +
                                              " cannot become: " + nb::str(error.value()).c_str())
        .on_tensor(name);
  }
}

bool is_mapping(nb::handle object) {
  return nb::isinstance<nb::dict>(object) ||
         (nb::hasattr(object, "keys") && nb::hasattr(object, "__getitem__") && !nb::hasattr(object, "__array__"));
}

void add_mapping(nb::handle mapping, const Session& session, NamedValues& values, Memory memory = Memory::any) {
  if (nb::isinstance<nb::dict>(mapping)) {
    for (auto [key, object] : nb::borrow<nb::dict>(mapping)) {
      // Making a tensor of it may call Python, which may take it out of the mapping.
      const nb::object held = nb::borrow(object);
      auto name = text_of(key);
      Value value = import_input(held, name, session, memory);
      values.insert_or_assign(std::move(name), std::move(value));
    }
    return;
  }
  for (nb::handle key : nb::iter(mapping.attr("keys")())) {
    const auto name = text_of(key);
    values.insert_or_assign(name, import_input(mapping[key], name, session, memory));
  }
}

// A mapping, or values in the order of the model's inputs, and inputs by keyword.
NamedValues gather_inputs(const nb::args& positional, const nb::kwargs& named, const Session& session) {
  NamedValues values;
  const std::vector<ValueInfo>& inputs = session.inputs();
  if (positional.size() == 1 && is_mapping(positional[0])) {
    add_mapping(positional[0], session, values);
  } else if (!(positional.size() == 1 && positional[0].is_none())) {
    if (positional.size() > inputs.size()) {
      throw Error(ErrorCode::unknown_name, "the model has " + std::to_string(inputs.size()) + " inputs, " +
                                               std::to_string(positional.size()) + " were given");
    }
    for (size_t i = 0; i < positional.size(); ++i) {
      values.emplace(inputs[i].name, import_input(positional[i], inputs[i].name, session));
    }
  }
  for (auto [key, object] : named) {
    const auto name = text_of(key);
    if (values.contains(name)) {
      throw Error(ErrorCode::invalid_argument, "the input is given twice: by position or mapping, and by keyword")
          .on_tensor(name);
    }
    values.emplace(name, import_input(object, name, session));
  }
  return values;
}

// Outputs that the run is to make on a device, as `outputs_on` says: one for all of them, or by name.
void add_outputs_on(nb::handle outputs_on, const Session& session, RunOptions& options) {
  if (outputs_on.is_none()) return;
  const auto add = [&](const std::string& name, const std::string& device) {
    if (device != "cpu") options.destinations.emplace(name, made_on_device(device));
  };
  if (!nb::isinstance<nb::str>(outputs_on)) {
    for (nb::handle key : nb::iter(outputs_on.attr("keys")())) add(text_of(key), text_of(outputs_on[key]));
    return;
  }
  for (const std::string& name : options.outputs) add(name, text_of(outputs_on));
  if (!options.outputs.empty()) return;
  for (const ValueInfo& info : session.outputs()) add(info.name, text_of(outputs_on));
}

nb::dict run(const Model& model, const nb::args& positional, nb::handle outputs, nb::handle into, nb::handle outputs_on,
             const Cancellation* cancel, const nb::object& profile, bool wait, const nb::kwargs& named) {
  const ReadyInStream ready(wait ? nullptr : model.stream);
  const NamedValues inputs = as_run([&] { return gather_inputs(positional, named, model.session); });
  RunOptions options;
  options.wait = wait;
  if (!outputs.is_none()) options.outputs = words(outputs);
  nb::dict destinations;
  if (!into.is_none()) {
    for (nb::handle key : nb::iter(into.attr("keys")())) {
      const auto name = text_of(key);
      destinations[key] = into[key];
      try {
        options.destinations.emplace(name, import_destination(into[key]));
      } catch (Error& error) {
        error.on_tensor(name);
        throw;
      }
    }
  }
  as_run([&] { add_outputs_on(outputs_on, model.session, options); });
  if (cancel) options.cancel = cancel->source.get_token();
  tools::ProfiledRun measured;
  if (!profile.is_none()) options.profile = &measured.steps;
  NamedValues results;
  {
    nb::gil_scoped_release free;
    const auto now = [&] {
      return options.profile ? std::chrono::steady_clock::now().time_since_epoch() : std::chrono::nanoseconds(0);
    };
    const std::chrono::nanoseconds start = now();
    results = as_run([&] { return model.session.run(inputs, options); });
    measured.start_ns = start.count();
    measured.duration_ns = (now() - start).count();
  }
  if (!profile.is_none()) profile.attr("append")(std::move(measured));
  nb::dict arrays;
  for (const ValueInfo& info : model.session.outputs()) {
    auto result = results.find(info.name);
    if (result == results.end()) continue;
    const nb::str name(info.name.data(), info.name.size());
    arrays[name] =
        !into.is_none() && destinations.contains(name) ? nb::object(destinations[name]) : export_value(result->second);
  }
  return arrays;
}

tools::BenchResult bench(const Model& model, nb::handle inputs, const tools::BenchOptions& options) {
  const NamedValues values = as_run([&] { return import_inputs(inputs, model.session, Memory::any); });
  nb::gil_scoped_release free;
  return as_run([&] { return tools::bench(model.session, values, options); });
}

Profile profile(const Model& model, nb::handle inputs, int64_t runs, int64_t warmup) {
  const NamedValues values = as_run([&] { return import_inputs(inputs, model.session, Memory::any); });
  nb::gil_scoped_release free;
  Profile result;
  result.name = model.name;
  result.runs =
      as_run([&] { return tools::profile(model.session, values, {.runs = runs, .warmup = warmup, .progress = {}}); });
  result.summary = tools::summarize(result.runs);
  return result;
}

std::map<std::string, Shape> shapes_of(nb::handle mapping) {
  std::map<std::string, Shape> shapes;
  if (mapping.is_none()) return shapes;
  for (nb::handle key : nb::iter(mapping.attr("keys")())) {
    shapes.emplace(text_of(key), shape_of(mapping[key]));
  }
  return shapes;
}

nb::dict random_inputs(const Model& model, std::map<std::string, int64_t> dims, nb::handle shapes, uint64_t seed) {
  tools::InputSources sources;
  sources.dims = std::move(dims);
  sources.shapes = shapes_of(shapes);
  sources.seed = seed;
  tools::MadeInputs made;
  {
    nb::gil_scoped_release free;
    made = tools::make_inputs(model.session, sources);
  }
  nb::dict arrays;
  for (const ValueInfo& info : model.session.inputs()) {
    if (auto value = made.values.find(info.name); value != made.values.end()) {
      arrays[nb::str(info.name.data(), info.name.size())] = export_value(value->second);
    }
  }
  return arrays;
}

constexpr const char* run_signature =
    "(self, *inputs: typing.Any, outputs: str | collections.abc.Iterable[str] | None = None, "
    "into: collections.abc.Mapping[str, typing.Any] | None = None, "
    "outputs_on: str | collections.abc.Mapping[str, str] | None = None, cancel: Cancellation | None = None, "
    "profile: list[ProfiledRun] | None = None, wait: bool = True, **named: typing.Any) -> dict[str, typing.Any]";

constexpr const char* run_doc =
    "Runs the model and returns its outputs by name.\n\n"
    "Inputs are a mapping (``run({\"x\": x})``), keywords (``run(x=x)``) or values in the order of :attr:`inputs`\n"
    "(``run(x)``). Arrays with the buffer protocol or DLPack (NumPy, PyTorch, JAX, ...) are read where they lie, if "
    "they\n"
    "are contiguous, and must not be written to meanwhile. Lists and numbers become the declared type; arrays are "
    "never\n"
    "converted silently. Sequences are lists, maps dicts, an empty optional is None.\n\n"
    "Outputs are NumPy arrays over the run's own memory, which lives as long as they do. Types that NumPy lacks need "
    "the\n"
    "package ml_dtypes; without it they are :class:`Tensor`.\n\n"
    "Arrays in the memory of a GPU (DLPack, or a :class:`Tensor`) stay there for a model with the provider cuda; for\n"
    "others, and for nodes that run on the CPU, they are copied to the host. What writes them is waited for.\n\n"
    "Other threads run meanwhile; any number of them may run one model.\n\n"
    ":param outputs: names of the outputs to compute; only the nodes that they need run.\n"
    ":param into: arrays to write outputs into, by name; they are returned in their place. They may be on the GPU.\n"
    ":param outputs_on: ``'cuda'`` makes outputs in the memory of the GPU, as :class:`Tensor`; a mapping, those that "
    "it\n"
    "    names. The run has ended there when this returns, if it waits.\n"
    ":param cancel: ends the run early, from another thread.\n"
    ":param profile: a list that what every step of the run did is appended to.\n"
    ":param wait: False lets a model that works in a stream of yours (``load(stream=...)``) return before the GPU is "
    "done,\n"
    "    if inputs and outputs are all there: what the stream is given next comes after the run. What fails there is "
    "raised\n"
    "    by a later run or by :func:`wait_for_cuda`.\n"
    ":raises InputError: if an input is missing, unknown, or of a type or shape that the model does not take.\n"
    ":raises RunError: if a node fails.";

void bind_profile(nb::module_& module) {
  nb::class_<Profile>(module, "Profile", "Where the time of some runs went.")
      .def_ro("runs", &Profile::runs, "Each run with all its steps.")
      .def_prop_ro(
          "seconds", [](const Profile& p) { return p.summary.seconds; }, "Of all the runs.")
      .def_prop_ro(
          "step_seconds", [](const Profile& p) { return p.summary.step_seconds; }, "Of the steps in them.")
      .def_prop_ro(
          "operators", [](const Profile& p) { return p.summary.operators; }, "By operator, slowest first.")
      .def_prop_ro(
          "nodes", [](const Profile& p) { return p.summary.nodes; }, "By node, slowest first.")
      .def(
          "trace", [](const Profile& p) { return tools::trace_json(p.runs, p.name); },
          "A JSON document that Perfetto (ui.perfetto.dev) and chrome://tracing show.")
      .def(
          "save", [](const Profile& p, const std::filesystem::path& path) { tools::write_trace(path, p.runs, p.name); },
          "path"_a, "Writes :meth:`trace` to a file.");
}

}  // namespace

NamedValues import_inputs(nb::handle mapping, const Session& session, Memory memory) {
  NamedValues values;
  if (!mapping.is_none()) add_mapping(mapping, session, values, memory);
  return values;
}

void bind_models(nb::module_& module) {
  nb::class_<Cancellation>(module, "Cancellation", "Ends runs that were given it.")
      .def(nb::init<>())
      .def(
          "cancel", [](Cancellation& self) { self.source.request_stop(); },
          "Ends the runs between two nodes with the error code ``cancelled``.")
      .def_prop_ro("cancelled", [](const Cancellation& self) { return self.source.stop_requested(); });
  bind_profile(module);

  nb::class_<Model>(module, "Model", "A model that is ready to run. :func:`load` makes one.")
      .def("run", &run, "inputs"_a, "outputs"_a = nb::none(), "into"_a = nb::none(), "outputs_on"_a = nb::none(),
           "cancel"_a = nb::none(), "profile"_a = nb::none(), "wait"_a = true, "named"_a, run_doc,
           nb::sig((std::string("def run") + run_signature).c_str()))
      .def("__call__", &run, "inputs"_a, "outputs"_a = nb::none(), "into"_a = nb::none(), "outputs_on"_a = nb::none(),
           "cancel"_a = nb::none(), "profile"_a = nb::none(), "wait"_a = true, "named"_a, "The same as :meth:`run`.",
           nb::sig((std::string("def __call__") + run_signature).c_str()))
      .def_prop_ro("inputs", [](const Model& m) { return m.session.inputs(); })
      .def_prop_ro("outputs", [](const Model& m) { return m.session.outputs(); })
      .def_prop_ro(
          "overridable_initializers", [](const Model& m) { return m.session.overridable_initializers(); },
          "Weights that are inputs too: a run may give them another value.")
      .def_prop_ro(
          "info", [](const Model& m) { return m.session.model(); }, "What the model says about itself.")
      .def_ro("name", &Model::name, "The file it was loaded from.")
      .def_prop_ro(
          "threads", [](const Model& m) { return m.session.threads(); }, "That a run computes with.")
      .def_prop_ro(
          "notes", [](const Model& m) { return m.session.notes(); }, "What loading did that a user may want to know.")
      .def_prop_ro(
          "rewrites", [](const Model& m) { return m.session.rewrites(); },
          "Every change that the optimiser made, in order.")
      .def_prop_ro(
          "copies", [](const Model& m) { return m.session.copies(); }, "Tensors that go from one provider to another.")
      .def(
          "placement", [](const Model& m) { return m.session.placement(); },
          "Every node with its provider, kernel and reasons, in the order they run.")
      .def(
          "placement_report",
          [](const Model& m, nb::handle shapes) { return m.session.placement_report(shapes_of(shapes)); },
          "shapes"_a = nb::none(),
          "Placement with totals; estimates that follow from ``shapes``, by input, are numbers.",
          nb::sig("def placement_report(self, shapes: collections.abc.Mapping[str, collections.abc.Iterable[int]] | "
                  "None = None) -> PlacementReport"))
      .def(
          "memory", [](const Model& m) { return m.session.memory(); }, "Bytes that the model holds now.")
      .def(
          "trim", [](Model& m) { m.session.trim(); }, nb::call_guard<nb::gil_scoped_release>(),
          "Gives back memory that is kept for later runs; the next ones are a little slower.")
      .def("random_inputs", &random_inputs, "dims"_a = std::map<std::string, int64_t>(), "shapes"_a = nb::none(),
           "seed"_a = 0,
           "Random values for every input. ``dims`` gives sizes to the model's named ones (1 where it does not),\n"
           "``shapes`` whole shapes by input.",
           nb::sig("def random_inputs(self, dims: collections.abc.Mapping[str, int] = {}, shapes: "
                   "collections.abc.Mapping[str, collections.abc.Iterable[int]] | None = None, seed: int = 0) -> "
                   "dict[str, typing.Any]"))
      .def(
          "bench",
          [](const Model& m, nb::handle inputs, int64_t runs, double seconds, int64_t warmup, int concurrency) {
            return bench(
                m, inputs,
                {.runs = runs, .seconds = seconds, .warmup = warmup, .concurrency = concurrency, .progress = {}});
          },
          "inputs"_a, "runs"_a = 0, "seconds"_a = 3.0, "warmup"_a = 3, "concurrency"_a = 1,
          "Runs the model again and again and measures. ``runs`` is how often (0: as many as begin in ``seconds``),\n"
          "``concurrency`` how many threads run it at the same time.",
          nb::sig("def bench(self, inputs: collections.abc.Mapping[str, typing.Any], runs: int = 0, seconds: float = "
                  "3.0, warmup: int = 3, concurrency: int = 1) -> BenchResult"))
      .def(
          "profile", &profile, "inputs"_a, "runs"_a = 3, "warmup"_a = 3, "Runs the model and measures every step.",
          nb::sig("def profile(self, inputs: collections.abc.Mapping[str, typing.Any], runs: int = 3, warmup: int = 3) "
                  "-> Profile"))
      .def("__repr__", [](const Model& m) {
        std::string text = "<tenon.Model";
        if (!m.name.empty()) text += " '" + m.name + "'";
        for (const ValueInfo& info : m.session.inputs()) text += " " + info.name;
        text += " ->";
        for (const ValueInfo& info : m.session.outputs()) text += " " + info.name;
        return text + ">";
      });
}

}  // namespace tenon::python
