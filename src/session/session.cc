#include "tenon/session.h"

#include <algorithm>

#include "base/available_memory.h"
#include "base/fail.h"
#include "base/float_mode.h"
#include "base/names.h"
#include "onnx/model_file.h"
#include "session/check_inputs.h"
#include "session/compiled_model.h"
#include "session/memory_pool.h"
#include "session/plan_cache.h"
#include "session/session_of_model.h"
#include "session/shared_models.h"
#include "tenon/device.h"

namespace tenon {

// A model, which other sessions may share, and what is this session's own: threads, memory, plans.
class Session::Implementation {
 public:
  explicit Implementation(const SessionOptions& options)
      : options_(options),
        threads_(make_threads(options)),
        memory_(options.memory_limit > 0 ? options.memory_limit : available_memory(), options.memory) {}

  void load(const std::filesystem::path& path) { set_model(shared_model(path, options_, *threads_)); }

  void load(std::unique_ptr<ir::Model> loaded) {
    set_model(std::make_shared<const CompiledModel>(std::move(loaded), options_, *threads_));
  }

  const CompiledModel& model() const { return *model_; }

  ~Implementation() {
    if (queue_) queue_->finish_kept();
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  NamedValues run(const NamedValues& feeds, const RunOptions& options) const {
    const ir::Graph& graph = model_->graph();
    if (queue_) queue_->drop_finished();
    if (!options.wait) require_callers_stream();
    std::vector<Value> arguments = check_inputs(graph, feeds);
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].is_tensor()) continue;
      const Device* device = device_of(arguments[i].tensor());
      if (!device) continue;
      require_same_device(*device, graph.inputs()[i]->name);
      // Only copies to the device read it where it is.
      if (model_->program().takes_on_device(i)) continue;
      if (!options.wait) queue_->wait();  // for what writes it
      arguments[i] = on_host(arguments[i].tensor());
    }
    std::vector<bool> wanted = wanted_outputs(options);
    const std::vector<Tensor> destinations = match_destinations(options);
    std::vector<Tensor> written = destinations;  // by the program
    for (size_t i = 0; i < written.size(); ++i) {
      // What only the host makes goes there when it is done.
      if (device_of(written[i]) && !model_->program().gives_on_device(i)) written[i] = Tensor();
    }
    const RunMemory run_memory(*this);
    const ThreadPool::Run thread_run(*threads_);
    const ScopedFloatMode mode(options_.flush_denormals ? with_denormals_flushed(float_mode()) : float_mode());
    const RunState state{*threads_,
                         memory_,
                         *plans_,
                         options.cancel,
                         options.profile,
                         options.watcher,
                         options_.parallel_branches && !queue_ ? threads_->size() : 1,
                         queue_.get(),
                         options.device_repeats};
    std::vector<Value> results = model_->program().run(state, arguments, wanted, written);
    const auto is_on_device = [](const Tensor& tensor) { return device_of(tensor) != nullptr; };
    if (!options.wait && may_return_early(arguments, results))
      queue_->keep(owners_of(arguments, results));
    else if (queue_ && std::ranges::any_of(written, is_on_device))
      queue_->wait();
    NamedValues named;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!wanted[i]) continue;
      Value value = std::move(results[i]);
      deliver(value, destinations.empty() ? Tensor() : destinations[i], graph.outputs()[i]->name, memory_);
      named.insert_or_assign(graph.outputs()[i]->name, std::move(value));
    }
    return named;
  }

  int threads() const { return threads_->size(); }

  SessionMemory memory() const {
    SessionMemory result = memory_.statistics();
    result.weights = model_->weight_bytes();
    return result;
  }

  void trim() {
    plans_->trim();
    memory_.trim();
  }

 private:
  // What lies ready for the next run goes when this one ends, if memory is to be saved.
  class RunMemory {
   public:
    explicit RunMemory(const Implementation& session) : session_(session), run_(session.memory_) {}
    ~RunMemory() {
      if (session_.options_.memory == MemoryUse::low) session_.plans_->drop_frames();
    }

   private:
    const Implementation& session_;
    MemoryPool::Run run_;
  };

  static std::shared_ptr<ThreadPool> make_threads(const SessionOptions& options) {
    if (options.threads <= 0 && options.spin_microseconds < 0) return ThreadPool::shared();
    return std::make_shared<ThreadPool>(
        options.threads, options.spin_microseconds < 0 ? default_spin_microseconds() : options.spin_microseconds);
  }

  void set_model(std::shared_ptr<const CompiledModel> model) {
    model_ = std::move(model);
    if (Device* device = model_->program().device()) queue_ = device->make_queue(CallersStream::current());
    plans_ = std::make_unique<PlanCaches>(model_->program());
    if (!options_.log) return;
    for (const std::string& note : model_->notes) options_.log(note);
  }

  void require_callers_stream() const {
    if (queue_ && queue_->is_callers()) return;
    throw Error(ErrorCode::invalid_argument, "a run cannot return early: the session has no stream of the caller's",
                "make the session with one: tenon::CallersStream, tenon.load(stream=…), user_compute_stream");
  }

  // Whether nothing of the run is on the host, where it must be done when the run returns.
  bool may_return_early(const std::vector<Value>& arguments, const std::vector<Value>& results) const {
    const auto is_there = [](const Value& value) {
      return !value.defined() || (value.is_tensor() && device_of(value.tensor()) != nullptr);
    };
    return options_.memory == MemoryUse::normal && std::ranges::all_of(arguments, is_there) &&
           std::ranges::all_of(results, is_there);
  }

  static std::vector<std::shared_ptr<void>> owners_of(const std::vector<Value>& arguments,
                                                      const std::vector<Value>& results) {
    std::vector<std::shared_ptr<void>> owners;
    for (const std::vector<Value>* values : {&arguments, &results}) {
      for (const Value& value : *values) {
        if (value.defined()) owners.push_back(value.tensor().owner());
      }
    }
    return owners;
  }

  void require_same_device(const Device& device, const std::string& name) const {
    const Device* own = model_->program().device();
    if (!own || own == &device) return;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("it is in the memory of {}, the model runs on {}", device.memory_name(), own->memory_name()),
        "copy it there, or to the host")
        .on_tensor(name);
  }

  size_t output_index(std::string_view name) const {
    const std::vector<ValueInfo>& outputs = model_->outputs;
    auto found = std::ranges::find(outputs, name, &ValueInfo::name);
    if (found != outputs.end()) return static_cast<size_t>(found - outputs.begin());
    std::vector<std::string_view> names;
    for (const ValueInfo& output : outputs) names.push_back(output.name);
    std::string_view nearest = nearest_name(name, names);
    throw Error(ErrorCode::unknown_name,
                fmt::format("the model has no output '{}'; it has {}", name, quoted_list(names)),
                nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest));
  }

  std::vector<bool> wanted_outputs(const RunOptions& options) const {
    std::vector<bool> wanted(model_->outputs.size(), options.outputs.empty());
    for (const std::string& name : options.outputs) wanted[output_index(name)] = true;
    return wanted;
  }

  std::vector<Tensor> match_destinations(const RunOptions& options) const {
    if (options.destinations.empty()) return {};
    std::vector<Tensor> destinations(model_->outputs.size());
    for (const auto& [name, tensor] : options.destinations) {
      if (const Device* device = device_of(tensor)) require_same_device(*device, name);
      destinations[output_index(name)] = tensor;
    }
    return destinations;
  }

  // Outputs never share memory with weights, inputs or each other; and they lie where the caller wants them.
  static void deliver(Value& value, Tensor destination, const std::string& name, MemoryPool& memory) {
    if (!value.is_tensor()) return;
    Tensor& tensor = value.tensor();
    if (stands_for_output(destination)) {
      if (!device_of(tensor) && tensor.type() != ElementType::string) value = device_of(destination)->upload(tensor);
    } else if (destination.defined()) {
      if (destination.raw() == tensor.raw() && destination.type() == tensor.type() &&
          destination.shape() == tensor.shape())
        return;
      if (destination.type() != tensor.type() || !(destination.shape() == tensor.shape())) {
        throw Error(ErrorCode::shape_mismatch,
                    fmt::format("the memory given for it is {} {}, the run made {}", name_of(destination.type()),
                                destination.shape().to_string(), value.describe()))
            .on_tensor(name);
      }
      copy_elements(tensor, destination);
      value = std::move(destination);
    } else if (!tensor.sole_owner()) {
      value = tensor.clone(memory);
    }
  }

  SessionOptions options_;
  std::shared_ptr<ThreadPool> threads_;
  mutable MemoryPool memory_;
  std::shared_ptr<const CompiledModel> model_;
  std::unique_ptr<Queue> queue_;  // of the model's device, if it has one
  std::unique_ptr<PlanCaches> plans_;
};

