#include "tenon/tools/quantize.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/fail.h"
#include "tools/quantize/calibrate.h"
#include "tools/quantize/evaluate.h"
#include "tools/quantize/graph_writer.h"
#include "tools/quantize/prepare.h"
#include "tools/quantize/write_qdq.h"

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

class StaticQuantizer {
 public:
  StaticQuantizer(const OnnxModel& model, const QuantizeOptions& options, const QuantizeData& data,
                  QuantizeReport& report)
      : options_(options),
        data_(data),
        report_(report),
        prepared_(prepare_to_quantize(model, report.warnings)),
        types_(known_types(prepared_.ir())) {
    if (!types_.problem.empty()) report_.warnings.push_back("types are known in part: " + types_.problem);
  }

  void run() {
    calibrate_ranges();
    const OnnxModel quantized = write({});
    const Evaluation evaluation(prepared_, calibration_.kept, options_);
    const Evaluation::Result result = evaluation.of(quantized);
    report_.model = quantized;
    report_.outputs = result.outputs;
    report_.loss = result.loss;
    report_.evaluated = std::ssize(evaluation.samples());
    fill_report();
  }

 private:
  OnnxModel write(const std::set<size_t>& stay_float) const {
    return prepared_.with(write_qdq(prepared_.ir(), types_, options_, calibrated_, stay_float));
  }

  void calibrate_ranges() {
    const std::unique_ptr<ir::Model> copy = prepared_.ir().clone();
    const Plan plan(*copy, types_, options_);
    Wanted wanted;
    for (ir::Value* value : plan.coded()) wanted.ranges.insert(plan.range_source(*value).name);
    if (wanted.ranges.empty()) fail(ErrorCode::unsupported, "the model has nothing that could be quantized");
    calibration_ = calibrate(prepared_, *data_.calibration, wanted, options_);
    report_.samples = calibration_.samples;
    calibrated_.ranges = ranges_of(calibration_, options_);
  }

  void fill_report() {
    const std::unique_ptr<ir::Model> copy = prepared_.ir().clone();
    const Plan plan(*copy, types_, options_);
    for (const Plan::Entry& entry : plan.entries()) {
      if (entry.role != Role::product) continue;
      report_.nodes.push_back(
          {entry.node->describe(), entry.node->op_type, entry.is_quantized, entry.why_float, {}, {}});
    }
    for (const auto& [name, range] : calibrated_.ranges) {
      const CodeMeaning meaning = activation_meaning(name, range, options_);
      const Histogram& histogram = calibration_.tensors.find(name)->second.histogram;
      report_.ranges.push_back({name, histogram.min(), histogram.max(), meaning.low(), meaning.high(),
                                static_cast<double>(meaning.scale), meaning.zero,
                                histogram.share_outside(meaning.low(), meaning.high())});
    }
  }

  const QuantizeOptions& options_;
  const QuantizeData& data_;
  QuantizeReport& report_;
  const OnnxModel prepared_;
  const KnownTypes types_;
  Calibration calibration_;
  Calibrated calibrated_;
};

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
  StaticQuantizer(model, options, data, report).run();
  report.bytes_after = constant_bytes(report.model.ir());
  return report;
}

}  // namespace tenon::tools
