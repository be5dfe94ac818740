#pragma once

#include "tenon/tensor.h"

namespace tenon::ops {

// Writes numbers as text: integers in full, floats in the fewest digits that read back as the same number.
void numbers_to_text(const Tensor& from, Tensor& to);
// Reads numbers: as double for floats, else as int64, into which large uint64 wrap around. Throws on other text.
Tensor text_to_numbers(const Tensor& from, bool floats);

}  // namespace tenon::ops
