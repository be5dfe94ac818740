#include <algorithm>

#include "base/channel_block.h"
#include "passes/match.h"
#include "passes/optimize/blocked_nodes.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/layout_choice.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// What convolutions take, as `bench_kernels --benchmark_filter=conv` measures them on one core of a Neoverse-V1 (those
// of single channels: a Neoverse-N1), in nanoseconds per thousand multiply-adds: in plain layout, and in blocked. What
// counts is the difference.
struct Rates {
  double plain, blocked;
};
struct TypeRates {
  Rates dense, winograd, pointwise, narrow_pointwise, first_layer, depthwise;
};
constexpr TypeRates of_floats = {{29, 28}, {29, 10}, {30, 28}, {42, 32}, {29, 30}, {130, 60}};
// In plain layout they are computed in floats, with images that are converted before and after.
constexpr TypeRates of_halves = {{30, 15}, {30, 15}, {38, 15}, {60, 18}, {32, 18}, {260, 27}};
constexpr Rates transposed = {36, 30};
// On a Xeon with AVX-512, where plain images are multiplied where they are, by blocks of output channels too.
constexpr Rates transposed_avx512 = {19, 19};
// Of several groups, as a Xeon has them in proportion to one group: in plain layout the more the fewer channels a group
// reads, and so many nanoseconds for each channel of an output.
constexpr Rates grouped = {29, 33};
constexpr double plain_grouped_per_channel = 150, plain_grouped_start = 375;
// The same per thousand outputs of a pool with a stride; others take as long in both.
constexpr Rates strided_pool = {1650, 1030};
// Channels below which a convolution of single pixels spends its time on memory.
constexpr int64_t narrow = 32;
// Nanoseconds that it takes to change the layout of a value, and per thousand floats of it.
constexpr double conversion_start = 500, conversion_rate = 350;

// Whether a convolution is much faster by way of transformed tiles. Those of dilated ones are of pixels that lie apart.
bool suits_winograd(const ir::Node& conv, const SymbolicShape& y, const Tensor& weights) {
  constexpr double least_apart = 4;
  if (!has_winograd_window(conv, weights) || weights.dim(0) < narrow || weights.dim(1) < narrow) return false;
  const auto dilations = conv.ints_attribute("dilations");
  for (size_t d = 0; d < dilations.size(); ++d) {
    const bool fills_tiles = likely_size(y, d + 2) >= least_apart * static_cast<double>(dilations[d]);
    if (dilations[d] > 1 && !fills_tiles) return false;
  }
  return true;
}

class BlockedRules final : public LayoutRules {
 public:
  BlockedRules(Editor& editor, BlockedNodes& nodes, const TypeRates& rates)
      : editor_(editor), nodes_(nodes), rates_(rates) {}

  bool can_change(const ir::Node& node) override { return nodes_.can_be_blocked(node); }
  bool is_reason(const ir::Node& node) override { return nodes_.is_conv(node) || nodes_.is_conv_transpose(node); }
  std::vector<size_t> image_inputs(const ir::Node& node) override { return nodes_.image_inputs(node); }
  double gain(const ir::Node& node) override {
    if (is_reason(node)) return conv_gain(node);
    return is_pool(node) ? pool_gain(node) : 0;
  }
  double conversion(const ir::Value& value) override {
    return 1000 * conversion_start + conversion_rate * likely_elements(*editor_.shape(&value));
  }

 private:
  // Blocks that channels do not fill are computed in whole.
  double conv_gain(const ir::Node& conv) {
    const Tensor& w = *Editor::constant(conv.input(1));
    const bool is_transposed = nodes_.is_conv_transpose(conv), is_direct = is_transposed && best_isa() == Isa::avx512;
    const bool is_depthwise = !is_transposed && nodes_.is_depthwise(conv), is_plain = nodes_.reads_plain(conv);
    const bool is_grouped = !is_depthwise && conv.int_attribute("group", 1) > 1;
    const Rates rates = is_direct       ? transposed_avx512
                        : is_transposed ? transposed
                        : is_depthwise  ? rates_.depthwise
                        : is_grouped    ? grouped_rates(conv, *editor_.shape(conv.output(0)), w)
                        : is_plain      ? rates_.first_layer
                                        : dense_rates(conv, w);
    const auto filled = [&](int axis) {
      const auto channels = static_cast<double>(w.dim(axis));
      if (is_grouped && axis == 1) return static_cast<double>(nodes_.groups_of(conv)->in) / channels;
      const bool is_blocked = axis == (is_transposed ? 1 : 0) || (!is_plain && !is_depthwise);
      return is_blocked ? static_cast<double>(nodes_.filled_up(w.dim(axis))) / channels : 1.0;
    };
    // A transposed convolution multiplies every input pixel by all weights, others do so for every output.
    const ir::Value* image = is_transposed ? conv.input(0) : conv.output(0);
    const double products =
        likely_elements(*editor_.shape(image)) * static_cast<double>(w.elements()) / static_cast<double>(w.dim(0));
    return products * (rates.plain * (is_direct ? filled(1) : 1.0) - rates.blocked * filled(0) * filled(1));
  }

