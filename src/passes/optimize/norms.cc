#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// The first of the axes that a reduction of x takes together, when these are the last ones of x.
std::optional<int64_t> first_of_last_axes(Editor& editor, const ir::Value* x, const ir::Value* axes) {
  const int64_t rank = editor.rank(x);
  auto list = editor.ints(axes);
  if (rank < 1 || !list || list->empty()) return std::nullopt;
  for (int64_t& axis : *list) axis += axis < 0 ? rank : 0;
  std::ranges::sort(*list);
  const int64_t first = rank - static_cast<int64_t>(list->size());
  for (size_t i = 0; i < list->size(); ++i) {
    if ((*list)[i] != first + static_cast<int64_t>(i)) return std::nullopt;
  }
  return first - rank;
}

// A normalisation in the making: of the last axes of x, from `axis` (negative) on.
struct Normalized {
  ir::Value* x;
  ir::Value* y;
  int64_t axis;
  ir::Value* scale = nullptr;
  ir::Value* bias = nullptr;
};

// Whether the value has exactly the sizes of the normalised axes, as a scale or bias has.
bool fits(Editor& editor, const Normalized& norm, const ir::Value* value) {
  const SymbolicShape *own = editor.shape(value), *x = editor.shape(norm.x);
  const auto count = static_cast<size_t>(-norm.axis);
  return own && own->size() == count && std::equal(own->begin(), own->end(), x->end() + norm.axis);
}

// Models in half precision normalise in float32: takes the casts around it in.
void take_casts(Editor& editor, Normalized& norm) {
  ir::Node *before = producer(norm.x, "Cast"), *after = sole_user(editor, norm.y, "Cast");
  if (!before || !after) return;
  const ElementType half = element_type(editor, before->input(0));
  if (element_type(editor, norm.x) != ElementType::float32 || element_type(editor, after->output(0)) != half) return;
  if (half != ElementType::float16 && half != ElementType::bfloat16) return;
  norm.x = before->input(0);
  norm.y = after->output(0);
}

void take_scale(Editor& editor, Normalized& norm) {
  ir::Node* mul = sole_user(editor, norm.y, "Mul");
  if (!mul) return;
  ir::Value* factor = other_input(*mul, norm.y);
  if (!fits(editor, norm, factor)) return;
  norm.scale = factor;
  norm.y = mul->output(0);
}

void take_bias(Editor& editor, Normalized& norm) {
  ir::Node* add = sole_user(editor, norm.y, "Add");
  if (!add) return;
  ir::Value* addend = other_input(*add, norm.y);
  if (!fits(editor, norm, addend)) return;
  norm.bias = addend;
  norm.y = add->output(0);
}

// The sizes of the normalised axes, if all are known.
std::optional<Shape> normalized_sizes(Editor& editor, const Normalized& norm) {
  Shape sizes;
  const SymbolicShape& x = *editor.shape(norm.x);
  for (auto dim = x.end() + norm.axis; dim != x.end(); ++dim) {
    if (!dim->is_known()) return std::nullopt;
    sizes.push_back(dim->value());
  }
  return sizes;
}

void replace_by(Editor& editor, const char* op, const Normalized& norm, double epsilon) {
  std::optional<Shape> sizes = normalized_sizes(editor, norm);
  if (!norm.scale && !sizes) return;
  ir::Node& last = *norm.y->producer();
  const ElementType type = element_type(editor, norm.x);
  editor.rewrite(last, [&](Patch& patch) {
    ir::Value* scale = norm.scale;
    if (!scale) {
      Tensor ones(ElementType::float32, *sizes);
      std::ranges::fill(ones.mutable_data<float>(), 1.0f);
      scale = patch.constant(std::move(ones));
      if (type != ElementType::float32) scale = patch.add("Cast", {scale}, {{"to", type}});
    }
    patch.replace(last, *patch.add(op, {norm.x, scale, norm.bias},
                                   {{"axis", norm.axis}, {"epsilon", static_cast<float>(epsilon)}}));
  });
}

}  // namespace

// d / sqrt(mean(d^2) + epsilon) with d = x - mean(x); then a scale and a bias, where they follow.
void fuse_layer_norm(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), axes = constant(), same_axes = constant(), epsilon = constant(),
                       d = x - op("ReduceMean", {x, axes}).with("keepdims", 1, 1),
                       square = either(d * d, op("Pow", {d, 2})),
                       variance = op("ReduceMean", {square, same_axes}).with("keepdims", 1, 1),
                       deviation = op("Sqrt", {variance + epsilon}),
                       inverse = either(op("Reciprocal", {deviation}), Pattern(1) / deviation),
                       y = either(d / deviation, d * inverse);
  if (node.op_type != "Div" && node.op_type != "Mul") return;
  Match m = match(editor, y, node);
  if (!m || !is_float(editor, m[x]) || !is_number(m[epsilon])) return;
  auto axis = first_of_last_axes(editor, m[x], m[axes]);
  if (!axis || axis != first_of_last_axes(editor, m[x], m[same_axes])) return;
  Normalized norm{m[x], node.output(0), *axis};
  take_casts(editor, norm);
  take_scale(editor, norm);
  if (norm.scale) take_bias(editor, norm);
  replace_by(editor, "LayerNormalization", norm, *uniform_constant(m[epsilon]));
}

// x / sqrt(mean(x^2) + epsilon); then a scale, where it follows.
void fuse_rms_norm(Editor& editor, ir::Node& node) {
  static const Pattern x = any(), axes = constant(), epsilon = constant(), square = either(x * x, op("Pow", {x, 2})),
                       sum = op("ReduceMean", {square, axes}).with("keepdims", 1, 1) + epsilon,
                       root = op("Sqrt", {sum}),
                       inverse = either(op("Reciprocal", {root}), either(Pattern(1) / root, op("Pow", {sum, -0.5}))),
                       y = either(x / root, x * inverse);
  if (node.op_type != "Div" && node.op_type != "Mul") return;
  Match m = match(editor, y, node);
  if (!m || !is_float(editor, m[x]) || !is_number(m[epsilon])) return;
  auto axis = first_of_last_axes(editor, m[x], m[axes]);
  if (!axis) return;
  Normalized norm{m[x], node.output(0), *axis};
  take_casts(editor, norm);
  take_scale(editor, norm);
  replace_by(editor, "RMSNormalization", norm, *uniform_constant(m[epsilon]));
}

}  // namespace tenon::passes
