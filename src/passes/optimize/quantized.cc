#include "passes/optimize/quantized.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/dispatch.h"
#include "passes/match.h"
#include "passes/optimize/fusion.h"

namespace tenon::passes {
namespace {

constexpr ops::TypeSet bytes{ElementType::int8, ElementType::uint8};

// What a QuantizeLinear or DequantizeLinear says of the codes, if it is about bytes and float32 and its parameters are
// constants.
std::optional<Quantized> parameters_of(Editor& editor, const ir::Node& node, ir::Value* codes, ir::Value* floats) {
  const Tensor* scale = Editor::constant(node.input(1));
  const Tensor* zero = Editor::constant(node.input(2));
  const ElementType type = element_type(editor, codes);
  const int64_t precision = node.int_attribute("precision", 0);
  if (!bytes.contains(type) || element_type(editor, floats) != ElementType::float32 || !scale ||
      scale->type() != ElementType::float32 || scale->rank() > 1 || scale->elements() == 0 ||
      node.int_attribute("block_size", 0) != 0 ||
      (precision != 0 && precision != static_cast<int64_t>(ElementType::float32)))
    return std::nullopt;
  if (node.input(2) && (!zero || zero->type() != type || zero->elements() != scale->elements())) return std::nullopt;
  if (!std::ranges::all_of(scale->data<float>(), [](float s) { return s > 0 && std::isnormal(s); }))
    return std::nullopt;
  int64_t axis = node.int_attribute("axis", 1);
  if (axis < 0) axis += editor.rank(codes);
  return Quantized{codes, type, node.input(1), node.input(2), axis};
}

}  // namespace

int Quantized::zero() const {
  int result = 0;
  if (!zero_point) return result;
  ops::dispatch<int8_t, uint8_t>(type, [&]<typename T>() { result = Editor::constant(zero_point)->data<T>()[0]; });
  return result;
}

bool Quantized::same_meaning(const Quantized& other) const {
  return is_whole() && other.is_whole() && type == other.type && scales()[0] == other.scales()[0] &&
         zero() == other.zero();
}

std::optional<Quantized> before(Editor& editor, const ir::Value* value) {
  const ir::Node* node = value ? producer(value, "DequantizeLinear") : nullptr;
  return node ? parameters_of(editor, *node, node->input(0), node->output(0)) : std::nullopt;
}

std::optional<Quantized> after(Editor& editor, const ir::Node& quantize) {
  return parameters_of(editor, quantize, quantize.output(0), quantize.input(0));
}

ir::Value* zero_point(Patch& patch, const Quantized& quantized) {
  if (quantized.zero_point) return quantized.zero_point;
  return patch.constant(quantized.type == ElementType::int8 ? Tensor(Shape{}, {int8_t{0}})
                                                            : Tensor(Shape{}, {uint8_t{0}}));
}

bool limits_by_itself(const ir::Node& limit, const Quantized& quantized) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::array<float, 2> limits = {0, infinity};
  if (limit.op_type == "Clip") {
    std::optional<std::array<float, 2>> constants = constant_limits(limit);
    if (!constants) return false;
    limits = *constants;
  }
  const int lowest = quantized.type == ElementType::int8 ? -128 : 0, zero = quantized.zero();
  const float scale = quantized.scales()[0];
  return std::nearbyint(limits[0] / scale) + static_cast<float>(zero) <= static_cast<float>(lowest) &&
         std::nearbyint(limits[1] / scale) + static_cast<float>(zero) >= static_cast<float>(lowest + 255);
}

ir::Node* quantizer_of(Editor& editor, const ir::Value* value) {
  ir::Node* limit = nullptr;
  for (const char* op : {"Relu", "Clip"}) {
    if (!limit) limit = sole_user(editor, value, op);
  }
  if (limit && limit->input(0) != value) return nullptr;
  ir::Node* quantize = sole_user(editor, limit ? limit->output(0) : value, "QuantizeLinear");
  if (!quantize || quantize->input(0) != (limit ? limit->output(0) : value)) return nullptr;
  const std::optional<Quantized> result = after(editor, *quantize);
  return result && result->is_whole() && (!limit || limits_by_itself(*limit, *result)) ? quantize : nullptr;
}

}  // namespace tenon::passes
