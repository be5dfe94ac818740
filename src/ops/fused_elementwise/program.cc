#include "ops/fused_elementwise/program.h"

#include <algorithm>
#include <limits>

#include "base/fail.h"

namespace tenon::ops {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

constexpr ElementwiseOperator operators[] = {
    {"Add", 2},
    {"Sub", 2},
    {"Mul", 2},
    {"Div", 2},
    {"Pow", 1, 1, {{{"exponent", 1}}}},
    {"Min", 2},
    {"Max", 2},
    {"Abs", 1},
    {"Neg", 1},
    {"Sign", 1},
    {"Floor", 1},
    {"Ceil", 1},
    {"Round", 1},
    {"Reciprocal", 1},
    {"Sqrt", 1},
    {"Exp", 1},
    {"Log", 1},
    {"Erf", 1},
    {"Sin", 1},
    {"Cos", 1},
    {"Tan", 1},
    {"Asin", 1},
    {"Acos", 1},
    {"Atan", 1},
    {"Sinh", 1},
    {"Cosh", 1},
    {"Asinh", 1},
    {"Acosh", 1},
    {"Atanh", 1},
    {"Tanh", 1},
    {"Sigmoid", 1},
    {"Relu", 1},
    {"Softplus", 1},
    {"Softsign", 1},
    {"HardSwish", 1},
    {"Mish", 1},
    {"Gelu", 1},
    {"TanhGelu", 1},
    {"Swish", 1, 1, {{{"alpha", 1}}}},
    {"Elu", 1, 1, {{{"alpha", 1}}}},
    {"Celu", 1, 1, {{{"alpha", 1}}}},
    {"Selu", 1, 2, {{{"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f}}}},
    {"LeakyRelu", 1, 1, {{{"alpha", 0.01f}}}},
    {"ThresholdedRelu", 1, 1, {{{"alpha", 1}}}},
    {"HardSigmoid", 1, 2, {{{"alpha", 0.2f}, {"beta", 0.5f}}}},
    {"Shrink", 1, 2, {{{"lambd", 0.5f}, {"bias", 0}}}},
    {"Clip", 1, 2, {{{"min", -infinity}, {"max", infinity}}}},
};

// Takes the next `count` of a list that may be too short.
template <typename T>
std::span<const T> take(std::span<const T>& rest, int count, const char* what) {
  const auto size = static_cast<size_t>(count);
  if (rest.size() < size) fail(ErrorCode::invalid_attribute, "'{}' has too few elements", what);
  std::span<const T> taken = rest.first(size);
  rest = rest.subspan(size);
  return taken;
}

}  // namespace

const ElementwiseOperator* find_elementwise_operator(std::string_view name) {
  auto found = std::ranges::find(operators, name, &ElementwiseOperator::name);
  return found == std::end(operators) ? nullptr : found;
}

ElementwiseProgram ElementwiseProgram::of(const ir::Node& node) {
  const std::vector<std::string> names = node.strings_attribute("operators");
  const std::vector<int64_t> operands = node.ints_attribute("operands");
  const std::vector<float> parameters = node.floats_attribute("parameters");
  if (node.input_count() > most_inputs || names.empty() || names.size() > most_operations)
    fail(ErrorCode::invalid_attribute, "it has {} inputs and {} operators, not up to {} and 1 to {}",
         node.input_count(), names.size(), most_inputs, most_operations);
  ElementwiseProgram program;
  program.inputs = static_cast<int>(node.input_count());
  std::vector<bool> used(node.input_count() + names.size() - 1);
  std::span<const int64_t> more_operands = operands;
  std::span<const float> more_parameters = parameters;
  for (const std::string& name : names) {
    ElementwiseOperation operation{find_elementwise_operator(name)};
    if (!operation.op) fail(ErrorCode::invalid_attribute, "operator '{}' cannot be fused", name);
    const int64_t known = program.inputs + static_cast<int64_t>(program.operations.size());
    std::ranges::transform(
        take(more_operands, operation.op->operand_count, "operands"), operation.operands.begin(), [&](int64_t number) {
          if (number < 0 || number >= known)
            fail(ErrorCode::invalid_attribute, "operand {} of {} is not computed before it", number, name);
          used[static_cast<size_t>(number)] = true;
          return static_cast<int>(number);
        });
    std::ranges::copy(take(more_parameters, operation.op->parameter_count, "parameters"), operation.parameters.begin());
    if (name == "Celu" && operation.parameters[0] == 0)
      fail(ErrorCode::invalid_attribute, "alpha is 0, Celu divides by it");
    program.operations.push_back(operation);
  }
  if (!more_operands.empty()) fail(ErrorCode::invalid_attribute, "'operands' has too many elements");
  if (!more_parameters.empty()) fail(ErrorCode::invalid_attribute, "'parameters' has too many elements");
  auto unused = std::ranges::find(used, false);
  if (unused != used.end())
    fail(ErrorCode::invalid_attribute, "operand {} is used by no operator", unused - used.begin());
  return program;
}

std::vector<std::string> ElementwiseProgram::operator_names() const {
  std::vector<std::string> names;
  for (const ElementwiseOperation& operation : operations) names.emplace_back(operation.op->name);
  return names;
}

std::vector<int64_t> ElementwiseProgram::operand_numbers() const {
  std::vector<int64_t> numbers;
  for (const ElementwiseOperation& operation : operations)
    numbers.insert(numbers.end(), operation.inputs().begin(), operation.inputs().end());
  return numbers;
}

std::vector<float> ElementwiseProgram::parameter_numbers() const {
  std::vector<float> numbers;
  for (const ElementwiseOperation& operation : operations)
    numbers.insert(numbers.end(), operation.parameters.begin(),
                   operation.parameters.begin() + operation.op->parameter_count);
  return numbers;
}

}  // namespace tenon::ops
