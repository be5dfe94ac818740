#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/channel_block.h"
#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// What follows a convolution or multiplication and can be done while its result is stored.
struct Epilogue {
  ir::Value* end;  // of what was taken so far
  ir::Value* bias = nullptr;
  ir::Value* residual = nullptr;
  std::string activation = {};
  std::vector<float> parameters = {};

  bool is_empty() const { return !bias && !residual && activation.empty(); }
};

// A constant Add that is the same for all rows.
void take_bias(Editor& editor, Epilogue& epilogue) {
  ir::Node* add = sole_user(editor, epilogue.end, "Add");
  const Tensor* bias = add ? Editor::constant(other_input(*add, epilogue.end)) : nullptr;
  const SymbolicShape* shape = editor.shape(epilogue.end);
  if (!bias || bias->rank() != 1 || !shape || shape->empty() || shape->back() != Dim(bias->dim(0))) return;
  epilogue.bias = other_input(*add, epilogue.end);
  epilogue.end = add->output(0);
}

void take_residual(Editor& editor, Epilogue& epilogue) {
  ir::Node* add = sole_user(editor, epilogue.end, "Add");
  if (!add || add->input(0) == add->input(1)) return;
  ir::Value* residual = other_input(*add, epilogue.end);
  if (!editor.same_shape(residual, epilogue.end)) return;
  epilogue.residual = residual;
  epilogue.end = add->output(0);
}

void take_activation(Editor& editor, Epilogue& epilogue) {
  if (!editor.is_only_user(*epilogue.end)) return;
  const ir::Node& user = *epilogue.end->users()[0];
  if (!user.domain.empty() || &user.graph() != &epilogue.end->graph() || user.input(0) != epilogue.end) return;
  const std::string& op = user.op_type;
  if (op == "Relu" || op == "Sigmoid" || op == "Tanh" || op == "HardSwish") {
    epilogue.activation = op;
  } else if (op == "Swish" && user.float_attribute("alpha", 1) == 1) {
    epilogue.activation = op;
  } else if (op == "Gelu") {
    epilogue.activation = user.string_attribute("approximate", "none") == "tanh" ? "TanhGelu" : "Gelu";
  } else if (auto limits = op == "Clip" ? constant_limits(user) : std::nullopt) {
    epilogue.activation = op;
    epilogue.parameters = {limits->begin(), limits->end()};
  } else {
    return;
  }
  epilogue.end = user.output(0);
}

// The first input of a product: a value, or what a Reshape makes of it.
struct Rows {
  ir::Value* value;
  std::vector<int64_t> target = {};
};

// The operator with the epilogue's activation.
ir::Value* add_activated(Patch& patch, const char* op, const ir::Node& like, const std::vector<ir::Value*>& inputs,
                         const Epilogue& epilogue) {
  const std::string& activation = epilogue.activation;
  if (activation.empty()) return patch.add_fused(op, like, inputs, {});
  if (epilogue.parameters.empty()) return patch.add_fused(op, like, inputs, {{"activation", activation}});
  return patch.add_fused(op, like, inputs, {{"activation", activation}, {"activation_params", epilogue.parameters}});
}

void replace_by(Editor& editor, const char* op, const ir::Node& like, const Rows& rows, std::vector<ir::Value*> others,
                const Epilogue& epilogue) {
  ir::Node& last = *epilogue.end->producer();
  editor.rewrite(last, [&](Patch& patch) {
    patch.name_after(like);
    ir::Value* first = rows.target.empty() ? rows.value : patch.add("Reshape", {rows.value, patch.ints(rows.target)});
    others.insert(others.begin(), first);
    patch.replace(last, *add_activated(patch, op, like, others, epilogue));
  });
}

// A Gemm that is a MatMul and a bias. Where its rows are those of a tensor that is flattened before and shaped back
// afterwards, `rows` becomes that tensor.
bool take_gemm(Editor& editor, const ir::Node& gemm, Rows& taken, Epilogue& epilogue) {
  ir::Value*& rows = taken.value;
  if (gemm.float_attribute("alpha", 1) != 1 || gemm.float_attribute("beta", 1) != 1) return false;
  const Tensor* bias = Editor::constant(gemm.input(2));
  const SymbolicShape *in = editor.shape(rows), *out = editor.shape(epilogue.end);
  if (gemm.int_attribute("transA", 0) != 0 || !in || !out) return false;
  if (gemm.input(2) && (!bias || bias->rank() != 1 || Dim(bias->dim(0)) != out->back())) return false;
  epilogue.bias = gemm.input(2);
  ir::Node *flattened = producer(rows, "Reshape"), *restored = sole_user(editor, epilogue.end, "Reshape");
  if (!flattened || !restored) return true;
  const SymbolicShape *from = editor.shape(flattened->input(0)), *to = editor.shape(restored->output(0));
  if (!from || !to || to->size() < 2 || to->size() > from->size() || to->back() != out->back()) return true;
  if (!std::equal(to->begin(), to->end() - 1, from->begin())) return true;
  // A row may be several axes before.
  if (element_count(SymbolicShape(from->begin() + std::ssize(*to) - 1, from->end())) != in->back()) return true;
  if (from->size() > to->size()) {
    if (!editor.target().is_device || !in->back().is_known()) return true;
    taken.target.assign(to->size() - 1, 0);
    taken.target.push_back(in->back().value());
  }
  rows = flattened->input(0);
  epilogue.end = restored->output(0);
  return true;
}

