#include "tools/quantize/constant_coder.h"

#include "tools/quantize/graph_writer.h"

namespace tenon::tools {

WeightCoding ConstantCoder::coding_of(const ir::Value& constant, int64_t axis) const {
  TensorOverride given;
  if (const auto found = options_.overrides.find(constant.name); found != options_.overrides.end())
    given = found->second;
  const ElementType type = bits_of(options_.weights) < 8 ? ElementType::int8 : options_.weights;
  return {given.type.value_or(type), given.symmetric.value_or(options_.symmetric_weights), axis, {}};
}

ConstantCoder::Coded& ConstantCoder::code(ir::Value& constant, int64_t axis, const std::vector<double>& least_scales) {
  const auto key = std::pair(&constant, axis);
  if (const auto found = coded_.find(key); found != coded_.end()) return found->second;
  WeightCoding coding = coding_of(constant, axis);
  coding.least_scales = least_scales;
  const CodedWeight coded = code_weight(constant.constant()->tensor, coding);
  ir::Graph& graph = constant.graph();
  const std::string& name = constant.name;
  const Coded values{&graph.add_constant(coded.codes, name + "/codes"),
                     &graph.add_constant(coded.scales, name + "/scale"),
                     coded.zeros ? &graph.add_constant(*coded.zeros, name + "/zero_point") : nullptr, coded.scales};
  return coded_.emplace(key, values).first->second;
}

ir::Value& ConstantCoder::dequantized(ir::Value& constant, Coded& coded, int64_t axis) {
  if (coded.dequantized) return *coded.dequantized;
  const std::string domain = quantize_domain(model_, coded.codes->constant()->tensor.type());
  coded.dequantized = &add_operator(constant.graph(), "DequantizeLinear", domain,
                                    {coded.codes, coded.scale, coded.zeros}, constant.name + "/dequantized");
  if (axis >= 0) coded.dequantized->producer()->set_attribute({"axis", axis});
  return *coded.dequantized;
}

}  // namespace tenon::tools
