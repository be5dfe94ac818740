// What a node FusedElementwise of domain tenon computes: a list of elementwise operators in three attributes. Results
// are numbered on from the inputs, so with two inputs
//
//   operators = ["Mul", "LeakyRelu"], operands = [0, 1, 2], parameters = [0.1]
//
// is LeakyRelu(Mul(input 0, input 1)) with alpha = 0.1. The output is the last result.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace tenon::ops {

// An operator that can be part of it. The names are those of ai.onnx, but for TanhGelu, the Gelu with `approximate`.
struct ElementwiseOperator {
  std::string_view name;
  int operand_count;
  // Its attributes, all of them floats. The bounds of Clip and the exponent of Pow, which are inputs there, are numbers
  // here.
  int parameter_count = 0;
  std::array<std::pair<const char*, float>, 2> parameters = {};
};

// Null if there is none of this name.
const ElementwiseOperator* find_elementwise_operator(std::string_view name);

struct ElementwiseOperation {
  const ElementwiseOperator* op = nullptr;
  std::array<int, 2> operands = {};
  std::array<float, 2> parameters = {};

  std::span<const int> inputs() const { return {operands.data(), static_cast<size_t>(op->operand_count)}; }
};

struct ElementwiseProgram {
  static constexpr int most_inputs = 16, most_operations = 32;

  int inputs = 0;
  std::vector<ElementwiseOperation> operations;

  // Of a node. Throws invalid_attribute where its attributes are no program, or one that leaves an input or a result
  // unused.
  static ElementwiseProgram of(const ir::Node& node);

  // The attributes.
  std::vector<std::string> operator_names() const;
  std::vector<int64_t> operand_numbers() const;
  std::vector<float> parameter_numbers() const;
};

}  // namespace tenon::ops
