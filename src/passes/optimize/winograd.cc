#include <algorithm>
#include <cmath>
#include <map>

#include "passes/optimize/blocked_nodes.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// What convolutions in blocked layout take, as `bench_kernels --benchmark_filter='conv_3x3|winograd'` measures them on
// one core of a Neoverse-V1, in nanoseconds: per multiply-add, per channel of a point, and per byte of weights that no
// cache keeps.
constexpr double multiply_add = 0.031, point = 0.4, weight_byte = 0.033;
constexpr double cached_bytes = 1 << 20;
// Weights at all points take more memory than the kernels they are made of: so much more, as a share of all weights of
// the model, may be spent.
constexpr double most_memory = 1.2;

struct Candidate {
  ir::Node* node;
  double images, height, width, in, out;

  double direct_time() const { return multiply_add * images * height * width * in * out * 9; }
  double time(int tile) const {
    const double points = (tile + 2) * (tile + 2), tiles = images * std::ceil(height / tile) * std::ceil(width / tile);
    const double bytes = 4 * points * in * out;
    return points * tiles * (multiply_add * in * out + point * (in + out)) +
           (bytes > cached_bytes ? weight_byte * bytes : 0);
  }
  double gain(int tile) const { return direct_time() - time(tile); }
  // More than the kernels themselves.
  double memory(int tile) const { return 4 * in * out * ((tile + 2) * (tile + 2) - 9); }
};

std::optional<Candidate> candidate(Editor& editor, ir::Node& node) {
  if (node.domain != ops::tenon_domain || node.op_type != "BlockedConv") return {};
  const Tensor* weights = Editor::constant(node.input(1));
  const SymbolicShape* y = editor.shape(node.output(0));
  if (!weights || !y || !has_winograd_window(node, *weights) || node.int_attribute("plain_input", 0) != 0) return {};
  return Candidate{&node,
                   likely_size(*y, 0),
                   likely_size(*y, 2),
                   likely_size(*y, 3),
                   static_cast<double>(weights->dim(1)),
                   static_cast<double>(weights->dim(0))};
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
  // saves more for each byte than the small one does, at once.
  struct Step {
    const Candidate* of;
    int tile;
    double gain, memory;  // more than the tile before
    double rate() const { return gain / memory; }
  };
  std::vector<Step> steps;
  for (const Candidate& c : candidates) {
    std::vector<Step> own;
    for (int tile : tile_sizes) {
      Step step{&c, tile, c.gain(tile), c.memory(tile)};
      if (step.gain <= 0.05 * c.direct_time()) continue;
      if (!own.empty() && step.gain <= own.back().gain) continue;
      if (!own.empty() && step.rate() < own.back().rate())
        step.gain -= own.back().gain, step.memory -= own.back().memory;
      else
        own.clear();
      own.push_back(step);
    }
    steps.insert(steps.end(), own.begin(), own.end());
  }
  std::ranges::stable_sort(steps, std::ranges::greater{}, &Step::rate);
  std::map<const Candidate*, int> chosen;
  for (const Step& step : steps) {
    if (step.memory > room) continue;
    room -= step.memory;
    chosen[step.of] = step.tile;
  }
  for (const Candidate& c : candidates) {
    auto found = chosen.find(&c);
    if (found == chosen.end()) continue;
    editor.rewrite(*c.node, [&](Patch& patch) {
      const std::vector<ir::Value*> inputs(c.node->inputs().begin(), c.node->inputs().end());
      ir::Node& added = patch.add_like(*c.node, inputs, {{"winograd", int64_t{found->second}}});
      patch.replace(*c.node, *added.output(0));
    });
  }
}

}  // namespace tenon::passes
