// Constants of a graph as codes of 8 bits or more, each made once.
#pragma once

#include <map>
#include <vector>

#include "ir/graph.h"
#include "tools/quantize/codes.h"

namespace tenon::tools {

class ConstantCoder {
 public:
  ConstantCoder(ir::Model& model, const QuantizeOptions& options) : model_(model), options_(options) {}

  struct Coded {
    ir::Value *codes, *scale, *zeros;  // zeros: null where all are 0
    Tensor scales;
    ir::Value* dequantized = nullptr;
  };
  // `axis` and `least_scales` as WeightCoding has them.
  Coded& code(ir::Value& constant, int64_t axis, const std::vector<double>& least_scales = {});
  // What DequantizeLinear makes of its codes.
  ir::Value& dequantized(ir::Value& constant, Coded& coded, int64_t axis);
  // All that were coded, by constant and axis.
  std::map<std::pair<ir::Value*, int64_t>, Coded>& all() { return coded_; }

 private:
  WeightCoding coding_of(const ir::Value& constant, int64_t axis) const;

  ir::Model& model_;
  const QuantizeOptions& options_;
  std::map<std::pair<ir::Value*, int64_t>, Coded> coded_;
};

}  // namespace tenon::tools
