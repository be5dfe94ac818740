#pragma once

#include <memory>
#include <set>

#include "tools/quantize/plan.h"

namespace tenon::tools {

// MatMul and Gemm with constant weights become MatMulInteger of codes whose range is found in every run.
std::unique_ptr<ir::Model> write_dynamic(const ir::Model& prepared, const KnownTypes& types,
                                         const QuantizeOptions& options, const std::set<size_t>& stay_float);

}  // namespace tenon::tools