// What a normalisation multiplies channels by, and adds then; nothing where its numbers are not constants of this type.
template <class T>
std::optional<std::pair<Tensor, Tensor>> affine_of(const ir::Node& node) {
  const Tensor* parameters[4];
  for (size_t i = 0; i < 4; ++i) {
    parameters[i] = Editor::constant(node.input(i + 1));
    if (!parameters[i] || parameters[i]->type() != element_type_of<T> || parameters[i]->rank() != 1) return {};
    if (parameters[i]->elements() != parameters[0]->elements() || parameters[i]->elements() == 0) return {};
  }
  Tensor scale(element_type_of<T>, parameters[0]->shape()), shift(element_type_of<T>, parameters[0]->shape());
  const double epsilon = node.float_attribute("epsilon", 1e-5f);
  for (size_t c = 0; c < static_cast<size_t>(scale.elements()); ++c) {
    const auto at = [&](size_t i) { return double{static_cast<float>(parameters[i]->data<T>()[c])}; };
    const double factor = at(0) / std::sqrt(at(3) + epsilon);
    scale.mutable_data<T>()[c] = T(static_cast<float>(factor));
    shift.mutable_data<T>()[c] = T(static_cast<float>(at(1) - at(2) * factor));
  }
  return std::pair(std::move(scale), std::move(shift));
}

// In half precision, with its own arithmetic: Mul and Add. What they round is no more than the rounding of their input
// makes of it.
void scale_and_shift_halves(Editor& editor, ir::Node& node) {
  auto affine = affine_of<float16>(node);
  if (!affine) return;
  for (const Tensor* tensor : {&affine->first, &affine->second}) {
    for (float16 number : tensor->data<float16>())
      if (!std::isfinite(static_cast<float>(number))) return;
  }
  Shape shape{affine->first.elements()};
  for (int64_t axis = 2; axis < editor.rank(node.input(0)); ++axis) shape.push_back(1);
  editor.rewrite(node, [&](Patch& patch) {
    ir::Value* scaled = patch.add("Mul", {node.input(0), patch.constant(affine->first.reshaped(shape))});
    patch.replace(node, *patch.add("Add", {scaled, patch.constant(affine->second.reshaped(shape))}));
  });
}

}  // namespace

// Conv, then an Add of the same shape, then an activation. The host computes them in half precision where blocked
// layout has them.
void fuse_conv_epilogue(Editor& editor, ir::Node& node) {
  if (node.op_type != "Conv" || !node.domain.empty()) return;
  const bool is_half = element_type(editor, node.output(0)) == ElementType::float16;
  if (!has_fused_type(editor, node.output(0)) && (!is_half || half_channel_block() == 0)) return;
  Epilogue epilogue{node.output(0)};
  take_residual(editor, epilogue);
  take_activation(editor, epilogue);
  if (epilogue.is_empty()) return;
  replace_by(editor, "FusedConv", node, {node.input(0)}, {node.input(1), node.input(2), epilogue.residual}, epilogue);
}

// MatMul with a matrix of weights, or a Gemm that is one, then a bias, an Add of the same shape, an activation.
void fuse_matmul_epilogue(Editor& editor, ir::Node& node) {
  const bool gemm = node.op_type == "Gemm";
  if ((!gemm && node.op_type != "MatMul") || !node.domain.empty() || !has_fused_type(editor, node.output(0))) return;
  if (!Editor::constant(node.input(1)) || editor.rank(node.input(1)) != 2 || editor.rank(node.input(0)) < 2) return;
  Epilogue epilogue{node.output(0)};
  Rows rows{node.input(0)};
  if (gemm && !take_gemm(editor, node, rows, epilogue)) return;
  const bool is_restored = rows.value != node.input(0);
  if (!epilogue.bias) take_bias(editor, epilogue);
  take_residual(editor, epilogue);
  take_activation(editor, epilogue);
  const bool is_only_bias = !epilogue.residual && epilogue.activation.empty();
  if (epilogue.is_empty() || (gemm && is_only_bias && !(is_restored && editor.target().is_device))) return;
  replace_by(editor, "FusedMatMul", node, rows, {node.input(1), epilogue.bias, epilogue.residual}, epilogue);
}

// A normalisation with constants that no weights could take, then an activation.
void fuse_batch_norm_activation(Editor& editor, ir::Node& node) {
  if (node.op_type != "BatchNormalization" || !node.domain.empty() || !node.output(0)) return;
  if (node.int_attribute("training_mode", 0) != 0 || editor.rank(node.input(0)) < 2) return;
  for (size_t i = 1; i < node.output_count(); ++i) {
    if (node.output(i)) return;
  }
  const ElementType type = element_type(editor, node.input(0));
  if (type == ElementType::float16 && half_channel_block() > 0 && !editor.target().is_device)
    return scale_and_shift_halves(editor, node);
  const auto affine = affine_of<float>(node);
  if (!affine || type != ElementType::float32) return;
  const Tensor &scale = affine->first, &shift = affine->second;
  Epilogue epilogue{node.output(0)};
  take_activation(editor, epilogue);
  ir::Node& last = *epilogue.end->producer();
  editor.rewrite(last, [&](Patch& patch) {
    patch.name_after(node);
    const std::vector<ir::Value*> inputs = {node.input(0), patch.constant(scale), patch.constant(shift)};
    patch.replace(last, *add_activated(patch, "ChannelAffine", node, inputs, epilogue));
  });
}

}  // namespace tenon::passes
