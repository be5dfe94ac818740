#pragma once

namespace tenon {

// What numbers are computed in.
enum class Precision : unsigned char {
  full,  // the types that the model has
  // Products with weights round floats to bfloat16 where this processor multiplies that faster (bfmmla, AMX). Sums, and
  // everything else, stay as they are.
  fast,
};

}  // namespace tenon
