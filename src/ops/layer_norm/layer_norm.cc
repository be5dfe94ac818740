#include "ops/decomposition.h"
#include "ops/fused_types.h"
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

// An addend has the shape of X, or of its last axes: at least of those that are normalised.
void check_addend(const Inference& i, size_t input, int first_normalized) {
  if (!i.has_shape(input)) return;
  const SymbolicShape &own = i.shape(input), &x = i.shape(0);
  const int missing = static_cast<int>(x.size()) - static_cast<int>(own.size());
  if (missing > first_normalized || missing < 0)
    i.fail("input {} of shape {} does not have the last axes of {}", input, to_string(own), to_string(x));
  bool repeats = false;
  for (int axis = static_cast<int>(x.size()) - 1; axis >= missing; --axis) {
    const Dim &size = own[static_cast<size_t>(axis - missing)], &wanted = x[static_cast<size_t>(axis)];
    repeats = repeats || (axis < first_normalized && size == Dim(1) && wanted != Dim(1));
    i.equal(size, repeats ? Dim(1) : wanted, "the sizes of what is added and of the last axes of X");
  }
}

// Scale, bias and what is added come after X; `others` are those that have the sizes of the normalised axes.
void infer_skip_norm(Inference& i, std::initializer_list<size_t> addends, std::initializer_list<size_t> others) {
  i.same_as_input(0);
  i.same_as_input(0, 1);
  if (!i.has_shape(0)) return;
  const int axis = i.axis(i.node().int_attribute("axis", -1), i.rank(0));
  for (size_t input : addends) check_addend(i, input, axis);
  for (size_t input : others) {
    i.require_rank(input, i.rank(0) - axis);
    for (int a = axis; i.has_shape(input) && a < i.rank(0); ++a)
      i.equal(i.shape(input)[static_cast<size_t>(a - axis)], i.shape(0)[static_cast<size_t>(a)],
              "the sizes of the normalised axes and of scale or bias");
  }
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

// The sum of X and the addends; the second one may be left out.
Term sum_with(Decomposition& d, std::initializer_list<size_t> addends) {
  Term x = d.input(0), sum = x;
  bool checked = d.known_rank(0) >= 0;
  for (size_t input : addends) {
    if (!d.has_input(input)) continue;
    sum = sum + d.input(input);
    checked = checked && d.known_rank(input) >= 0;
    for (int axis = 0; checked && axis < d.known_rank(input); ++axis) checked = d.known_size(input, axis) >= 0;
  }
  return checked ? sum : reshape(sum, shape_of(x));
}

void decompose_skip_norm(Decomposition& d, const char* norm, Term sum, const std::vector<Term>& scale_and_bias) {
  std::vector<Term> inputs = {sum};
  inputs.insert(inputs.end(), scale_and_bias.begin(), scale_and_bias.end());
  d.output(0, d.add(norm, inputs,
                    {{"axis", d.node().int_attribute("axis", -1)},
                     {"epsilon", d.node().float_attribute("epsilon", 1e-5f)}}));
  d.output(1, sum);
}

void decompose_skip_layer_norm(Decomposition& d) {
  Term sum = sum_with(d, {1, 4});
  decompose_skip_norm(d, "LayerNormalization", sum, {d.input(2), d.has_input(3) ? d.input(3) : Term{}});
}

void decompose_skip_rms_norm(Decomposition& d) {
  decompose_skip_norm(d, "RMSNormalization", sum_with(d, {1, 3}), {d.input(2)});
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
  // Of X + skip + bias, where bias is optional; that sum is the second output.
  list.add("SkipLayerNormalization", {1}, tenon_domain)
      .input("X", "T")
      .input("skip", "T")
      .input("Scale", "T")
      .optional_input("B", "T")
      .optional_input("bias", "T")
      .output("Y", "T")
      .optional_output("sum", "T")
      .types("T", fused_types)
      .attribute("axis", AttributeKind::int_)
      .attribute("epsilon", AttributeKind::float_)
      .infer([](Inference& i) {
        infer_skip_norm(i, {1, 4}, {2, 3});
      })
      .decompose(decompose_skip_layer_norm);
  list.add("SkipRMSNormalization", {1}, tenon_domain)
      .input("X", "T")
      .input("skip", "T")
      .input("scale", "T")
      .optional_input("bias", "T")
      .output("Y", "T")
      .optional_output("sum", "T")
      .types("T", fused_types)
      .attribute("axis", AttributeKind::int_)
      .attribute("epsilon", AttributeKind::float_)
      .infer([](Inference& i) {
        infer_skip_norm(i, {1, 3}, {2});
      })
      .decompose(decompose_skip_rms_norm);
}

}  // namespace tenon::ops
