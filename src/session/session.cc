#include "tenon/session.h"

#include <algorithm>
#include <cstring>

#include "base/available_memory.h"
#include "base/fail.h"
#include "base/float_mode.h"
#include "base/names.h"
#include "ir/count.h"
#include "ir/verify.h"
#include "onnx/model_file.h"
#include "ops/operator.h"
#include "passes/constants.h"
#include "passes/decompose.h"
#include "passes/infer.h"
#include "passes/lift.h"
#include "passes/optimizer.h"
#include "session/check_inputs.h"
#include "session/custom_operator.h"
#include "session/describe.h"
#include "session/evaluate.h"
#include "session/memory_pool.h"
#include "session/placement.h"
#include "session/program.h"
#include "session/providers.h"

namespace tenon {
class Session::Implementation {
 public:
  Implementation(std::unique_ptr<ir::Model> loaded, const SessionOptions& options)
      : options_(options),
        threads_(make_threads(options)),
        memory_(options.memory_limit > 0 ? options.memory_limit : available_memory()),
        model_info(describe(*loaded)),
        model_(std::move(loaded)) {
    start_providers();
    check_decompose();
    note(passes::lift_to_newest_opset(
        *model_, list_custom_operators(options_.custom_operators, options_.custom_operator_libraries)));
    passes::inline_functions(*model_);
    passes::constants_to_initializers(*model_->graph, memory_);
    ir::verify_and_sort(*model_->graph);
    note(passes::infer_types(*model_->graph).notes);
    describe_interface();
    std::vector<const Provider*> order;
    for (const auto& provider : providers_) order.push_back(provider.get());
    // First what no provider runs: a Gradient is that of the nodes in the model.
    passes::decompose(*model_->graph, [&](const ir::Node& node) { return !runs(node); });
    optimize(order, options_.level);
    const size_t nodes = ir::count_nodes(*model_->graph);
    note(passes::decompose(*model_->graph,
                           [&](const ir::Node& node) { return is_asked_to_decompose(node) || !runs(node); }));
    // Not beyond basic: fusions would undo what was just decomposed.
    if (ir::count_nodes(*model_->graph) != nodes) optimize(order, std::min(options_.level, OptimizationLevel::basic));
    program_ = Program::compile(*model_->graph, order, *threads_, placement);
    for (NodePlacement& node : placement.nodes)
      node.declined.insert(node.declined.begin(), missing_providers_.begin(), missing_providers_.end());
  }

