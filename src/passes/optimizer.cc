#include "passes/optimizer.h"

#include <algorithm>
#include <variant>

#include "base/fail.h"
#include "base/names.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "passes/optimize/passes.h"

namespace tenon {
namespace {

using enum OptimizationLevel;
using passes::Editor;

struct Pass : OptimizationPass {
  std::variant<void (*)(Editor&, ir::Node&), void (*)(Editor&, ir::Graph&)> rewrite;
  // When it runs: in every sweep; when the passes before find nothing more, which then look again; or once, at the end,
  // because it takes nodes that others look for.
  enum class Turn : unsigned char { sweep, at_rest, last } turn = Turn::sweep;
  // What it makes nodes for.
  enum class For : unsigned char { both, host, device } runs_on = For::both;
};

constexpr bool same_bits = true, rounds = false;

// The list of passes. A sweep runs them from top to bottom.
const Pass passes_in_order[] = {
    {{"dead-code", basic, same_bits, "removes nodes and weights that no output needs"}, passes::remove_dead_code},
    {{"identity", basic, same_bits, "removes Identity, and Dropout outside of training"}, passes::remove_identities},
    {{"constant-if", basic, same_bits, "an If with a constant condition becomes the branch that runs"},
     passes::inline_constant_if},
    {{"qdq", extended, rounds,
      "what is between DequantizeLinear and QuantizeLinear computes with bytes: Conv, MatMul, Add, Mul, pools, "
      "functions, moves"},
     passes::compute_in_integers},
    {{"packed-weights", extended, rounds,
      "a product with, or rows of, constant weights of few bits or in blocks read these as they are"},
     passes::use_packed_weights,
     Pass::Turn::sweep,
     Pass::For::host},
    {{"fold-constants", basic, same_bits, "computes what depends on constants and known sizes only"},
     passes::fold_constants},
    {{"common-subexpressions", basic, same_bits, "computes once what is computed twice; keeps one of equal constants"},
     passes::merge_common_subexpressions},
    {{"join-splits", basic, same_bits, "a Concat of all that a Split made takes what was split"}, passes::join_splits},
    {{"merge-concat", basic, same_bits, "a Concat of a Concat along the same axis takes its parts"},
     passes::merge_concats},
    {{"grow-concat", basic, same_bits, "a Concat that begins as another one does begins with that one's result"},
     passes::grow_concats},
    {{"no-op", basic, same_bits,
      "removes x * 1, x / 1, x - 0, slices of everything, pads of nothing, sums of one number and the like"},
     passes::remove_no_ops},
    {{"zero-sum", basic, rounds, "removes x + 0, which turns -0 into 0 and nothing else"},
     passes::remove_sums_with_zero},
    {{"zero-state", basic, same_bits, "LSTM, GRU and RNN begin with zeros without being given any"},
     passes::leave_out_zero_states},
    {{"cast", basic, same_bits, "removes casts to the same type, merges a cast after one that loses nothing"},
     passes::merge_casts},
    {{"codes-of-halves", extended, same_bits,
      "QuantizeLinear reads float16 and DequantizeLinear makes it, without a Cast to or from float"},
     passes::make_codes_of_halves},
    {{"gelu", extended, rounds, "x * 0.5 * (1 + erf(x / sqrt(2))) becomes Gelu"}, passes::fuse_gelu},
    {{"tanh-gelu", extended, rounds, "Gelu approximated with tanh becomes one node"}, passes::fuse_tanh_gelu},
    {{"swish", extended, rounds, "x * sigmoid(alpha * x) becomes Swish"}, passes::fuse_swish},
    {{"hard-swish", extended, rounds, "x * clip(x + 3, 0, 6) / 6 becomes HardSwish"}, passes::fuse_hard_swish},
    {{"mish", extended, rounds, "x * tanh(softplus(x)) becomes Mish"}, passes::fuse_mish},
    {{"layer-norm", extended, rounds, "(x - mean) / deviation, scale and bias become LayerNormalization"},
     passes::fuse_layer_norm},
    {{"rms-norm", extended, rounds, "x / sqrt(mean(x^2)) and a scale become RMSNormalization"}, passes::fuse_rms_norm},
    {{"group-norm", extended, rounds,
      "InstanceNormalization of reshaped groups, scale and bias become GroupNormalization"},
     passes::fuse_group_norm},
    {{"rotary", extended, rounds, "x * cos + [-x2, x1] * sin becomes RotaryEmbedding"}, passes::fuse_rotary_embedding},
    {{"attention", extended, rounds, "softmax(q @ k^T * scale + mask) @ v becomes Attention"}, passes::fuse_attention},
    {{"attention-cache", extended, same_bits, "past and new keys and values are joined by Attention itself"},
     passes::fuse_attention_cache},
    {{"packed-attention", extended, rounds,
      "on a GPU, Attention reads queries, keys and values where the product of all three left them"},
     passes::pack_attention,
     Pass::Turn::sweep,
     Pass::For::device},
    {{"reshape", basic, same_bits, "removes and merges Reshape, Flatten, Squeeze and Unsqueeze"},
     passes::merge_reshapes},
    {{"softmax-flatten", basic, same_bits, "a softmax of the last axis is not flattened and shaped back"},
     passes::remove_flatten_around_softmax},
    {{"reshape-target", basic, same_bits, "writes the target of a Reshape that is computed from shapes with 0 and -1"},
     passes::fold_reshape_targets},
    {{"slice", basic, same_bits, "merges two slices into one"}, passes::merge_slices},
    {{"gather-grid", basic, same_bits, "a gather by a grid of indices becomes one along each axis, or none"},
     passes::gather_along_axes},
    {{"scatter-box", basic, same_bits,
      "a ScatterND that fills a box of its data becomes a Concat, or what it is filled with"},
     passes::fill_boxes},
    {{"transpose", basic, same_bits, "removes and merges transposes; one that moves axes of size 1 becomes a Reshape"},
     passes::merge_transposes},
    {{"moves", basic, same_bits,
      "Reshape, Transpose and Reshape become a Transpose where they only change the axes' order"},
     passes::merge_moves},
    {{"cancel-transposes", basic, rounds, "moves a Transpose up through other nodes to where another one undoes it"},
     passes::cancel_transposes},
    {{"sink-transposes", basic, rounds,
      "arithmetic on images that a Transpose brought from channels last to channels first goes before it"},
     passes::sink_transposes},
    {{"reduce-transpose", basic, rounds, "a reduction that drops axes goes without the Transpose before it"},
     passes::reduce_without_transpose},
    {{"pad", basic, rounds, "a Pad of zeros becomes the padding of Conv or AveragePool"}, passes::merge_pads},
    {{"unread-taps", basic, rounds, "a Conv drops what of its kernel stands over padding wherever it is"},
     passes::drop_unread_taps},
    {{"average-first", extended, rounds,
      "a 1x1 Conv is computed of averages, and not of the pixels of which these are"},
     passes::average_first},
    {{"batch-norm", basic, rounds, "BatchNormalization goes into the weights of Conv, Gemm or MatMul"},
     passes::fold_batch_norm},
    {{"scale-weights", basic, rounds, "a constant Mul goes into the weights of Conv, Gemm or MatMul"},
     passes::scale_weights},
    {{"add-bias", basic, rounds, "a constant Add goes into the bias of Conv or Gemm; MatMul becomes Gemm"},
     passes::add_to_bias},
    {{"matmul-bias", basic, rounds, "MatMul of computed matrices and a constant Add become Gemm"},
     passes::add_bias_to_matmul},
    {{"parallel-convs", extended, rounds,
      "a sum of convolutions of one image, and of its normalization, is one convolution where that reads no more"},
     passes::merge_parallel_convs},
    {{"gemm-transpose", basic, rounds, "a Transpose goes into Gemm"}, passes::transpose_in_gemm},
    {{"matmul-transpose", extended, rounds, "transposes and a factor go into MatMul of computed matrices"},
     passes::transpose_in_matmul},
    {{"patches", extended, rounds,
      "on a GPU, a Conv that reads every pixel of a few channels once, in patches, becomes a MatMul of these"},
     passes::multiply_patches,
     Pass::Turn::sweep,
     Pass::For::device},
    {{"conv-epilogue", extended, rounds, "Conv, a residual Add and an activation become one node"},
     passes::fuse_conv_epilogue,
     Pass::Turn::at_rest},
    {{"matmul-epilogue", extended, rounds, "MatMul or Gemm, a bias, a residual Add and an activation become one node"},
     passes::fuse_matmul_epilogue},
    {{"skip-layer-norm", extended, rounds, "Add and LayerNormalization or RMSNormalization become one node"},
     passes::fuse_skip_norm},
    {{"batch-norm-activation", extended, rounds,
      "BatchNormalization that no weights take is a scale and a shift, and one node with the activation after it"},
     passes::fuse_batch_norm_activation,
     Pass::Turn::at_rest},
    {{"channels-last", OptimizationLevel::all, rounds,
      "convolutions of bytes, or on a GPU, and what is between them compute on images whose channels come last"},
     passes::use_channels_last,
     Pass::Turn::at_rest},
    {{"transposed-weights", OptimizationLevel::all, rounds,
      "on a GPU, weights of products that round to TF32 lie column after column, as tensor cores read them"},
     passes::transpose_weights,
     Pass::Turn::at_rest,
     Pass::For::device},
    {{"blocked-layout", OptimizationLevel::all, rounds,
      "convolutions and what is between them compute on blocks of channels"},
     passes::use_blocked_layout,
     Pass::Turn::at_rest,
     Pass::For::host},
    {{"blocked-transposes", OptimizationLevel::all, same_bits,
      "between blocks of channels and channels last, a Transpose moves whole blocks"},
     passes::move_whole_blocks,
     Pass::Turn::at_rest,
     Pass::For::host},
    {{"winograd", OptimizationLevel::all, rounds,
      "3x3 convolutions on blocks of channels multiply transformed tiles, where that is faster"},
     passes::use_winograd,
     Pass::Turn::at_rest,
     Pass::For::host},
    {{"conv-max-pool", OptimizationLevel::all, same_bits,
      "a convolution on blocks of channels and the MaxPool after it become one node"},
     passes::fuse_max_pool,
     Pass::Turn::at_rest,
     Pass::For::host},
    {{"elementwise", extended, same_bits, "a chain or tree of elementwise operators becomes one node"},
     passes::fuse_elementwise,
     Pass::Turn::last},
};

// What tests add: see ExtraPass.
std::vector<Pass>& extra_passes() {
  static std::vector<Pass> passes;
  return passes;
}

std::vector<const Pass*> all_passes() {
  std::vector<const Pass*> all;
  for (const Pass& pass : passes_in_order) all.push_back(&pass);
  for (const Pass& pass : extra_passes()) all.push_back(&pass);
  return all;
}

constexpr std::string_view level_names[] = {"none", "exact", "basic", "extended", "all"};

// Sweeps until nothing changes; enough for passes to hand work to each other, and an end if two undo each other.
constexpr int most_sweeps = 16;

// What is known about a changed graph from the start is more than what is known of the changes one by one, where loops
// and branches are concerned. So sweeps are made anew with types inferred anew.
constexpr int most_rounds = 8;

class Optimizer {
 public:
  Optimizer(ir::Graph& graph, const passes::OptimizerOptions& options, const std::vector<const Pass*>& passes,
            size_t most_rewrites)
      : graph_(graph),
        options_(options),
        editor_(graph, options.keep, options.evaluate, options.level == OptimizationLevel::exact, options.target),
        passes_(passes) {
    editor_.most_rewrites = most_rewrites;
  }

