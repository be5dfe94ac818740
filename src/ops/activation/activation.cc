#include <cmath>

#include "ops/adapters.h"
#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Version 1 has its constants with fewer digits.
void keep_old_selu_constants(ir::Node& node) {
  drop_consumed_inputs(node);
  if (!node.attribute("alpha")) node.set_attribute({"alpha", 1.6732f});
  if (!node.attribute("gamma")) node.set_attribute({"gamma", 1.0507f});
}

// scale * x above zero, scale * alpha * (exp(x * inside) - 1) below.
void decompose_exponential_unit(Decomposition& d, float scale, float alpha, float inside) {
  Term x = d.wide_input(0);
  d.output(0, where(greater(x, 0), x * scale, (exp(x * inside) - 1) * (scale * alpha)));
}

void decompose_elu(Decomposition& d) { decompose_exponential_unit(d, 1, d.node().float_attribute("alpha", 1), 1); }

void decompose_selu(Decomposition& d) {
  decompose_exponential_unit(d, d.node().float_attribute("gamma", 1.05070102214813232421875f),
                             d.node().float_attribute("alpha", 1.67326319217681884765625f), 1);
}

void decompose_celu(Decomposition& d) {
  float alpha = d.node().float_attribute("alpha", 1);
  if (alpha == 0) d.give_up("alpha is 0, Celu divides by it");
  decompose_exponential_unit(d, 1, alpha, 1 / alpha);
}

void decompose_hard_sigmoid(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, max(min(x * d.node().float_attribute("alpha", 0.2f) + d.node().float_attribute("beta", 0.5f), 1), 0));
}

void decompose_leaky_relu(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, where(less(x, 0), x * d.node().float_attribute("alpha", 0.01f), x));
}

void decompose_thresholded_relu(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, where(greater(x, d.node().float_attribute("alpha", 1)), x, 0));
}

void decompose_swish(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, x * sigmoid(x * d.node().float_attribute("alpha", 1)));
}

void decompose_gelu(Decomposition& d) {
  std::string approximate = d.node().string_attribute("approximate", "none");
  Term x = d.wide_input(0);
  if (approximate == "tanh")
    d.output(0, x * 0.5 * (1 + tanh((x + x * x * x * 0.044715) * (M_2_SQRTPI * M_SQRT1_2))));
  else if (approximate == "none")
    d.output(0, x * 0.5 * (1 + d.add("Erf", {x * M_SQRT1_2})));
  else
    d.give_up(fmt::format("approximate is '{}', it must be none or tanh", approximate));
}

// Integers are compared with the attributes, which are floats, as doubles.
void decompose_shrink(Decomposition& d) {
  float limit = d.node().float_attribute("lambd", 0.5f), bias = d.node().float_attribute("bias", 0);
  Term x = types::floats.contains(d.element(0)) ? d.wide_input(0) : cast(d.input(0), ElementType::float64);
  d.output(0, where(less(x, -limit), x + bias, where(greater(x, limit), x - bias, 0)));
}

}  // namespace

void define_activation(OperatorList& list) {
  auto add = [&](const char* name, std::vector<int> versions, std::initializer_list<const char*> numbers) -> Operator& {
    Operator& op = list.add(name, std::move(versions)).input("X", "T").output("Y", "T").types("T", types::floats);
    for (const char* number : numbers) op.attribute(number, AttributeKind::float_);
    return op.infer([](Inference& i) { i.same_as_input(0); });
  };
  add("HardSigmoid", {1, 6, 22}, {"alpha", "beta"}).decompose(decompose_hard_sigmoid).lift(1, 6, drop_consumed_inputs);
  add("LeakyRelu", {1, 6, 16}, {"alpha"}).decompose(decompose_leaky_relu).lift(1, 6, drop_consumed_inputs);
  add("Elu", {1, 6, 22}, {"alpha"}).decompose(decompose_elu).lift(1, 6, drop_consumed_inputs);
  add("Selu", {1, 6, 22}, {"alpha", "gamma"}).decompose(decompose_selu).lift(1, 6, keep_old_selu_constants);
  add("Celu", {12, 28}, {"alpha"}).decompose(decompose_celu);
  add("ThresholdedRelu", {10, 22}, {"alpha"}).decompose(decompose_thresholded_relu);
  add("Swish", {24}, {"alpha"}).decompose(decompose_swish);
  add("Gelu", {20}, {}).decompose(decompose_gelu).attribute("approximate", AttributeKind::string);
  list.add("Shrink", {9})
      .input("input", "T")
      .output("output", "T")
      .types("T", (types::numbers)-TypeSet{ElementType::bfloat16})
      .attribute("lambd", AttributeKind::float_)
      .attribute("bias", AttributeKind::float_)
      .decompose(decompose_shrink)
      .infer([](Inference& i) { i.same_as_input(0); });
}

}  // namespace tenon::ops
