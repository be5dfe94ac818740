#include "session/compiled_model.h"

#include <algorithm>

#include "base/available_memory.h"
#include "base/fail.h"
#include "base/names.h"
#include "ir/count.h"
#include "ir/unique_names.h"
#include "ir/verify.h"
#include "kernels/gemm_bf16/gemm_bf16.h"
#include "ops/operator.h"
#include "passes/constants.h"
#include "passes/decompose.h"
#include "passes/infer.h"
#include "passes/lift.h"
#include "passes/optimizer.h"
#include "passes/quantization_reasons.h"
#include "session/custom_operator.h"
#include "session/describe.h"
#include "session/evaluate.h"
#include "session/fixed_sizes.h"
#include "session/index_limit.h"
#include "session/memory_pool.h"
#include "session/providers.h"

namespace tenon {
namespace {

void check_decompose(const SessionOptions& options) {
  for (const std::string& name : options.decompose) {
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

bool is_asked_to_decompose(const SessionOptions& options, const ir::Node& node) {
  return std::ranges::any_of(options.decompose,
                             [&](const std::string& name) { return name == "all" || name == node.op_type; });
}

// Of constants: they are not the runs' memory, but no more than these may have.
int64_t memory_limit(const SessionOptions& options) {
  return options.memory_limit > 0 ? options.memory_limit : available_memory();
}

// Whether computing the node ahead makes much of constants that stay in memory, because other nodes read them too.
bool would_hold_twice(const ir::Node& node) {
  constexpr int64_t much = 4096;
  const bool is_much = std::ranges::any_of(node.outputs(), [&](const ir::Value* value) {
    const std::optional<Shape> shape = value && value->type.shape ? concrete(*value->type.shape) : std::nullopt;
    return shape && byte_size(value->type.element, shape->elements()) > much;
  });
  return is_much && std::ranges::any_of(node.inputs(), [&](const ir::Value* value) {
           return value && value->constant() && value->constant()->tensor.bytes() > much && value->users().size() > 1;
         });
}

std::string why_nothing_is_rounded(bool has_device) {
  return fmt::format("precision 'fast' changes nothing: {}",
                     has_device                     ? "no node is a product or a convolution of floats"
                     : kernels::fast_bf16_kernels() ? "no node multiplies floats with constant weights"
                                                    : "this CPU has no faster products of bfloat16 (bfmmla or AMX)");
}

// What a file says of inputs and outputs must be about those of its graph.
void require_interface(const ModelReport& report, const ir::Graph& graph) {
  const auto has = [](const ValueInfo& info, const ir::Value* value) {
    return info.name == value->name && (!value->is_graph_input() || info.type == value->type.name());
  };
  std::vector<const ir::Value*> inputs, overridable;
  for (const ir::Value* value : graph.inputs()) (value->is_initializer() ? overridable : inputs).push_back(value);
  if (!std::ranges::equal(report.inputs, inputs, has) || !std::ranges::equal(report.overridable, overridable, has) ||
      !std::ranges::equal(report.outputs, graph.outputs(), has))
    fail(ErrorCode::damaged_file, "its graph has other inputs or outputs than its description");
}

// What was left out of the file must have been packed.
void require_stored(const ir::Graph& graph, const CompiledFile& file) {
  for (const ir::Value* value : graph.initializers()) {
    if (value->constant() && file.is_unstored(value->constant()->tensor))
      throw Error(ErrorCode::damaged_file, "the tensor is not in the file").on_tensor(value->name);
  }
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::Attribute& attribute : node.attributes) {
      if (const auto* tensor = std::get_if<ir::ConstantPtr>(&attribute.value);
          tensor && file.is_unstored((*tensor)->tensor))
        throw Error(ErrorCode::damaged_file, "a tensor is not in the file").at_node(node.describe());
      attribute.for_each_graph([&](const ir::Graph& subgraph) { require_stored(subgraph, file); });
    }
  }
}

}  // namespace

CompiledModel::CompiledModel(std::unique_ptr<ir::Model> loaded, const SessionOptions& options, ThreadPool& threads,
                             RecordedPacking* packing)
    : model_(std::move(loaded)) {
  info = describe(*model_);
  start_providers(options);
  check_decompose(options);
  note(fix_sizes(*model_->graph, options));
  if (!options.trust_size_names) forget_size_names(*model_->graph);
  note(passes::lift_to_newest_opset(
      *model_, list_custom_operators(options.custom_operators, options.custom_operator_libraries)));
  ir::Graph& graph = *model_->graph;
  passes::inline_functions(*model_);
  MemoryPool constants(memory_limit(options));
  passes::constants_to_initializers(graph, constants);
  ir::verify_and_sort(graph);
  note(passes::infer_types(graph).notes);
  describe_interface();
  // First what no provider runs: a Gradient is that of the nodes in the model.
  passes::decompose(graph, [&](const ir::Node& node) { return !runs(node); });
  optimize(options, options.level, threads);
  const size_t nodes = ir::count_nodes(graph);
  note(passes::decompose(graph, [&](const ir::Node& node) {
    return is_asked_to_decompose(options, node) || !runs(node) || is_for_device(node);
  }));
  // Not beyond basic: fusions would undo what was just decomposed.
  if (ir::count_nodes(graph) != nodes) optimize(options, std::min(options.level, OptimizationLevel::basic), threads);
  if (packing) ir::make_names_unique(*model_);
  compile(threads, options.memory, {options.precision, options.full_precision_nodes}, packing);
}

CompiledModel::CompiledModel(CompiledFile file, const SessionOptions& options, ThreadPool& threads)
    : ModelReport(std::move(file.description.report)), model_(file.read_model()) {
  start_providers(options);
  require_interface(*this, graph());
  try {
    ir::verify_and_sort(*model_->graph);
    passes::infer_types(*model_->graph);
    StoredPacking packing = file.packing();
    // Whether memory was to be saved shows in what was packed.
    compile(threads, MemoryUse::normal, {precision_of(file.description.key)}, &packing);
    packing.require_all_used();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::damaged_file || error.code() == ErrorCode::out_of_memory) throw;
    throw Error(ErrorCode::damaged_file, fmt::format("its graph cannot run: {}", error.message()))
        .at_node(error.node())
        .on_tensor(error.tensor());
  }
  require_stored(graph(), file);
}

