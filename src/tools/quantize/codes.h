// Numbers as codes: what a code stands for, and weights that become codes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tenon/tensor.h"
#include "tools/quantize/histogram.h"

namespace tenon::tools {

// The lowest and highest code of an integer type.
struct CodeLimits {
  int64_t low, high;
};
CodeLimits code_limits(ElementType type);

// A code stands for (code - zero) * scale.
struct CodeMeaning {
  ElementType type = ElementType::uint8;
  float scale = 1;
  int64_t zero = 0;

  double low() const;  // numbers that the lowest and the highest code stand for
  double high() const;
};

// Codes for a range, which 0 always belongs to. If `symmetric`, 0 is in the middle of the codes.
CodeMeaning meaning_of(const Range& range, ElementType type, bool symmetric);

// A tensor of one element, or of one axis.
Tensor zero_tensor(ElementType type, Shape shape, std::span<const int64_t> zeros);

// A constant as codes, with scales for each index of `axis`, or for all.
struct CodedWeight {
  Tensor codes, scales;
  std::optional<Tensor> zeros;  // none: all are 0
};

struct WeightCoding {
  ElementType type = ElementType::int8;
  bool symmetric = true;
  int64_t axis = -1;                 // -1: one scale for all
  std::vector<double> least_scales;  // by index of the axis; none: any
};
CodedWeight code_weight(const Tensor& weight, const WeightCoding& coding);

}  // namespace tenon::tools