Session::Session(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::load(const std::filesystem::path& path, const SessionOptions& options) {
  auto implementation = std::make_unique<Implementation>(options);
  implementation->load(path);
  return Session(std::move(implementation));
}

Session Session::from_bytes(std::span<const std::byte> bytes, const SessionOptions& options,
                            const std::filesystem::path& folder) {
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  auto implementation = std::make_unique<Implementation>(options);
  implementation->load(
      onnx::parse_model(*copy, copy, folder, {.given = options.initializers, .old_inputs_are_constants = true}));
  return Session(std::move(implementation));
}

Session session_of(std::unique_ptr<ir::Model> model, const SessionOptions& options) {
  // Before version 4 of the format every initializer had to be an input.
  if (model->ir_version > 0 && model->ir_version < 4) {
    for (ir::Value* value : std::vector(model->graph->initializers()))
      if (value->is_graph_input()) model->graph->remove_input(*value);
  }
  auto implementation = std::make_unique<Session::Implementation>(options);
  implementation->load(std::move(model));
  return Session(std::move(implementation));
}

const ModelInfo& Session::model() const { return implementation_->model().info; }
void RunWatcher::before(const WatchedStep&) {}
void RunWatcher::after(const WatchedStep&) {}

const std::vector<ValueInfo>& Session::inputs() const { return implementation_->model().inputs; }
const std::vector<ValueInfo>& Session::outputs() const { return implementation_->model().outputs; }
const std::vector<ValueInfo>& Session::overridable_initializers() const { return implementation_->model().overridable; }
const std::vector<NodePlacement>& Session::placement() const { return implementation_->model().placement().nodes; }
const std::vector<Rewrite>& Session::rewrites() const { return implementation_->model().rewrites; }
const std::vector<ValueCopy>& Session::copies() const { return implementation_->model().placement().copies; }
PlacementReport Session::placement_report(const std::map<std::string, Shape>& input_shapes) const {
  const CompiledModel& model = implementation_->model();
  return input_shapes.empty() ? model.placement() : model.placement_for(input_shapes);
}
int Session::threads() const { return implementation_->threads(); }
SessionMemory Session::memory() const { return implementation_->memory(); }
void Session::trim() { implementation_->trim(); }
const std::vector<std::string>& Session::notes() const { return implementation_->model().notes; }
NamedValues Session::run(const NamedValues& inputs, const RunOptions& options) const {
  return implementation_->run(inputs, options);
}

}  // namespace tenon