void CompiledModel::compile(ThreadPool& threads, MemoryUse memory, const PrecisionChoice& precision,
                            PackedArchive* packing) {
  if (hosts_.size() < order_.size()) devices_ = std::make_unique<DevicePlacement>(*model_->graph, order_, support_);
  program_ = Program::compile(*model_->graph, order_, threads, placement_, memory, precision, packing, devices_.get());
  if (precision.precision == Precision::fast && placement_.rounded_nodes == 0)
    note({why_nothing_is_rounded(devices_ != nullptr)});
  for (Placement::Node& node : placement_.nodes) {
    node.declined.insert(node.declined.begin(), missing_providers_.begin(), missing_providers_.end());
    if (std::string reason = passes::why_quantization_stays(*node.node); !reason.empty())
      node.declined.emplace_back("qdq", std::move(reason));
  }
}

int64_t CompiledModel::weight_bytes() const {
  int64_t bytes = program_->packed_bytes();
  for (const ir::Value* value : graph().initializers()) {
    const bool held = value->constant() && value->constant()->tensor.raw();
    if (held && value->constant()->tensor.type() != ElementType::string) bytes += value->constant()->tensor.bytes();
  }
  return bytes;
}

const PlacementReport& CompiledModel::placement() const {
  std::call_once(report_once_, [&] { report_ = placement_for({}); });
  return report_;
}

PlacementReport CompiledModel::placement_for(const std::map<std::string, Shape>& input_shapes) const {
  std::vector<std::string> names;
  for (const Provider* provider : order_) {
    if (std::ranges::find(names, provider->name()) == names.end()) names.emplace_back(provider->name());
  }
  return report(placement_, names, graph(), input_shapes);
}

void CompiledModel::start_providers(const SessionOptions& options) {
  if (options.providers.empty()) fail(ErrorCode::invalid_argument, "no provider is given");
  for (const std::string& name : options.providers) {
    try {
      providers_.push_back(start_provider(name));
    } catch (const Error& error) {
      if (!options.allow_fallback || error.code() != ErrorCode::provider_unavailable) throw;
      missing_providers_.emplace_back(name, error.message());
      note({fmt::format("provider '{}' is not used: {}", name, error.message())});
    }
  }
  if (providers_.empty()) {
    throw Error(ErrorCode::provider_unavailable, "none of the providers that were asked for can start",
                "add 'cpu' as the last one to fall back to");
  }
  const Provider* with_device = nullptr;
  for (const auto& provider : providers_) {
    if (with_device && provider->device() && provider->device() != with_device->device()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a session computes on one device, and both '{}' and '{}' are asked for",
                              with_device->name(), provider->name()),
                  "make a session for each");
    }
    if (provider->device()) with_device = provider.get();
    order_.push_back(provider.get());
    if (!provider->device()) hosts_.push_back(provider.get());
  }
  if (!hosts_.empty()) return;
  // Sizes are computed on the host all the same.
  providers_.push_back(start_provider("cpu"));
  support_ = providers_.back().get();
  order_.push_back(support_);
  hosts_.push_back(support_);
}

void CompiledModel::optimize(const SessionOptions& options, OptimizationLevel level, ThreadPool& threads) {
  MemoryPool memory(memory_limit(options));
  passes::OptimizerOptions wanted;
  wanted.level = level;
  wanted.disabled = options.disabled_passes;
  if (options.most_rewrites >= 0)
    wanted.most_rewrites = std::max<int64_t>(0, options.most_rewrites - static_cast<int64_t>(rewrites.size()));
  wanted.target = {.is_device = order_.front()->device() != nullptr,
                   .rounds_float32 = options.precision == Precision::fast};
  if (options.memory == MemoryUse::low) wanted.disabled.emplace_back("winograd");  // its weights are larger
  wanted.keep = options.keep;
  wanted.evaluate = [&](const ir::Node& node) {
    if (options.memory == MemoryUse::low && would_hold_twice(node))
      fail(ErrorCode::unsupported, "others read its constants as they are");
    return evaluate(node, hosts_, threads, memory);
  };
  std::vector<Rewrite> made = passes::optimize(*model_->graph, wanted);
  std::ranges::move(made, std::back_inserter(rewrites));
}

bool CompiledModel::runs(const ir::Node& node) const {
  return std::ranges::any_of(providers_, [&](const auto& provider) { return provider->claim(node).accepted; });
}

bool CompiledModel::is_for_device(const ir::Node& node) const {
  const Provider& first = *order_.front();
  return first.device() && !first.claim(node).accepted && first.wants_decomposed(node);
}

void CompiledModel::note(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (std::ranges::find(notes, line) == notes.end()) notes.push_back(line);
  }
}

void CompiledModel::describe_interface() {
  for (const ir::Value* value : model_->graph->inputs()) {
    ValueInfo& input = (value->is_initializer() ? overridable : inputs).emplace_back(describe(*value));
    input.index_limit = index_limit(*value);
  }
  for (const ir::Value* value : model_->graph->outputs()) outputs.push_back(describe(*value));
}

}  // namespace tenon
