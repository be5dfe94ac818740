#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// After the learning rate and the update count come `inputs` groups of n tensors, and `outputs` groups of n come out:
// the first groups are the optimised tensors, and the last ones what the optimiser remembers about each.
void infer_optimizer(Inference& i, size_t inputs, size_t outputs) {
  const size_t given = i.input_count() - 2, n = given / inputs;
  if (given % inputs != 0) {
    i.fail_with(ErrorCode::invalid_model,
                fmt::format("it has {} tensors; there must be {} for each that is optimised", given, inputs));
  }
  if (i.output_count() > n * outputs) {
    i.fail_with(ErrorCode::invalid_model,
                fmt::format("it has {} outputs; {} optimised tensors give {}", i.output_count(), n, n * outputs));
  }
  for (size_t input = 2; input < i.input_count(); ++input) {
    if (!i.has_input(input)) i.fail_with(ErrorCode::missing_input, fmt::format("input {} is left out", input));
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t group = 1; group < inputs; ++group) {
      const size_t input = 2 + group * n + k;
      if (i.element(input) != i.element(2 + k)) {
        i.fail_with(ErrorCode::type_mismatch, fmt::format("inputs {} and {} have types {} and {}", 2 + k, input,
                                                          name_of(i.element(2 + k)), name_of(i.element(input))));
      }
      if (!i.has_shape(2 + k) || !i.has_shape(input)) continue;
      i.require_rank(input, i.rank(2 + k));
      for (size_t axis = 0; axis < i.shape(input).size(); ++axis) {
        i.equal(i.shape(2 + k)[axis], i.shape(input)[axis],
                fmt::format("axis {} of inputs {} and {}", axis, 2 + k, input));
      }
    }
  }
  for (size_t k = 0; k < i.output_count(); ++k) i.output(k, i.type(2 + k % n));
}

void infer_momentum(Inference& i) {
  const std::string mode = i.node().string_attribute("mode", "");
  if (mode != "standard" && mode != "nesterov")
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("mode is '{}'; it may be 'standard' or 'nesterov'", mode));
  infer_optimizer(i, 3, 2);
}

}  // namespace

void define_optimizer(OperatorList& list) {
  constexpr TypeSet wide{ElementType::float32, ElementType::float64};
  auto add = [&](const char* name) -> Operator& {
    return list.add(name, {1}, ai_onnx_training)
        .input("R", wide)
        .input("T", TypeSet{ElementType::int64})
        .variadic_input("inputs", "T3", /*at_least=*/1, /*same_types=*/false)
        .variadic_output("outputs", "T3", /*at_least=*/1, /*same_types=*/false)
        .types("T3", wide);
  };
  add("Adagrad")
      .attribute("decay_factor", AttributeKind::float_)
      .attribute("epsilon", AttributeKind::float_)
      .attribute("norm_coefficient", AttributeKind::float_)
      .infer([](Inference& i) { infer_optimizer(i, 3, 2); });
  add("Adam")
      .attribute("alpha", AttributeKind::float_)
      .attribute("beta", AttributeKind::float_)
      .attribute("epsilon", AttributeKind::float_)
      .attribute("norm_coefficient", AttributeKind::float_)
      .attribute("norm_coefficient_post", AttributeKind::float_)
      .infer([](Inference& i) { infer_optimizer(i, 4, 3); });
  add("Momentum")
      .required_attribute("alpha", AttributeKind::float_)
      .required_attribute("beta", AttributeKind::float_)
      .required_attribute("mode", AttributeKind::string)
      .required_attribute("norm_coefficient", AttributeKind::float_)
      .infer(infer_momentum);
}

}  // namespace tenon::ops
