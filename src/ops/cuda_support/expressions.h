// What elementwise operators compute for one element, as text for kernels.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tenon::ops {

// The result of the operator for operands and parameters that are names or numbers. Names are those of ai.onnx,
// TanhGelu, and HalfGelu, which is Gelu for results that are rounded to half precision. `type` is the name of the
// operands' type. Empty: there is no such operator.
std::string expression_text(std::string_view op, std::string_view type, std::span<const std::string> operands,
                            std::span<const std::string> parameters = {});

}  // namespace tenon::ops
