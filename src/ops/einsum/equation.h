// The equation of an Einsum, understood for operands of given ranks.
#pragma once

#include <string>
#include <vector>

namespace tenon::ops {

// Labels are characters; the axes an ellipsis stands for have numbers from 256 on, the last axis the highest.
struct EinsumEquation {
  std::vector<std::vector<int>> inputs;
  std::vector<int> output;

  // Throws ErrorCode::invalid_attribute.
  static EinsumEquation parse(const std::string& text, const std::vector<int>& ranks);
};

}  // namespace tenon::ops
