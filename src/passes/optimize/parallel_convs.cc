#include <algorithm>
#include <cstring>
#include <optional>

#include "ops/window.h"
#include "passes/match.h"
#include "passes/optimize/channels.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// A convolution with constant weights that only one sum needs.
struct Branch {
  ir::Node* conv;
  const Tensor* weights;
  int64_t groups;
  std::vector<ops::WindowAxis> axes;

  ir::Value* output() const { return conv->output(0); }
  int64_t channels() const { return weights->dim(1) * groups; }
};

std::optional<Branch> branch_of(Editor& editor, const ir::Value* value) {
  ir::Node* conv = sole_producer(editor, value, "Conv");
  // A convolution outside of a loop is not moved into it.
  if (!conv || &conv->graph() != &value->users()[0]->graph() || output_channels(*conv) == 0) return std::nullopt;
  Branch branch{conv, Editor::constant(conv->input(1)), conv->int_attribute("group", 1), {}};
  const ops::WindowAttributes window(*conv);
  const int spatial = branch.weights->rank() - 2;
  for (int d = 0; d < spatial; ++d) {
    branch.axes.push_back(window.axis(d, spatial, branch.weights->dim(d + 2)));
    if (branch.axes.back().auto_pad != ops::AutoPad::explicit_pads) return std::nullopt;
  }
  return branch;
}

// Where in a window of `outer` one of `inner` lies that stands over the same pixels, along one axis. Nullopt where it
// is not within it.
std::optional<int64_t> offset_within(const ops::WindowAxis& outer, const ops::WindowAxis& inner) {
  const int64_t size = outer.kernel.value(), inner_size = inner.kernel.value();
  const int64_t distance = outer.pad_begin - inner.pad_begin, offset = distance / outer.dilation;
  if (outer.stride != inner.stride || (inner_size > 1 && outer.dilation != inner.dilation)) return std::nullopt;
  if (distance < 0 || distance % outer.dilation != 0 || offset + inner_size > size) return std::nullopt;
  return offset;
}

// The weights of `inner` as weights of `outer`, with zeros where it has none. Nullopt where it reads what the other
// does not.
std::optional<Tensor> widened(const Branch& outer, const Branch& inner) {
  const Tensor &like = *outer.weights, &from = *inner.weights;
  if (from.rank() != like.rank() || from.type() != like.type() || from.dim(0) != like.dim(0)) return std::nullopt;
  if (inner.channels() != outer.channels() || inner.groups % outer.groups != 0) return std::nullopt;
  // Where the numbers of an inner window are in an outer one.
  std::vector<int64_t> places{0};
  for (size_t d = 0; d < outer.axes.size(); ++d) {
    auto offset = offset_within(outer.axes[d], inner.axes[d]);
    if (!offset) return std::nullopt;
    std::vector<int64_t> longer;
    for (int64_t place : places) {
      for (int64_t i = 0; i < inner.axes[d].kernel.value(); ++i)
        longer.push_back(place * outer.axes[d].kernel.value() + *offset + i);
    }
    places = std::move(longer);
  }
  Tensor result(like.type(), like.shape());
  const int64_t number = byte_size(like.type(), 1), outputs = like.dim(0), depth = like.dim(1);
  const int64_t window = like.elements() / std::max<int64_t>(outputs * depth, 1);
  auto* to = static_cast<char*>(result.mutable_raw());
  const auto* read = static_cast<const char*>(from.raw());
  std::memset(to, 0, static_cast<size_t>(result.bytes()));
  for (int64_t o = 0; o < outputs; ++o) {
    // Each group reads the channels that come after those of the group before.
    const int64_t first = o / (outputs / inner.groups) * from.dim(1) - o / (outputs / outer.groups) * depth;
    for (int64_t c = 0; c < from.dim(1); ++c) {
      for (int64_t place : places) {
        std::memcpy(to + ((o * depth + first + c) * window + place) * number, read, static_cast<size_t>(number));
        read += number;
      }
    }
  }
  return result;
}

