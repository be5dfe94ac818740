#pragma once

#include "ir/graph.h"

namespace tenon::tools {

// Makes operators on codes of what stands between DequantizeLinear and QuantizeLinear: QLinearConv, QLinearMatMul, and
// those of com.microsoft. What has no such operator stays as it is.
void write_qoperators(ir::Model& model);

}  // namespace tenon::tools