  std::vector<Rewrite> run() {
    for (int sweep = 0; sweep < most_sweeps; ++sweep) {
      const size_t before = editor_.rewrites.size();
      for (auto turn : {Pass::Turn::sweep, Pass::Turn::at_rest, Pass::Turn::last}) {
        if (editor_.rewrites.size() != before) break;
        for (const Pass* pass : passes_) {
          if (pass->turn == turn) run(*pass);
        }
      }
      if (editor_.rewrites.size() == before) break;
    }
    return std::move(editor_.rewrites);
  }

 private:
  void run(const Pass& pass) {
    const size_t before = editor_.rewrites.size();
    editor_.begin_pass(pass.name);
    visit(pass, graph_);
    editor_.end_pass();
    if (editor_.rewrites.size() == before) return;
    if (options_.verify) {
      try {
        ir::verify_and_sort(graph_);
        ir::verify_links(graph_);
      } catch (const Error& error) {
        fail(ErrorCode::internal, "pass '{}' left a broken graph: {}", pass.name, error.what());
      }
    }
    if (options_.after_pass) options_.after_pass(pass.name, graph_);
  }

  void visit(const Pass& pass, ir::Graph& graph) {
    const auto* on_graph = std::get_if<1>(&pass.rewrite);
    if (on_graph && !options_.may_change) (*on_graph)(editor_, graph);
    std::vector<ir::Node*> nodes;
    for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
    for (ir::Node* node : nodes) {
      if (editor_.is_removed(*node)) continue;
      const auto* on_node = std::get_if<0>(&pass.rewrite);
      if (on_node && (!options_.may_change || options_.may_change(*node))) (*on_node)(editor_, *node);
      if (editor_.is_removed(*node)) continue;
      for_each_subgraph(*node, [&](ir::Graph& subgraph) { visit(pass, subgraph); });
    }
  }

