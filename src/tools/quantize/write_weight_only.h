#pragma once

#include <memory>
#include <set>

#include "tools/quantize/blocks.h"
#include "tools/quantize/calibrate.h"
#include "tools/quantize/plan.h"

namespace tenon::tools {

// Codes that were worked out before, by the constant's name and whether it was transposed: GPTQ takes its time.
using BlockCache = std::map<std::pair<std::string, bool>, std::optional<BlockedCodes>>;

// Weights as codes that become floats where they are used: DequantizeLinear, or MatMulNBits.
std::unique_ptr<ir::Model> write_weight_only(const ir::Model& prepared, const KnownTypes& types,
                                             const QuantizeOptions& options, const Calibration& calibration,
                                             const std::set<size_t>& stay_float, BlockCache& cache);

}  // namespace tenon::tools
