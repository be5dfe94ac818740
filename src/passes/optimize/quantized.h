// Quantized values, as the passes that compute in integers see them.
#pragma once

#include <optional>
#include <span>

#include "passes/editor.h"

namespace tenon::passes {

// 8-bit codes and what they stand for: (code - zero point) * scale, with one scale for all or one for each index of an
// axis.
struct Quantized {
  ir::Value* codes;
  ElementType type;  // of the codes
  ir::Value* scale;
  ir::Value* zero_point;  // null: 0
  int64_t axis;

  std::span<const float> scales() const { return Editor::constant(scale)->data<float>(); }
  bool is_whole() const { return scales().size() == 1; }
  // Of one that is whole.
  int zero() const;
  bool same_meaning(const Quantized& other) const;
};

// What a value was before it was dequantized.
std::optional<Quantized> before(Editor& editor, const ir::Value* value);
// What a QuantizeLinear makes.
std::optional<Quantized> after(Editor& editor, const ir::Node& quantize);
// The QuantizeLinear that alone depends on a value, be it through a Relu or Clip that it does itself. Null: none.
ir::Node* quantizer_of(Editor& editor, const ir::Value* value);
// Whether values beyond the limits of a Relu or Clip have the lowest and the highest code anyway.
bool limits_by_itself(const ir::Node& limit, const Quantized& quantized);
// Its zero point, which is added where it is left out.
ir::Value* zero_point(Patch& patch, const Quantized& quantized);

// Functions of single elements: those of one input, and those whose other inputs may be single numbers.
bool is_function(const ir::Node& node);
// Whether it only moves or picks elements, which it can do with codes.
bool moves_codes(const ir::Node& node);

// What the parts of the pass do at a node.
void add_codes(Editor& editor, ir::Node& node);         // Add and Mul of two dequantized values
void look_up_codes(Editor& editor, ir::Node& node);     // a function of one dequantized value, which is quantized again
void average_codes(Editor& editor, ir::Node& node);     // GlobalAveragePool
void softmax_of_codes(Editor& editor, ir::Node& node);  // Softmax over the last axis
void recode_concat(Editor& editor, ir::Node& node);     // Concat of values that are quantized in different ways
void look_up_arithmetic(Editor& editor, ir::Node& node);          // QLinearAdd and QLinearMul with one code for all
void simplify_look_up(Editor& editor, ir::Node& node);            // one after another, or one that changes nothing
void convolve_codes(Editor& editor, ir::Node& node);              // Conv
void multiply_matrices_of_codes(Editor& editor, ir::Node& node);  // MatMul, Gemm
void add_codes_to_product(Editor& editor, ir::Node& node);        // QLinearAdd of a QLinearMatMul and a row of codes
// QLinearAdd of a QLinearConv with channels last, on a device.
void add_codes_to_convolution(Editor& editor, ir::Node& node);
void look_up_in_convolution(Editor& editor, ir::Node& node);     // LookUp of what such a QLinearConv makes
void read_image_in_convolution(Editor& editor, ir::Node& node);  // such a QLinearConv of few channels
void scale_product(Editor& editor, ir::Node& node);  // Mul and Add that make floats of a MatMulInteger's sums

}  // namespace tenon::passes
