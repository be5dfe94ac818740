#pragma once

#include "tools/quantize/constant_coder.h"
#include "tools/quantize/plan.h"

namespace tenon::tools {

// Tables that Gather takes rows of are stored as codes, with a scale for each row: the rows that were taken become
// floats.
void write_embeddings(const Plan& plan, ConstantCoder& coder);

}  // namespace tenon::tools
