#include <algorithm>
#include <cmath>
#include <map>

#include "base/cpu_features.h"
#include "passes/optimize/blocked_nodes.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/layout_choice.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// What convolutions in blocked layout take, as `bench_kernels --benchmark_filter='conv_3x3|winograd'` measures them on
// one core, in nanoseconds: per multiply-add, per channel of a point, and per byte of weights that no cache keeps.
struct Rates {
  double multiply_add, point, weight_byte;
};
constexpr Rates neoverse_v1 = {0.028, 0.43, 0.033}, emerald_rapids = {0.0133, 0.2, 0.065};
const Rates& rates() { return best_isa() == Isa::avx512 ? emerald_rapids : neoverse_v1; }

constexpr double cached_bytes = 1 << 20;
// Weights are fetched while others are multiplied; this share of what takes less time is seen nevertheless.
constexpr double seen_share = 0.3;
// Weights at all points take more memory than the kernels they are made of: so much more, as a share of all weights of
// the model, may be spent.
constexpr double most_memory = 1.2;

// Tiles of a line of pixels, each of pixels that lie `dilation` apart.
double tiles_of(double pixels, double dilation, int tile) {
  const double whole = std::floor(pixels / dilation), longer = pixels - whole * dilation;
  return longer * std::ceil((whole + 1) / tile) + (dilation - longer) * std::ceil(whole / tile);
}

struct Candidate {
  ir::Node* node;
  double images, height, width, in, out;  // a group's inputs, and all outputs
  double groups;
  double dilations[2];

  // Of a product of so many pixels with weights at so many points, and so many channels that go to or from points.
  double time(double pixels, double points, double channels) const {
    const double bytes = 4 * points * in * out;
    const double computing = rates().multiply_add * pixels * points * in * out + rates().point * channels;
    const double fetching = bytes > cached_bytes ? rates().weight_byte * bytes : 0;
    return std::max(computing, fetching) + seen_share * std::min(computing, fetching);
  }
  double direct_time() const { return time(images * height * width, 9, 0); }
  double time(int tile) const {
    const double points = (tile + 2) * (tile + 2);
    const double tiles = images * tiles_of(height, dilations[0], tile) * tiles_of(width, dilations[1], tile);
    return time(tiles, points, points * tiles * (groups * in + out));
  }
  double gain(int tile) const { return direct_time() - time(tile); }
  // More than the kernels themselves.
  double memory(int tile) const { return 4 * in * out * ((tile + 2) * (tile + 2) - 9); }
};

std::optional<Candidate> candidate(Editor& editor, ir::Node& node) {
  if (node.domain != ops::tenon_domain) return {};
  const bool is_chosen = node.int_attribute("winograd", 0) != 0;
  if (node.op_type != "BlockedConv" && !(node.op_type == "BlockedConvMaxPool" && is_chosen)) return {};
  if (element_type(editor, node.input(0)) != ElementType::float32) return {};
  const Tensor* weights = Editor::constant(node.input(1));
  const SymbolicShape* y = editor.shape(node.output(0));
  if (!weights || !y || !has_winograd_window(node, *weights) || node.int_attribute("plain_input", 0) != 0) return {};
  const auto dilations = node.ints_attribute("dilations");
  const auto dilation = [&](size_t d) { return dilations.empty() ? 1.0 : static_cast<double>(dilations[d]); };
  return Candidate{&node,
                   likely_size(*y, 0),
                   likely_size(*y, 2),
                   likely_size(*y, 3),
                   static_cast<double>(weights->dim(1)),
                   static_cast<double>(weights->dim(0)),
                   static_cast<double>(node.int_attribute("group", 1)),
                   {dilation(0), dilation(1)}};
}

double weight_bytes(const ir::Graph& graph) {
  double bytes = 0;
  for (const ir::Value* value : graph.initializers()) bytes += static_cast<double>(value->constant()->tensor.bytes());
  return bytes;
}

constexpr int tile_sizes[] = {2, 4};

}  // namespace

void use_winograd(Editor& editor, ir::Graph& graph) {
  std::vector<Candidate> candidates;
  double room = most_memory * weight_bytes(graph);
  for (ir::Node& node : graph.nodes()) {
    auto found = candidate(editor, node);
    if (!found) continue;
    if (const auto tile = static_cast<int>(node.int_attribute("winograd", 0)))
      room -= found->memory(tile);
    else
      candidates.push_back(*found);
  }
  // Small tiles, then larger ones in place of them, in the order of the time that a byte more saves; where a larger one
  // saves more for each byte than the small one does, at once, if there is room for it.
  struct Step {
    const Candidate* of;
    int from, tile;       // in place of a tile of this size; 0: of none
    double gain, memory;  // more than with that
    double rate() const { return gain / memory; }
  };
  std::vector<Step> steps;
  for (const Candidate& c : candidates) {
    std::optional<Step> smaller;
    for (int tile : tile_sizes) {
      Step step{&c, 0, tile, c.gain(tile), c.memory(tile)};
      if (step.gain <= 0.05 * c.direct_time() || (smaller && step.gain <= smaller->gain)) continue;
      if (smaller && step.rate() < smaller->rate())
        step = {&c, smaller->tile, tile, step.gain - smaller->gain, step.memory - smaller->memory};
      steps.push_back(step);
      smaller = step;
    }
  }
  std::ranges::stable_sort(steps, std::ranges::greater{}, &Step::rate);
  std::map<const Candidate*, int> chosen;
  for (const Step& step : steps) {
    if (step.memory > room || chosen[step.of] != step.from) continue;
    room -= step.memory;
    chosen[step.of] = step.tile;
  }
  for (const Candidate& c : candidates) {
    auto found = chosen.find(&c);
    if (found == chosen.end() || found->second == 0) continue;
    editor.rewrite(*c.node, [&](Patch& patch) {
      const std::vector<ir::Value*> inputs(c.node->inputs().begin(), c.node->inputs().end());
      ir::Node& added = patch.add_like(*c.node, inputs, {{"winograd", int64_t{found->second}}});
      patch.replace(*c.node, *added.output(0));
    });
  }
}

}  // namespace tenon::passes
