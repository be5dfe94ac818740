// The names of the quantizer's choices.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/names.h"
#include "tenon/tools/quantize.h"

namespace tenon::tools {
namespace {

// In the order of the enumerations.
constexpr std::array<std::string_view, 3> modes = {"static", "dynamic", "weight-only"};
constexpr std::array<std::string_view, 2> formats = {"qdq", "qoperator"};
constexpr std::array<std::string_view, 5> ranges = {"minmax", "moving-average", "percentile", "entropy", "mse"};
constexpr std::array<std::string_view, 2> weights = {"round", "gptq"};

template <typename Choice>
Choice chosen(std::string_view name, std::span<const std::string_view> names, const char* what) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<Choice>(found - names.begin());
  const std::string_view nearest = nearest_name(name, names);
  throw Error(
      ErrorCode::invalid_argument, fmt::format("there is no {} '{}'", what, name),
      nearest.empty() ? fmt::format("it may be {}", quoted_list(names)) : fmt::format("did you mean '{}'?", nearest));
}

}  // namespace

std::string_view name_of(QuantizeMode mode) { return modes[static_cast<size_t>(mode)]; }
std::string_view name_of(QuantizeFormat format) { return formats[static_cast<size_t>(format)]; }
std::string_view name_of(RangeMethod method) { return ranges[static_cast<size_t>(method)]; }
std::string_view name_of(WeightMethod method) { return weights[static_cast<size_t>(method)]; }

QuantizeMode quantize_mode(std::string_view name) { return chosen<QuantizeMode>(name, modes, "mode of quantization"); }
QuantizeFormat quantize_format(std::string_view name) { return chosen<QuantizeFormat>(name, formats, "format"); }
RangeMethod range_method(std::string_view name) { return chosen<RangeMethod>(name, ranges, "method for ranges"); }
WeightMethod weight_method(std::string_view name) { return chosen<WeightMethod>(name, weights, "method for weights"); }

ElementType code_type(std::string_view name) {
  constexpr std::array<std::string_view, 8> types = {"uint8", "int8", "uint16", "int16",
                                                     "uint4", "int4", "uint2",  "int2"};
  (void)chosen<size_t>(name, types, "type of codes");
  return *element_type_from_name(name);
}

ElementType float_type(std::string_view name) {
  constexpr std::array<std::string_view, 2> types = {"float32", "float16"};
  (void)chosen<size_t>(name, types, "type of what stays float");
  return *element_type_from_name(name);
}

}  // namespace tenon::tools