  NamedValues run(const NamedValues& feeds, const RunOptions& options) const {
    const ir::Graph& graph = *model_->graph;
    std::vector<Value> arguments = check_inputs(graph, feeds);
    std::vector<bool> wanted = wanted_outputs(options);
    std::vector<Tensor> destinations = match_destinations(options);
    const ScopedFloatMode mode(options_.flush_denormals ? with_denormals_flushed(float_mode()) : float_mode());
    RunState state{*threads_, memory_, options.cancel, options.profile};
    std::vector<Value> results = program_->run(state, arguments, wanted, destinations);
    NamedValues named;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!wanted[i]) continue;
      Value value = std::move(results[i]);
      deliver(value, destinations.empty() ? Tensor() : destinations[i], graph.outputs()[i]->name, memory_);
      named.insert_or_assign(graph.outputs()[i]->name, std::move(value));
    }
    return named;
  }

  PlacementReport placement_report(const std::map<std::string, Shape>& input_shapes) const {
    std::vector<std::string> names;
    for (const auto& provider : providers_) {
      if (std::ranges::find(names, provider->name()) == names.end()) names.emplace_back(provider->name());
    }
    return report(placement, names, *model_->graph, input_shapes);
  }

  int threads() const { return threads_->size(); }

  SessionMemory memory() const {
    SessionMemory result = memory_.statistics();
    for (const ir::Value* value : model_->graph->initializers()) {
      const bool held = value->constant() && value->constant()->tensor.raw();
      if (held && value->constant()->tensor.type() != ElementType::string)
        result.weights += value->constant()->tensor.bytes();
    }
    result.weights += program_->packed_bytes();
    return result;
  }

  void trim() {
    program_->trim();
    memory_.trim();
  }

 private:
  static std::shared_ptr<ThreadPool> make_threads(const SessionOptions& options) {
    if (options.threads <= 0 && options.spin_microseconds < 0) return ThreadPool::shared();
    return std::make_shared<ThreadPool>(
        options.threads, options.spin_microseconds < 0 ? default_spin_microseconds() : options.spin_microseconds);
  }

  void start_providers() {
    if (options_.providers.empty()) fail(ErrorCode::invalid_argument, "no provider is given");
    for (const std::string& name : options_.providers) {
      try {
        providers_.push_back(start_provider(name));
      } catch (const Error& error) {
        if (!options_.allow_fallback || error.code() != ErrorCode::provider_unavailable) throw;
        missing_providers_.emplace_back(name, error.message());
        note({fmt::format("provider '{}' is not used: {}", name, error.message())});
      }
    }
    if (providers_.empty()) {
      throw Error(ErrorCode::provider_unavailable, "none of the providers that were asked for can start",
                  "add 'cpu' as the last one to fall back to");
    }
  }

  void optimize(const std::vector<const Provider*>& order, OptimizationLevel level) {
    // Constants are not the runs' memory.
    MemoryPool memory(options_.memory_limit > 0 ? options_.memory_limit : available_memory());
    passes::OptimizerOptions options;
    options.level = level;
    options.disabled = options_.disabled_passes;
    options.keep = options_.keep;
    options.evaluate = [&](const ir::Node& node) { return evaluate(node, order, *threads_, memory); };
    std::vector<Rewrite> made = passes::optimize(*model_->graph, options);
    std::ranges::move(made, std::back_inserter(rewrites));
  }

  void check_decompose() const {
    for (const std::string& name : options_.decompose) {
      if (name == "all") continue;
      std::vector<std::string_view> names;
      bool can = false;
      for (const ops::Operator* op : ops::operators().all()) {
        if (op->decomposition) names.push_back(op->name);
        can |= op->decomposition && op->name == name;
      }
      if (can) continue;
      std::string_view nearest = nearest_name(name, names);
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("decompose names '{}', which is no operator with a decomposition", name),
                  nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest));
    }
  }

  bool runs(const ir::Node& node) const {
    return std::ranges::any_of(providers_, [&](const auto& provider) { return provider->claim(node).accepted; });
  }

  bool is_asked_to_decompose(const ir::Node& node) const {
    return std::ranges::any_of(options_.decompose,
                               [&](const std::string& name) { return name == "all" || name == node.op_type; });
  }

  void note(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      notes.push_back(line);
      if (options_.log) options_.log(line);
    }
  }

  void describe_interface() {
    for (const ir::Value* value : model_->graph->inputs()) {
      (value->is_initializer() ? overridable : inputs).push_back(describe(*value));
    }
    for (const ir::Value* value : model_->graph->outputs()) outputs.push_back(describe(*value));
  }

  size_t output_index(std::string_view name) const {
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
    std::vector<bool> wanted(outputs.size(), options.outputs.empty());
    for (const std::string& name : options.outputs) wanted[output_index(name)] = true;
    return wanted;
  }

  std::vector<Tensor> match_destinations(const RunOptions& options) const {
    if (options.destinations.empty()) return {};
    std::vector<Tensor> destinations(outputs.size());
    for (const auto& [name, tensor] : options.destinations) destinations[output_index(name)] = tensor;
    return destinations;
  }

  // Outputs never share memory with weights, inputs or each other; and they lie where the caller wants them.
  static void deliver(Value& value, Tensor destination, const std::string& name, MemoryPool& memory) {
    if (!value.is_tensor()) return;
    Tensor& tensor = value.tensor();
    if (destination.defined()) {
      if (destination.raw() == tensor.raw() && destination.type() == tensor.type() &&
          destination.shape() == tensor.shape())
        return;
      if (destination.type() != tensor.type() || !(destination.shape() == tensor.shape())) {
        throw Error(ErrorCode::shape_mismatch,
                    fmt::format("the memory given for it is {} {}, the run made {}", name_of(destination.type()),
                                destination.shape().to_string(), value.describe()))
            .on_tensor(name);
      }
      if (tensor.type() == ElementType::string)
        std::ranges::copy(tensor.data<std::string>(), destination.mutable_data<std::string>().begin());
      else if (tensor.bytes() > 0)
        std::memcpy(destination.mutable_raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
      value = std::move(destination);
    } else if (!tensor.sole_owner()) {
      value = tensor.clone(memory);
    }
  }

  SessionOptions options_;
  std::shared_ptr<ThreadPool> threads_;
  mutable MemoryPool memory_;
  std::vector<std::unique_ptr<Provider>> providers_;
  std::vector<std::pair<std::string, std::string>> missing_providers_;  // name and reason

 public:
  ModelInfo model_info;
  std::vector<ValueInfo> inputs, outputs, overridable;
  Placement placement;
  std::vector<Rewrite> rewrites;
  std::vector<std::string> notes;

 private:
  std::unique_ptr<ir::Model> model_;
  std::unique_ptr<Program> program_;
};

Session::Session(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::load(const std::filesystem::path& path, const SessionOptions& options) {
  return Session(std::make_unique<Implementation>(onnx::load_model(path), options));
}

Session Session::from_bytes(std::span<const std::byte> bytes, const SessionOptions& options,
                            const std::filesystem::path& folder) {
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  return Session(std::make_unique<Implementation>(onnx::parse_model(*copy, copy, folder), options));
}

const ModelInfo& Session::model() const { return implementation_->model_info; }
const std::vector<ValueInfo>& Session::inputs() const { return implementation_->inputs; }
const std::vector<ValueInfo>& Session::outputs() const { return implementation_->outputs; }
const std::vector<ValueInfo>& Session::overridable_initializers() const { return implementation_->overridable; }
const std::vector<NodePlacement>& Session::placement() const { return implementation_->placement.nodes; }
const std::vector<Rewrite>& Session::rewrites() const { return implementation_->rewrites; }
const std::vector<ValueCopy>& Session::copies() const { return implementation_->placement.copies; }
PlacementReport Session::placement_report(const std::map<std::string, Shape>& input_shapes) const {
  return implementation_->placement_report(input_shapes);
}
int Session::threads() const { return implementation_->threads(); }
SessionMemory Session::memory() const { return implementation_->memory(); }
void Session::trim() { implementation_->trim(); }
const std::vector<std::string>& Session::notes() const { return implementation_->notes; }
NamedValues Session::run(const NamedValues& inputs, const RunOptions& options) const {
  return implementation_->run(inputs, options);
}

}  // namespace tenon
