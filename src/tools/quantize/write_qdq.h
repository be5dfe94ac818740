#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/quantize/codes.h"
#include "tools/quantize/plan.h"

namespace tenon::tools {

// What calibration found, and what follows from it.
struct Calibrated {
  std::map<std::string, Range, std::less<>> ranges;  // of activations
  // What is added to the bias of products, by number.
  std::map<size_t, std::vector<double>> bias_shifts;
  // Whether products that stay float have their weights stored as codes all the same.
  bool float_products_have_codes = false;
  std::set<size_t> float_weights;  // of products, by number, that have no codes then

  bool has_codes_in_float(size_t number) const { return float_products_have_codes && !float_weights.contains(number); }
};

// The codes of an activation.
CodeMeaning activation_meaning(const std::string& name, const Range& range, const QuantizeOptions& options);

// A model with QuantizeLinear and DequantizeLinear around what computes on codes, or operators on codes in their place.
// `stay_float` as Plan has it.
std::unique_ptr<ir::Model> write_qdq(const ir::Model& prepared, const KnownTypes& types, const QuantizeOptions& options,
                                     const Calibrated& calibrated, const std::set<size_t>& stay_float);

}  // namespace tenon::tools
