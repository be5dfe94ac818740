#include "tenon/tools/quantize.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/fail.h"
#include "tools/quantize/graph_writer.h"
#include "tools/quantize/plan.h"
#include "tools/quantize/static_quantizer.h"

namespace tenon::tools {
namespace {

void require_opset(const OnnxModel& model, const QuantizeOptions& options) {
  const int64_t opset = model.ir().opset_imports.version("");
  const auto require = [&](int64_t least, const char* what) {
    if (opset >= least) return;
    throw Error(ErrorCode::unsupported, fmt::format("opset {} has no {}", opset, what),
                fmt::format("convert the model first: tenon convert --opset {}", least));
  };
  require(10, "QuantizeLinear");
  if (options.per_channel && opset < 13) {
    throw Error(ErrorCode::unsupported, fmt::format("opset {} has no scales for single channels", opset),
                "convert the model first: tenon convert --opset 13; or --per-tensor");
  }
}

// Ranges of random numbers are not those of data, but times are.
QuantizeReport quantize_with_random_data(const OnnxModel& model, const QuantizeOptions& options,
                                         const QuantizeData& data) {
  constexpr int64_t count = 8;
  const Session session = model.open(options.session);
  const std::unique_ptr<Samples> random = random_samples(session, data.random, count);
  QuantizeReport report = quantize(model, options, {random.get(), data.evaluation, data.random});
  report.warnings.insert(report.warnings.begin(),
                         "CALIBRATED WITH RANDOM NUMBERS: the ranges of activations mean nothing. Give calibration "
                         "data before you use this model");
  return report;
}

}  // namespace

int64_t QuantizeReport::quantized_nodes() const {
  return std::ranges::count_if(nodes, [](const QuantizedNodeReport& node) { return node.is_quantized; });
}

QuantizeReport quantize(const OnnxModel& model, const QuantizeOptions& options, const QuantizeData& data) {
  if (!data.calibration && options.mode == QuantizeMode::static_) return quantize_with_random_data(model, options, data);
  QuantizeReport report{model};
  require_opset(model, options);
  for (const auto* list : {&options.only, &options.keep}) require_nodes(model.ir(), *list);
  report.bytes_before = constant_bytes(model.ir());
  quantize_static(model, options, data, report);
  report.bytes_after = constant_bytes(report.model.ir());
  return report;
}

}  // namespace tenon::tools
