#include <cmath>

#include "ops/decomposition.h"
#include "ops/elementwise.h"
#include "ops/fused_elementwise/program.h"
#include "ops/fused_types.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer(Inference& i) {
  ElementwiseProgram::of(i.node());
  infer_broadcast(i, i.element(0));
}

Term decompose(Decomposition& d, const ElementwiseOperation& operation, const std::vector<Term>& operands) {
  const std::string name(operation.op->name);
  const Term x = operands[0];
  if (name == "TanhGelu") return d.add("Gelu", {x}, {{"approximate", std::string("tanh")}});
  if (name == "Pow") return d.add("Pow", {x, x.number(operation.parameters[0])});
  if (name == "Clip") {
    const auto [low, high] = operation.parameters;
    return d.add("Clip", {x, std::isinf(low) && low < 0 ? Term{} : x.number(low),
                          std::isinf(high) && high > 0 ? Term{} : x.number(high)});
  }
  Term y = d.add(name, operands);
  for (size_t i = 0; i < static_cast<size_t>(operation.op->parameter_count); ++i)
    y.value->producer()->set_attribute({operation.op->parameters[i].first, operation.parameters[i]});
  return y;
}

void decompose_all(Decomposition& d) {
  const ElementwiseProgram program = ElementwiseProgram::of(d.node());
  std::vector<Term> terms;
  for (int i = 0; i < program.inputs; ++i) terms.push_back(d.input(static_cast<size_t>(i)));
  for (const ElementwiseOperation& operation : program.operations) {
    std::vector<Term> operands;
    for (int operand : operation.inputs()) operands.push_back(terms[static_cast<size_t>(operand)]);
    terms.push_back(decompose(d, operation, operands));
  }
  d.output(0, terms.back());
}

}  // namespace

void define_fused_elementwise(OperatorList& list) {
  list.add("FusedElementwise", {1}, tenon_domain)
      .variadic_input("inputs", "T")
      .output("output", "T")
      .types("T", fused_types)
      .required_attribute("operators", AttributeKind::strings)
      .required_attribute("operands", AttributeKind::ints)
      .attribute("parameters", AttributeKind::floats)
      .infer(infer)
      .decompose(decompose_all)
      .operations(
          [](const ir::Node& node) { return static_cast<int64_t>(node.strings_attribute("operators").size()); });
}

}  // namespace tenon::ops
