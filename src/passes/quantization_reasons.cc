#include "passes/quantization_reasons.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/operator.h"
#include "passes/optimize/quantized.h"

namespace tenon::passes {
namespace {

using enum ElementType;

constexpr std::string_view quantize = "QuantizeLinear", dequantize = "DequantizeLinear";

// Operators that are written with integers if what they read is dequantized and, but for products, what they make is
// quantized again; besides those that move codes, and functions of one value, which become look-ups.
constexpr std::string_view products[] = {"Conv", "ConvInteger", "Gemm", "MatMul", "MatMulInteger"};
constexpr std::string_view others[] = {"Add", "GlobalAveragePool", "Mul"};

template <size_t N>
bool has(const std::string_view (&list)[N], std::string_view op) {
  return std::ranges::find(list, op) != std::end(list);
}

bool is(const ir::Node* node, std::string_view op) {
  return node && (node->domain.empty() || node->domain == ops::microsoft) && node->op_type == op;
}

bool is_output(const ir::Value& value) {
  const auto& outputs = value.graph().outputs();
  return std::ranges::find(outputs, &value) != outputs.end();
}

const Tensor* constant_of(const ir::Value* value) {
  return value && value->is_fixed() ? &value->constant()->tensor : nullptr;
}

// What the parameters say: only one constant scale of float32 and codes of 8 bits are computed with.
std::string about_parameters(const ir::Node& node, const ir::Value& codes) {
  const Tensor* scale = constant_of(node.input(1));
  if (!scale) return "its scale is computed; make it a constant";
  if (node.input(2) && !constant_of(node.input(2))) return "its zero point is computed; make it a constant";
  const ElementType type = codes.type.element;
  if (type != int8 && type != uint8 && type != int32)
    return fmt::format("there are no steps that compute with {}; 8-bit integers have them", name_of(type));
  if (scale->type() != float32)
    return fmt::format("its scale is {}; steps in integers take float", name_of(scale->type()));
  if (node.int_attribute("block_size", 0) != 0) return "it is quantized in blocks, as only weights may be";
  if (scale->elements() != 1 && type != int32)
    return "it has a scale for each index of an axis, as only weights may have";
  return "";
}

// Why `node`, which reads or makes floats, does not compute with codes; empty where it might.
std::string about_operator(const ir::Node& node) {
  if (!node.domain.empty() && node.domain != ops::microsoft)
    return fmt::format("{} was fused with others in floats", node.describe_here());
  if (!has(products, node.op_type) && !has(others, node.op_type) && !moves_codes(node) && !is_function(node))
    return fmt::format("{} has no kernel on bytes", node.describe_here());
  const auto computed = std::ranges::count_if(node.inputs(), [](const ir::Value* x) { return x && !x->is_fixed(); });
  if (computed > 1 && is_function(node) && !has(others, node.op_type))
    return fmt::format("{} of computed values has no kernel on bytes", node.describe_here());
  for (const ir::Value* input : node.inputs()) {
    if (!input || input->is_fixed() || input->type.element != float32 || is(input->producer(), dequantize)) continue;
    return fmt::format("{} also reads '{}', which is not quantized", node.describe_here(), input->name);
  }
  return "";
}

std::string about_maker(const ir::Value& floats, const ir::Node& node) {
  const ir::Node* maker = floats.producer();
  if (!maker) return fmt::format("a border: it quantizes '{}', which the model is given in floats", floats.name);
  if (is(maker, dequantize)) return "it changes the scale of what is quantized already";
  for (const ir::Node* user : floats.users()) {
    if (user != &node && !is(user, quantize))
      return fmt::format("'{}' is also read in floats, by {}", floats.name, user->describe_here());
  }
  if (is_output(floats)) return fmt::format("'{}' is also an output of the model, in floats", floats.name);
  const std::string reason = about_operator(*maker);
  return reason.empty() ? fmt::format("{} has shapes or attributes that no kernel on bytes has", maker->describe_here())
                        : reason;
}

std::string about_readers(const ir::Value& floats) {
  if (is_output(floats)) return fmt::format("a border: '{}' is an output of the model, in floats", floats.name);
  for (const ir::Node* user : floats.users()) {
    const ir::Node& reader = *user;
    if (std::string reason = about_operator(reader); !reason.empty()) return "it is read in floats: " + reason;
    const ir::Value* made = reader.output(0);
    const bool is_quantized =
        made && std::ranges::all_of(made->users(), [](const ir::Node* user_of) { return is(user_of, quantize); });
    if (!is_quantized || is_output(*made))
      return fmt::format("what {} makes of it is not only quantized again", reader.describe_here());
  }
  return "what reads it has shapes or attributes that no kernel on bytes has";
}

}  // namespace

std::string why_quantization_stays(const ir::Node& node) {
  const bool quantizes = is(&node, quantize);
  if ((!quantizes && !is(&node, dequantize)) || !node.input(0) || !node.output(0)) return "";
  const ir::Value &from = *node.input(0), &to = *node.output(0);
  if (!quantizes && from.producer() && has(products, from.producer()->op_type))
    return "it makes floats of sums in integers, because they are not quantized again";
  // A border is no fault, whatever its parameters.
  if (quantizes && !from.producer()) return about_maker(from, node);
  if (!quantizes && is_output(to)) return about_readers(to);
  if (std::string reason = about_parameters(node, quantizes ? to : from); !reason.empty()) return reason;
  return quantizes ? about_maker(from, node) : about_readers(to);
}

}  // namespace tenon::passes
