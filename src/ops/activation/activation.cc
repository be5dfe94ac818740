#include "ops/adapters.h"
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

}  // namespace

void define_activation(OperatorList& list) {
  auto add = [&](const char* name, std::vector<int> versions, std::initializer_list<const char*> numbers) -> Operator& {
    Operator& op = list.add(name, std::move(versions)).input("X", "T").output("Y", "T").types("T", types::floats);
    for (const char* number : numbers) op.attribute(number, AttributeKind::float_);
    return op.infer([](Inference& i) { i.same_as_input(0); });
  };
  add("HardSigmoid", {1, 6, 22}, {"alpha", "beta"}).lift(1, 6, drop_consumed_inputs);
  add("LeakyRelu", {1, 6, 16}, {"alpha"}).lift(1, 6, drop_consumed_inputs);
  add("Elu", {1, 6, 22}, {"alpha"}).lift(1, 6, drop_consumed_inputs);
  add("Selu", {1, 6, 22}, {"alpha", "gamma"}).lift(1, 6, keep_old_selu_constants);
  add("Celu", {12, 28}, {"alpha"});
  add("ThresholdedRelu", {10, 22}, {"alpha"});
  add("Swish", {24}, {"alpha"});
  add("Gelu", {20}, {}).attribute("approximate", AttributeKind::string);
  list.add("Shrink", {9})
      .input("input", "T")
      .output("output", "T")
      .types("T", (types::numbers)-TypeSet{ElementType::bfloat16})
      .attribute("lambd", AttributeKind::float_)
      .attribute("bias", AttributeKind::float_)
      .infer([](Inference& i) { i.same_as_input(0); });
}

}  // namespace tenon::ops
