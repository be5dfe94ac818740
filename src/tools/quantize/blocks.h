// Weights as codes of few bits, of which blocks share a scale.
#pragma once

#include <optional>
#include <vector>

#include "tools/quantize/calibrate.h"
#include "tools/quantize/codes.h"

namespace tenon::tools {

// A matrix [inputs, outputs] as codes; `block` inputs of an output share a scale and a zero point.
struct BlockedCodes {
  int64_t inputs = 0, outputs = 0, block = 0, blocks = 0;
  std::vector<int16_t> codes;  // [inputs, outputs]
  std::vector<float> scales;   // [blocks, outputs]
  std::vector<int16_t> zeros;  // the same
  ElementType type = ElementType::int4;
};

// `matrix` is [inputs, outputs], row-major. With `products`, of the activations it is multiplied with, by GPTQ: inputs
// are rounded one after the other, and what is left of the error is made up for by those to come.
BlockedCodes code_blocks(std::vector<float> matrix, int64_t inputs, int64_t outputs, ElementType type, bool symmetric,
                         int64_t block, const ChannelProducts* products);

}  // namespace tenon::tools
