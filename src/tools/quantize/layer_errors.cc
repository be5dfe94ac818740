#include "tools/quantize/layer_errors.h"

#include "tenon/tools/compare.h"

namespace tenon::tools {

std::map<std::string, double> layer_errors(const OnnxModel& original, const OnnxModel& quantized, const Plan& plan,
                                           const NamedValues& sample) {
  std::map<std::string, std::string> makers;  // by what they make
  CompareOptions options;
  for (const Plan::Entry& entry : plan.entries()) {
    if (entry.role != Role::product || !entry.is_quantized) continue;
    makers[entry.node->output(0)->name] = entry.node->name;
    options.only.push_back(entry.node->output(0)->name);
  }
  std::map<std::string, double> errors;
  if (makers.empty()) return errors;
  options.inputs.values = sample;
  SessionOptions plain;
  plain.level = OptimizationLevel::none;
  const Comparison comparison =
      compare(CompareSide::of(original, plain, "float"), CompareSide::of(quantized, plain, "quantized"), options);
  for (const ComparedTensor& tensor : comparison.tensors) {
    const auto maker = makers.find(tensor.name);
    if (maker != makers.end() && tensor.problem.empty()) errors[maker->second] = tensor.verdict.statistics.sqnr;
  }
  return errors;
}

}  // namespace tenon::tools
