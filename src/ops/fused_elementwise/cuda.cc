#include "base/fail.h"
#include "ops/cuda_support/elementwise.h"
#include "ops/cuda_support/expressions.h"
#include "ops/fused_elementwise/program.h"

namespace tenon::ops {
namespace {

using Body = std::function<std::string(const ir::Node&)>;

ElementType type_of(const ir::Node& node, size_t input) { return node.input(input)->type.element; }
std::string wide_type(const ir::Node& node, size_t input) {
  return std::string(cuda::wide_type_text(type_of(node, input)));
}

// The name of an operator's expression for what the node computes in.
std::string_view in_type(std::string_view op, const ir::Node& node) {
  return op == "Gelu" && bits_of(type_of(node, 0)) == 16 ? "HalfGelu" : op;
}

std::string fused_body(const ir::Node& node) {
  const ElementwiseProgram program = ElementwiseProgram::of(node);
  const std::string type = wide_type(node, 0);
  std::vector<std::string> names;
  for (int i = 0; i < program.inputs; ++i) names.push_back(fmt::format("a{}", i));
  std::string text;
  for (const ElementwiseOperation& operation : program.operations) {
    std::vector<std::string> operands, parameters;
    for (int operand : operation.inputs()) operands.push_back(names[static_cast<size_t>(operand)]);
    for (int i = 0; i < operation.op->parameter_count; ++i)
      parameters.push_back(cuda::number_text(operation.parameters[static_cast<size_t>(i)], ElementType::float32));
    names.push_back(fmt::format("t{}", names.size()));
    text += fmt::format("const {} {} = {};\n    ", type, names.back(),
                        expression_text(in_type(operation.op->name, node), type, operands, parameters));
  }
  return text + fmt::format("r = {};", names.back());
}

// One operator whose attributes are floats, as ElementwiseOperator lists them.
std::string single_body(const ir::Node& node, std::string_view name) {
  std::vector<std::string> operands, parameters;
  for (size_t i = 0; i < node.input_count(); ++i) operands.push_back(fmt::format("a{}", i));
  if (const ElementwiseOperator* op = find_elementwise_operator(name)) {
    for (int i = 0; i < op->parameter_count; ++i) {
      const auto& [attribute, otherwise] = op->parameters[static_cast<size_t>(i)];
      parameters.push_back(cuda::number_text(node.float_attribute(attribute, otherwise), type_of(node, 0)));
    }
  }
  return fmt::format("r = {};", expression_text(in_type(name, node), wide_type(node, 0), operands, parameters));
}

std::string gelu_body(const ir::Node& node) {
  return single_body(node, node.string_attribute("approximate", "none") == "tanh" ? "TanhGelu" : "Gelu");
}

// Integers are compared with the attributes as doubles.
std::string shrink_body(const ir::Node& node) {
  const std::string operands[] = {"x"};
  const std::string parameters[] = {cuda::number_text(node.float_attribute("lambd", 0.5f), ElementType::float64),
                                    cuda::number_text(node.float_attribute("bias", 0), ElementType::float64)};
  return fmt::format("const double x = a0; r = {};", expression_text("Shrink", "double", operands, parameters));
}

std::string is_inf_body(const ir::Node& node) {
  return fmt::format("r = ({} && a0 == INFINITE) || ({} && a0 == -INFINITE);", node.int_attribute("detect_positive", 1),
                     node.int_attribute("detect_negative", 1));
}

std::string shift_body(const ir::Node& node) {
  // More bits than the type has shift everything out.
  return fmt::format("r = a1 >= {} ? 0 : a0 {} a1;", bits_of(type_of(node, 0)),
                     node.string_attribute("direction", "") == "LEFT" ? "<<" : ">>");
}

std::string mod_body(const ir::Node& node) {
  const bool is_float = types::floats.contains(type_of(node, 0));
  const std::string rest = is_float ? "r = fmod(a0, a1);" : "r = a0 % a1;";
  return node.int_attribute("fmod", 0) != 0 ? rest : rest + " if (r != 0 && (r < 0) != (a1 < 0)) r += a1;";
}

std::string pow_body(const ir::Node&) { return "r = power(a0, a1);"; }

// The first input folded with the others.
std::string variadic_body(const ir::Node& node, std::string_view op) {
  std::string text = "r = a0;";
  for (size_t i = 1; i < node.input_count(); ++i) {
    const std::string operands[] = {"r", fmt::format("a{}", i)};
    text += fmt::format(" r = {};", expression_text(op, wide_type(node, 0), operands));
  }
  return text;
}

// Bounds that are given as inputs; either may be missing.
std::string clip_body(const ir::Node& node) {
  std::string text = "r = a0;";
  int next = 1;
  if (node.input(1)) text += fmt::format(" r = most(r, a{});", next++);
  if (node.input(2)) text += fmt::format(" r = least(r, a{});", next++);
  return text;
}

}  // namespace

// Every elementwise operator, alone and fused.
void cuda_fused_elementwise(CudaKernels& list) {
  auto add = [&](std::string_view op, TypeSet types, const Body& body, std::string_view domain = "",
                 std::function<std::string(const ir::Node&)> decline = nullptr) {
    list.add(op, [body](const NodeInfo& info) { return std::make_unique<CudaElementwise>(body(info.node())); },
             {.types = types, .host_inputs = {}, .decline = std::move(decline), .domain = domain});
  };
  const TypeSet floats = types::floats, numbers = types::numbers, bools = types::bools;
  add("FusedElementwise", floats, fused_body, tenon_domain);
  for (const char* op : {"Sqrt",        "Exp",       "Log",        "Tanh",     "Sigmoid",   "Floor",
                         "Ceil",        "Round",     "Reciprocal", "Sin",      "Cos",       "Tan",
                         "Asin",        "Acos",      "Atan",       "Sinh",     "Cosh",      "Asinh",
                         "Acosh",       "Atanh",     "Softplus",   "Softsign", "HardSwish", "Mish",
                         "HardSigmoid", "LeakyRelu", "Elu",        "Selu",     "Celu",      "ThresholdedRelu",
                         "Swish"})
    add(op, floats, [op](const ir::Node& node) { return single_body(node, op); });
  for (const char* op : {"Abs", "Neg", "Relu", "Sign", "Erf", "Add", "Sub", "Mul", "Div", "PRelu"})
    add(op, numbers, [op](const ir::Node& node) { return single_body(node, op); });
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
    add(op, numbers | bools, [op](const ir::Node& node) { return single_body(node, op); });
  for (const char* op : {"Not", "And", "Or", "Xor"})
    add(op, bools, [op](const ir::Node& node) { return single_body(node, op); });
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"})
    add(op, types::ints, [op](const ir::Node& node) { return single_body(node, op); });
  add("Gelu", floats, gelu_body);
  add("Shrink", numbers, shrink_body);
  add("IsNaN", floats | bools, [](const ir::Node&) { return "r = is_nan(a0);"; });
  add("IsInf", floats | bools, is_inf_body);
  add("BitShift", types::unsigned_ints, shift_body);
  add("Mod", numbers, mod_body);
  add("Pow", numbers, pow_body);
  add("Min", numbers, [](const ir::Node& node) { return variadic_body(node, "Min"); });
  add("Max", numbers, [](const ir::Node& node) { return variadic_body(node, "Max"); });
  add("Sum", floats, [](const ir::Node& node) { return variadic_body(node, "Add"); });
  add("Mean", floats,
      [](const ir::Node& node) { return variadic_body(node, "Add") + fmt::format(" r /= {};", node.input_count()); });
  add("Clip", numbers, clip_body);
  add("Where", numbers | bools | types::complexes, [](const ir::Node&) { return "r = a0 ? a1 : a2;"; });
  add("Identity", numbers | bools | types::complexes, [](const ir::Node&) { return "r = a0;"; });
}

}  // namespace tenon::ops