  ir::Graph& graph_;
  const passes::OptimizerOptions& options_;
  Editor editor_;
  const std::vector<const Pass*>& passes_;
};

// Those that run last, or the others.
std::vector<const Pass*> wanted_passes(const passes::OptimizerOptions& options, bool last) {
  std::vector<const Pass*> wanted;
  for (const Pass* pass : all_passes()) {
    if ((pass->turn == Pass::Turn::last) != last ||
        std::ranges::find(options.disabled, pass->name) != options.disabled.end())
      continue;
    if (pass->runs_on == (options.target.is_device ? Pass::For::host : Pass::For::device)) continue;
    if (options.level == OptimizationLevel::exact ? pass->exact : pass->level <= options.level) wanted.push_back(pass);
  }
  return wanted;
}

void check_names(const std::vector<std::string>& disabled) {
  std::vector<std::string_view> names;
  for (const Pass* pass : all_passes()) names.push_back(pass->name);
  for (const std::string& name : disabled) {
    if (std::ranges::find(names, name) != names.end()) continue;
    std::string_view nearest = nearest_name(name, names);
    throw Error(
        ErrorCode::invalid_argument, fmt::format("there is no optimiser pass '{}' to disable", name),
        nearest.empty() ? "`tenon optimize --list-passes` lists them" : fmt::format("did you mean '{}'?", nearest));
  }
}

}  // namespace

std::string_view name_of(OptimizationLevel level) { return level_names[static_cast<size_t>(level)]; }

OptimizationLevel optimization_level(std::string_view name) {
  auto found = std::ranges::find(level_names, name);
  if (found != std::end(level_names)) return static_cast<OptimizationLevel>(found - std::begin(level_names));
  std::string_view nearest = nearest_name(name, level_names);
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no optimisation level '{}'", name),
              nearest.empty() ? fmt::format("the levels are {}", quoted_list(level_names))
                              : fmt::format("did you mean '{}'?", nearest));
}

