#include "tenon/tools/quantize.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/fail.h"
#include "tools/quantize/graph_writer.h"
#include "tools/quantize/plan.h"
#include "tools/quantize/quantizer.h"

namespace tenon::tools {
namespace {

void require_opset(const OnnxModel& model, const QuantizeOptions& options) {
  const int64_t opset = model.ir().opset_imports.version("");
  const bool is_dynamic = options.mode == QuantizeMode::dynamic;
  const int64_t least = is_dynamic ? 11 : 10;
  if (opset < least) {
    throw Error(ErrorCode::unsupported,
                fmt::format("opset {} has no {}", opset, is_dynamic ? "DynamicQuantizeLinear" : "QuantizeLinear"),
                "convert the model first: tenon convert --opset 13");
  }
  if (options.per_channel && !is_dynamic && opset < 13) {
    throw Error(ErrorCode::unsupported, fmt::format("opset {} has no scales for single channels", opset),
                "convert the model first: tenon convert --opset 13; or quantize it --per-tensor");
  }
}

// What the options say must fit together.
void require_sense(const QuantizeOptions& options) {
  const auto require = [](bool holds, const char* what, const char* hint) {
    if (!holds) throw Error(ErrorCode::invalid_argument, what, hint);
  };
  const bool is_static = options.mode == QuantizeMode::static_;
  require(bits_of(options.activations) >= 8, "activations need 8 or 16 bits", "");
  require(bits_of(options.weights) == 8 || options.mode == QuantizeMode::weight_only,
          "weights of less than 8 bits are for weight-only quantization", "--mode weight-only");
  require(is_static || !options.smooth, "SmoothQuant is for static quantization", "");
  require(is_static || !options.bias_correction, "biases are corrected in static quantization", "");
  require(is_static || options.float_type.value_or(ElementType::float32) == ElementType::float32,
          "what stays float is float16 in static quantization alone",
          "convert the model first: tenon convert --dtype fp16");
  require(options.weight_method == WeightMethod::round || options.mode == QuantizeMode::weight_only,
          "GPTQ is for weight-only quantization", "--mode weight-only");
  require(options.percentile > 50 && options.percentile <= 100, "a percentile is above 50 and at most 100", "");
  require(options.block_size >= 0, "a block has at least one weight", "");
}

// Ranges of random numbers are not those of data, but times are.
QuantizeReport quantize_with_random_data(const OnnxModel& model, const QuantizeOptions& options,
                                         const QuantizeData& data) {
  constexpr int64_t count = 8;
  const Session session = model.open(options.session);
  const std::unique_ptr<Samples> random = random_samples(session, data.random, count);
  QuantizeReport report = quantize(model, options, {random.get(), data.evaluation, data.random});
  report.warnings.insert(report.warnings.begin(),
                         options.mode == QuantizeMode::static_
                             ? "CALIBRATED WITH RANDOM NUMBERS: the ranges of activations mean nothing. Give "
                               "calibration data before you use this model"
                             : "the models were compared on random inputs: give data to know what is lost");
  return report;
}

}  // namespace

int64_t QuantizeReport::quantized_nodes() const {
  return std::ranges::count_if(nodes, [](const QuantizedNodeReport& node) { return node.is_quantized; });
}

QuantizeReport quantize(const OnnxModel& model, const QuantizeOptions& options, const QuantizeData& data) {
  if (!data.calibration) return quantize_with_random_data(model, options, data);
  QuantizeReport report{model};
  require_sense(options);
  require_opset(model, options);
  for (const auto* list : {&options.only, &options.keep}) require_nodes(model.ir(), *list);
  report.bytes_before = constant_bytes(model.ir());
  fill_report(model, options, data, report);
  report.bytes_after = constant_bytes(report.model.ir());
  return report;
}

}  // namespace tenon::tools
