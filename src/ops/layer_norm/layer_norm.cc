#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Scale and bias broadcast to X, never the other way round.
void check_fits(const Inference& i, size_t input) {
  if (!i.has_shape(0) || !i.has_shape(input)) return;
  SymbolicShape broadcast = i.broadcast(i.shape(0), i.shape(input));
  bool grew = broadcast.size() > i.shape(0).size();
  for (size_t axis = 0; !grew && axis < broadcast.size(); ++axis) {
    grew = i.shape(0)[axis].is_known() && broadcast[axis].is_known() &&
           i.shape(0)[axis].value() != broadcast[axis].value();
  }
  if (grew)
    i.fail("input {} of shape {} does not broadcast to {}", input, to_string(i.shape(input)), to_string(i.shape(0)));
}

ElementType stash_type(const Inference& i) {
  int64_t type = i.node().int_attribute("stash_type", 1);
  if (type != 1 && type != 16) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("stash_type is {}; it may be 1 (float) or 16 (bfloat16)", type));
  }
  return static_cast<ElementType>(type);
}

void infer_layer_norm(Inference& i) {
  i.same_as_input(0);
  ElementType stash = stash_type(i);
  check_fits(i, 1);
  check_fits(i, 2);
  std::optional<SymbolicShape> rows;
  if (i.has_shape(0)) {
    rows = i.shape(0);
    for (int axis = i.axis(i.node().int_attribute("axis", -1), i.rank(0)); axis < i.rank(0); ++axis)
      (*rows)[static_cast<size_t>(axis)] = Dim(1);
  }
  i.output(1, stash, rows);
  i.output(2, stash, std::move(rows));
}

void infer_rms_norm(Inference& i) {
  i.output(0, i.element(1), i.type(0).shape);
  check_fits(i, 1);
  if (i.has_shape(0)) i.axis(i.node().int_attribute("axis", -1), i.rank(0));
}

Term inverse_root(Decomposition& d, Term mean_of_squares) {
  return 1 / sqrt(mean_of_squares + d.node().float_attribute("epsilon", 1e-5f));
}

// Scale and bias are broadcast, but must not make the output larger: what inference could not see, Reshape refuses.
void output_in_shape_of_input(Decomposition& d, Term y) {
  const bool checked = d.known_rank(0) >= 0 && d.known_rank(1) >= 0 && (!d.has_input(2) || d.known_rank(2) >= 0);
  d.output(0, checked ? y : reshape(y, shape_of(d.input(0))));
}

void decompose_layer_norm(Decomposition& d) {
  Term x = d.wide_input(0), axes = d.axes_from(0, d.node().int_attribute("axis", -1));
  Term mean = reduce("ReduceMean", x, axes), centered = x - mean;
  Term factor = inverse_root(d, reduce("ReduceMean", centered * centered, axes));
  Term y = centered * factor * d.wide_input(1);
  output_in_shape_of_input(d, d.has_input(2) ? y + d.wide_input(2) : y);
  d.output(1, mean);
  d.output(2, factor);
}

void decompose_rms_norm(Decomposition& d) {
  Term x = d.wide_input(0), axes = d.axes_from(0, d.node().int_attribute("axis", -1));
  Term factor = inverse_root(d, reduce("ReduceMean", x * x, axes));
  output_in_shape_of_input(d, x * factor * cast(d.input(1), x.type));
}

}  // namespace

void define_layer_norm(OperatorList& list) {
  // Version 1 never was official, but models exported before version 17 carry it.
  list.add("LayerNormalization", {1, 17})
      .input("X", "T")
      .input("Scale", "T")
      .optional_input("B", "T")
      .output("Y", "T")
      .optional_output("Mean", "U")
      .optional_output("InvStdDev", "U")
      .types("T", types::floats)
      .types("U", {ElementType::float32, ElementType::bfloat16})
      .attribute("axis", AttributeKind::int_)
      .attribute("epsilon", AttributeKind::float_)
      .attribute("stash_type", AttributeKind::int_)
      .infer(infer_layer_norm)
      .decompose(decompose_layer_norm);
  list.add("RMSNormalization", {23})
      .input("X", "T")
      .input("scale", "V")
      .output("Y", "V")
      .types("T", types::floats)
      .types("V", types::floats)
      .attribute("axis", AttributeKind::int_)
      .attribute("epsilon", AttributeKind::float_)
      .attribute("stash_type", AttributeKind::int_)
      .infer(infer_rms_norm)
      .decompose(decompose_rms_norm);
}

}  // namespace tenon::ops