  Rates grouped_rates(const ir::Node& conv, const SymbolicShape& y, const Tensor& w) const {
    const auto read = static_cast<double>(w.dim(1)), taps = static_cast<double>(w.dim(2) * w.dim(3));
    const double pixels = likely_size(y, 2) * likely_size(y, 3);
    return {grouped.plain + plain_grouped_per_channel / read + 1000 * plain_grouped_start / (pixels * taps * read),
            suits_winograd(conv, y, w) ? rates_.winograd.blocked : grouped.blocked};
  }

  double pool_gain(const ir::Node& pool) {
    const auto strides = pool.ints_attribute("strides");
    if (std::ranges::none_of(strides, [](int64_t stride) { return stride > 1; })) return 0;
    return likely_elements(*editor_.shape(pool.output(0))) * (strided_pool.plain - strided_pool.blocked);
  }

  Rates dense_rates(const ir::Node& conv, const Tensor& w) const {
    if (suits_winograd(conv, *editor_.shape(conv.output(0)), w)) return rates_.winograd;
    if (w.dim(2) != 1 || w.dim(3) != 1) return rates_.dense;
    return w.dim(1) < narrow ? rates_.narrow_pointwise : rates_.pointwise;
  }

  Editor& editor_;
  BlockedNodes& nodes_;
  const TypeRates& rates_;
};

// Whether convolutions of this type are computed in floats.
bool is_widened(ElementType type) {
  return type == ElementType::bfloat16 || (type == ElementType::float16 && half_channel_block() == 0);
}

// Where kernels compute convolutions of half precision in floats, those that gain by blocked layout can be convolutions
// of floats.
void widen_convs(Editor& editor, const BlockedNodes& nodes, ir::Graph& graph) {
  std::vector<ir::Node*> convs;
  for (ir::Node& node : graph.nodes()) {
    if (nodes.is_conv(node) && node.domain.empty() && is_widened(element_type(editor, node.input(0))) &&
        suits_winograd(node, *editor.shape(node.output(0)), *Editor::constant(node.input(1))))
      convs.push_back(&node);
  }
  for (ir::Node* conv : convs) {
    const auto half = static_cast<int64_t>(element_type(editor, conv->input(0)));
    editor.rewrite(*conv, [&](Patch& patch) {
      const auto cast = [&](ir::Value* value, int64_t to) { return patch.add("Cast", {value}, {{"to", to}}); };
      std::vector<ir::Value*> inputs;
      for (ir::Value* input : conv->inputs())
        inputs.push_back(input ? cast(input, static_cast<int64_t>(ElementType::float32)) : nullptr);
      patch.replace(*conv, *cast(patch.add_like(*conv, inputs).output(0), half));
    });
  }
}

// The value in blocked layout.
ir::Value* blocked(Patch& patch, ir::Value& value, int64_t block) {
  const ir::Node* maker = value.producer();
  if (maker && maker->domain == ops::tenon_domain && maker->op_type == "FromBlocked") return maker->input(0);
  return patch.add("ToBlocked", {&value}, {{"block", block}}, std::string(ops::tenon_domain));
}

// The value in plain layout.
ir::Value* plain(Patch& patch, ir::Value& value, int64_t channels, int64_t block) {
  const std::string domain(ops::tenon_domain);
  if (channels % block == 0) return patch.add("FromBlocked", {&value}, {{"block", block}}, domain);
  return patch.add("FromBlocked", {&value}, {{"block", block}, {"channels", channels}}, domain);
}

// Images of this type, in blocks of so many channels.
void use_blocked_layout(Editor& editor, ir::Graph& graph, ElementType type, int64_t block, const TypeRates& rates) {
  BlockedNodes nodes(editor, type, block);
  if (type == ElementType::float32) widen_convs(editor, nodes, graph);
  BlockedRules rules(editor, nodes, rates);
  for (ir::Node* node : LayoutChoice(editor, rules, graph).nodes()) {
    editor.rewrite(*node, [&](Patch& patch) {
      std::vector<ir::Value*> images;
      for (size_t i : nodes.image_inputs(*node)) images.push_back(blocked(patch, *node->input(i), block));
      const ir::Node& added = nodes.add(patch, *node, images);
      std::vector<ir::Value*> results;
      for (size_t i = 0; i < added.output_count(); ++i) {
        const int64_t channels = nodes.channels_of(*node->output(i));
        results.push_back(plain(patch, *added.output(i), channels, block));
        patch.record_blocked(*node->output(i), *added.output(i), channels);
      }
      for (size_t i = 0; i < results.size(); ++i) patch.replace(*node->output(i), *results[i]);
    });
  }
}

}  // namespace

void use_blocked_layout(Editor& editor, ir::Graph& graph) {
  use_blocked_layout(editor, graph, ElementType::float32, channel_block(best_isa()), of_floats);
  if (const int64_t block = half_channel_block(); block > 0)
    use_blocked_layout(editor, graph, ElementType::float16, block, of_halves);
}

}  // namespace tenon::passes