// Two branches that can be one.
struct Sum {
  Branch outer, inner;
  Tensor weights;  // of the inner one, as the outer one has them
};

std::optional<Sum> sum_of(Editor& editor, const ir::Value* a, const ir::Value* b) {
  auto first = branch_of(editor, a), second = branch_of(editor, b);
  if (!first || !second || first->conv == second->conv || first->conv->input(0) != second->conv->input(0)) return {};
  if (!editor.same_shape(a, b)) return {};
  if (auto weights = widened(*first, *second)) return Sum{*first, *second, std::move(*weights)};
  if (auto weights = widened(*second, *first)) return Sum{*second, *first, std::move(*weights)};
  return {};
}

ir::Value* add_sum(Patch& patch, const Sum& sum) {
  ir::Value *bias = linear_bias(*sum.outer.conv), *other = linear_bias(*sum.inner.conv);
  if (bias && other) bias = patch.add("Add", {bias, other});
  ir::Value* weights = patch.add("Add", {sum.outer.conv->input(1), patch.constant(sum.weights)});
  return with_weights(patch, *sum.outer.conv, weights, bias ? bias : other);
}

// A normalization of what a convolution reads too becomes a convolution that can be one with it.
bool normalize_by_conv(Editor& editor, const ir::Value* value, const ir::Value* other) {
  ir::Node* norm = sole_producer(editor, value, "BatchNormalization");
  const auto branch = norm ? branch_of(editor, other) : std::nullopt;
  if (!branch || branch->conv->input(0) != norm->input(0) || !editor.same_shape(value, other)) return false;
  const int64_t channels = branch->channels();
  if (branch->weights->dim(0) != channels || editor.rank(norm->input(0)) != branch->weights->rank()) return false;
  if (!is_constant_batch_norm(*norm, channels, branch->weights->type())) return false;
  const bool is_within = std::ranges::all_of(
      branch->axes, [](const ops::WindowAxis& axis) { return offset_within(axis, ops::WindowAxis{}).has_value(); });
  if (!is_within) return false;
  editor.rewrite(*norm, [&](Patch& patch) {
    ir::Value* scale = batch_norm_scale(patch, *norm);
    ir::Value* shift = batch_norm_shift(patch, *norm, scale, nullptr);
    std::vector<int64_t> sizes(static_cast<size_t>(branch->weights->rank()), 1);
    sizes[0] = channels;
    ir::Value* weights = patch.add("Reshape", {scale, patch.ints(sizes)});
    patch.replace(*norm->output(0), *patch.add("Conv", {norm->input(0), weights, shift}, {{"group", channels}}));
  });
  return true;
}

}  // namespace

// w x + v x is (w + v) x. Networks are trained with such branches, and exported with them.
void merge_parallel_convs(Editor& editor, ir::Node& node) {
  if (node.op_type != "Add" || !node.domain.empty()) return;
  for (size_t i : {0, 1}) {
    ir::Value *term = node.input(i), *rest = node.input(1 - i);
    if (normalize_by_conv(editor, term, rest)) return;
    if (auto sum = i == 0 ? sum_of(editor, term, rest) : std::nullopt) {
      editor.rewrite(node, [&](Patch& patch) {
        patch.name_after(*sum->outer.conv);
        patch.replace(node, *add_sum(patch, *sum));
      });
      return;
    }
    const ir::Node* inner = sole_producer(editor, rest, "Add");
    if (!inner) continue;
    for (size_t k : {0, 1}) {
      if (normalize_by_conv(editor, term, inner->input(k)) || normalize_by_conv(editor, inner->input(k), term)) return;
      auto sum = sum_of(editor, term, inner->input(k));
      if (!sum) continue;
      editor.rewrite(node, [&](Patch& patch) {
        patch.name_after(*sum->outer.conv);
        ir::Value* merged = add_sum(patch, *sum);
        patch.name_after(node);
        patch.replace(node, *patch.add("Add", {inner->input(1 - k), merged}));
      });
      return;
    }
  }
}

}  // namespace tenon::passes
