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
  // Tiles that save time, those first that save most of it for a byte; each convolution takes the first that fits, and
  // a better one where there is room.
  struct Choice {
    const Candidate* of;
    int tile;
  };
  std::vector<Choice> choices;
  for (const Candidate& c : candidates) {
    for (int tile : tile_sizes) {
      if (c.gain(tile) > 0.05 * c.direct_time()) choices.push_back({&c, tile});
    }
  }
  std::ranges::stable_sort(choices, std::ranges::greater{},
                           [](const Choice& c) { return c.of->gain(c.tile) / c.of->memory(c.tile); });
  std::map<const Candidate*, int> chosen;
  for (const Choice& c : choices) {
    const auto before = chosen.find(c.of);
    const double given_back = before == chosen.end() ? 0 : c.of->memory(before->second);
    if (c.of->memory(c.tile) > room + given_back) continue;
    if (before != chosen.end() && c.of->gain(c.tile) <= c.of->gain(before->second)) continue;
    room += given_back - c.of->memory(c.tile);
    chosen[c.of] = c.tile;
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