std::vector<OptimizationPass> optimization_passes() { return {std::begin(passes_in_order), std::end(passes_in_order)}; }

passes::ExtraPass::ExtraPass(std::string_view name, void (*rewrite)(Editor&, ir::Node&)) {
  extra_passes().push_back({{name, basic, rounds, "is tested"}, rewrite});
}

passes::ExtraPass::~ExtraPass() { extra_passes().pop_back(); }

std::vector<Rewrite> passes::optimize(ir::Graph& graph, const OptimizerOptions& options) {
  check_names(options.disabled);
  if (options.level == none && options.keep.empty()) return {};
  std::vector<Rewrite> all;
  auto run = [&](const std::vector<const Pass*>& wanted) {
    const size_t left = static_cast<size_t>(options.most_rewrites) - (options.most_rewrites < 0 ? 0 : all.size());
    std::vector<Rewrite> made = Optimizer(graph, options, wanted, left).run();
    std::ranges::move(made, std::back_inserter(all));
    return !made.empty();
  };
  const std::vector<const Pass*> most = wanted_passes(options, /*last=*/false);
  for (int round = 0; round < most_rounds && run(most); ++round) continue;
  if (const std::vector<const Pass*> last = wanted_passes(options, /*last=*/true); !last.empty()) run(last);
  return all;
}

}  // namespace tenon
