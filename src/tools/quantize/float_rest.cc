#include "tools/quantize/float_rest.h"

#include <algorithm>

#include "ir/graph.h"
#include "tenon/tools/convert_dtype.h"

namespace tenon::tools {

OnnxModel rest_in_half(const OnnxModel& quantized, std::vector<std::string> on_codes,
                       const std::map<std::string, double>& magnitudes) {
  DtypeOptions options;
  options.keep_io = true;
  options.check_overflow = false;
  options.compare = false;
  options.magnitudes = magnitudes;
  options.keep = std::move(on_codes);
  for (const char* op : {"QuantizeLinear", "DequantizeLinear"}) {
    const auto is_one = [&](const ir::Node& node) { return node.op_type == op; };
    if (std::ranges::any_of(quantized.ir().graph->nodes(), is_one)) options.keep.emplace_back(op);
  }
  return convert_dtype(quantized, options).model;
}

}  // namespace tenon::tools
