#include "tools/quantize/quantizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fail.h"
#include "tools/bisect/smallest_set.h"
#include "tools/float_range.h"
#include "tools/quantize/bias_correction.h"
#include "tools/quantize/calibrate.h"
#include "tools/quantize/division.h"
#include "tools/quantize/evaluate.h"
#include "tools/quantize/float_rest.h"
#include "tools/quantize/layer_errors.h"
#include "tools/quantize/measure.h"
#include "tools/quantize/prepare.h"
#include "tools/quantize/smooth.h"
#include "tools/quantize/write_dynamic.h"
#include "tools/quantize/write_qdq.h"
#include "tools/quantize/write_weight_only.h"

namespace tenon::tools {
namespace {

// Products that compute on codes together, with what is between them: numbers of nodes.
std::vector<std::vector<size_t>> regions_of(const Plan& plan) {
  const auto& entries = plan.entries();
  std::vector<size_t> parent(entries.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::map<const ir::Value*, size_t> makers;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!plan.is_quantized(*entries[i].node)) continue;
    for (const ir::Value* input : entries[i].node->inputs()) {
      const auto maker = makers.find(input);
      if (maker != makers.end()) parent[root(maker->second)] = root(i);
    }
    for (const ir::Value* output : entries[i].node->outputs()) makers[output] = i;
  }
  std::map<size_t, std::vector<size_t>> regions;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (plan.is_quantized(*entries[i].node)) regions[root(i)].push_back(i);
  }
  std::vector<std::vector<size_t>> result;
  for (auto& [_, region] : regions) result.push_back(std::move(region));
  return result;
}

class Quantizer {
 public:
  Quantizer(const OnnxModel& model, const QuantizeOptions& options, const QuantizeData& data, QuantizeReport& report)
      : options_(options),
        data_(data),
        report_(report),
        prepared_(prepare_to_quantize(model, report.warnings)),
        types_(known_types(prepared_.ir())) {
    if (!types_.problem.empty()) report_.warnings.push_back("types are known in part: " + types_.problem);
  }

  void run() {
    smooth();
    calibrate_activations();
    const Evaluation evaluation(prepared_, evaluation_samples(), options_);
    report_.evaluated = std::ssize(evaluation.samples());
    if (options_.bias_correction) correct_biases();
    if (options_.float_type == ElementType::float16) compute_rest_in_half(evaluation);
    if (options_.measure && options_.mode != QuantizeMode::weight_only)
      leave_out_what_does_not_pay(evaluation.samples().front());
    hold_budget(evaluation);
    finish(evaluation);
  }

 private:
  OnnxModel write(const std::set<size_t>& stay_float) const {
    const ir::Model& model = prepared_.ir();
    switch (options_.mode) {
      case QuantizeMode::dynamic:
        return prepared_.with(write_dynamic(model, types_, options_, stay_float));
      case QuantizeMode::weight_only:
        return prepared_.with(write_weight_only(model, types_, options_, calibration_, stay_float, blocks_));
      case QuantizeMode::static_:
        break;
    }
    OnnxModel quantized = prepared_.with(write_qdq(model, types_, options_, calibrated_, stay_float));
    if (report_.float_type == ElementType::float32) return quantized;
    const Planned all(prepared_, types_, options_, stay_float);
    std::vector<std::string> on_codes;
    for (const Plan::Entry& entry : all.plan.entries()) {
      if (all.plan.is_quantized(*entry.node)) on_codes.push_back(entry.node->name);
    }
    return rest_in_half(quantized, std::move(on_codes), magnitudes_);
  }

  // A plan of a copy, which lives as long.
  struct Planned {
    std::unique_ptr<ir::Model> model;
    Plan plan;
    Planned(const OnnxModel& prepared, const KnownTypes& types, const QuantizeOptions& options,
            const std::set<size_t>& stay_float)
        : model(prepared.ir().clone()), plan(*model, types, options, stay_float) {}
  };
  Planned planned() const { return Planned(prepared_, types_, options_, stay_float_); }

  void say(const std::string& what, double done = 0) const {
    if (options_.progress) options_.progress(what, done);
  }

  void rewind(const char* why) {
    if (!data_.calibration->rewind())
      throw Error(ErrorCode::invalid_argument, fmt::format("{} goes through the calibration data twice", why),
                  "give a list, or something that can be gone through again, instead of a generator");
  }

  void smooth() {
    if (!options_.smooth) return;
    const Planned all = planned();
    const Calibration calibration = calibrate(prepared_, *data_.calibration, channels_to_smooth(all.plan), options_);
    rewind("SmoothQuant");
    prepared_ = prepared_.with(smoothed(prepared_.ir(), types_, options_, calibration.channels));
    types_ = known_types(prepared_.ir());
  }

  void calibrate_activations() {
    const Planned all = planned();
    const auto is_quantized = [](const Plan::Entry& entry) { return entry.is_quantized; };
    if (std::ranges::none_of(all.plan.entries(), is_quantized))
      fail(ErrorCode::unsupported, "the model has nothing that could be quantized so");
    Wanted wanted;
    for (ir::Value* value : all.plan.coded()) wanted.ranges.insert({value->name, all.plan.range_source(*value).name});
    const bool is_static = options_.mode == QuantizeMode::static_;
    if (is_static) wanted.channels = channels_to_correct(all.plan);
    if (options_.weight_method == WeightMethod::gptq) {
      for (const Plan::Entry& entry : all.plan.entries()) {
        if (entry.is_quantized && entry.role == Role::product && entry.node->op_type != "Conv")
          wanted.products.insert(entry.activation->name);
      }
    }
    calibration_ = calibrate(prepared_, *data_.calibration, wanted, options_);
    report_.samples = calibration_.samples;
    if (!is_static) return;
    calibrated_.ranges = ranges_of(calibration_, options_);
    // Where a move is not seen itself, what it moves is.
    for (ir::Value* value : all.plan.coded()) {
      const std::string& source = all.plan.range_source(*value).name;
      if (!calibrated_.ranges.contains(source)) fail(ErrorCode::internal, "no step read or made '{}'", source);
      calibrated_.ranges.emplace(value->name, calibrated_.ranges.find(source)->second);
    }
    if (data_.calibration->is_random()) return;
    for (const auto& [name, observed] : calibration_.tensors) {
      if (observed.histogram.count() > 0 && observed.histogram.min() == observed.histogram.max())
        report_.warnings.push_back(
            fmt::format("'{}' was {} in all of the calibration data", name, observed.histogram.min()));
    }
  }

  std::vector<NamedValues> evaluation_samples() {
    if (!data_.evaluation) return calibration_.kept;
    FewSamples few;
    std::map<std::string, Histogram, std::less<>> inputs;
    while (std::optional<NamedValues> sample = data_.evaluation->next()) {
      few.offer(*sample);
      for (const auto& [name, value] : *sample) {
        if (value.is_tensor() && value.tensor().type() == ElementType::float32)
          inputs[name].add(value.tensor().data<float>());
      }
    }
    std::vector<NamedValues> samples = few.take();
    if (samples.empty()) fail(ErrorCode::invalid_argument, "there is no evaluation data");
    for (const auto& [name, histogram] : inputs) warn_if_unlike(name, histogram);
    return samples;
  }

  // Inputs of another size or place than those of the calibration are quantized with the wrong ranges.
  void warn_if_unlike(const std::string& name, const Histogram& evaluated) {
    const Histogram& calibrated = calibration_.inputs[name];
    const double outside = evaluated.share_outside(calibrated.min(), calibrated.max());
    const double spread = std::max(calibrated.deviation(), 1e-12);
    const double moved = std::abs(evaluated.mean() - calibrated.mean()) / spread;
    const double wider = evaluated.deviation() / spread;
    if (outside < 0.01 && moved < 0.5 && wider < 2 && wider > 0.5) return;
    report_.warnings.push_back(fmt::format(
        "the calibration data looks unlike the evaluation data: '{}' has mean {:.4g} and deviation {:.4g}, {:.4g} and "
        "{:.4g} there; {:.1f} % of its numbers were never seen in calibration",
        name, calibrated.mean(), calibrated.deviation(), evaluated.mean(), evaluated.deviation(), 100 * outside));
  }

  void correct_biases() {
    const Planned all = planned();
    calibrated_.bias_shifts = bias_shifts(all.plan, options_, calibration_.channels);
  }

  void compute_rest_in_half(const Evaluation& evaluation) {
    magnitudes_ = largest_magnitudes(prepared_, evaluation.samples().front());
    report_.float_type = ElementType::float16;
  }

  // All of the model in the type in which what stays float computes.
  OnnxModel in_float() const {
    if (report_.float_type == ElementType::float32) return prepared_;
    return rest_in_half(prepared_, {}, magnitudes_);
  }

  // Where products stay float to hold the budget, they may as well compute in float16 if this machine is faster so and
  // all of the model in float16 holds it.
  void choose_float_type(const Evaluation& evaluation) {
    constexpr double least_gain = 1.1;
    if (options_.float_type || !options_.measure || options_.mode != QuantizeMode::static_) return;
    say("times in float16");
    compute_rest_in_half(evaluation);
    const OnnxModel half = in_float();
    const MeasuredPair times = measure_pair(prepared_, half, evaluation.samples().front(), options_.session);
    const bool pays = times.run_after * least_gain < times.run_before;
    if (pays && loss_of(half, evaluation) <= *options_.loss.most)
      return leave_out_what_does_not_pay(evaluation.samples().front());
    report_.float_type = ElementType::float32;
  }

  void leave_out_what_does_not_pay(const NamedValues& inputs) {
    say("times");
    const OnnxModel quantized = write(stay_float_);
    times_ = measure_pair(in_float(), quantized, inputs, options_.session);
    const Planned all = planned();
    for (const std::vector<size_t>& region : regions_of(all.plan)) {
      double before = 0, after = 0;
      for (size_t number : region) {
        before += before_seconds(*all.plan.entries()[number].node);
        after += after_seconds(*all.plan.entries()[number].node);
      }
      if (after <= before || before == 0) continue;
      for (size_t number : region) {
        if (all.plan.entries()[number].role != Role::product) continue;
        stay_float_.insert(number);
        reasons_[number] =
            fmt::format("slower in integers here: {:.3f} ms, {:.3f} in {}", 1e3 * after, 1e3 * before, float_name());
      }
    }
  }

  std::string_view float_name() const {
    return report_.float_type == ElementType::float32 ? "float" : name_of(report_.float_type);
  }

  static double seconds(const NodeSeconds& times, const std::string& name) {
    const auto found = times.find(name);
    return found == times.end() ? 0 : found->second;
  }
  double before_seconds(const ir::Node& node) const { return seconds(times_.before, node.name); }
  // With what makes codes of its inputs, and numbers of codes.
  double after_seconds(const ir::Node& node) const {
    double sum = seconds(times_.after, node.name);
    for (const ir::Value* input : node.inputs()) {
      if (input) sum += seconds(times_.after, input->name + "/codes");
    }
    return sum + seconds(times_.after, node.output(0)->name + "/dequantized");
  }

  double loss_of(const OnnxModel& model, const Evaluation& evaluation) const {
    if (!options_.loss.metric) return evaluation.of(model).loss;
    const double metric = options_.loss.metric(model);
    return (*report_.metric_before - metric) / std::max(std::abs(*report_.metric_before), 1e-30);
  }

  void hold_budget(const Evaluation& evaluation) {
    if (options_.loss.metric) report_.metric_before = options_.loss.metric(prepared_);
    if (!options_.loss.most) return;
    const double most = *options_.loss.most;
    double loss = loss_of(write(stay_float_), evaluation);
    if (loss <= most) return;
    if (!options_.bias_correction && options_.mode == QuantizeMode::static_) {
      correct_biases();
      const double corrected = loss_of(write(stay_float_), evaluation);
      if (corrected <= most) {
        report_.warnings.emplace_back("biases were corrected to hold the budget");
        return;
      }
      if (corrected >= loss) calibrated_.bias_shifts.clear();
      loss = std::min(loss, corrected);
    }
    choose_float_type(evaluation);
    const std::vector<size_t> candidates = by_price(evaluation);
    store_codes_that_fit(candidates, evaluation);
    const auto with = [&](const std::vector<size_t>& chosen) {
      std::set<size_t> all = stay_float_;
      for (size_t i : chosen) all.insert(candidates[i]);
      return all;
    };
    double tried = 0;
    const std::vector<size_t> chosen = smallest_set(candidates.size(), [&](const std::vector<size_t>& set) {
      say(fmt::format("budget, {} of {} products in float", set.size(), candidates.size()), 1 - 1 / (1 + tried++ / 20));
      return loss_of(write(with(set)), evaluation) <= most;
    });
    std::set<size_t> floats = with(chosen);
    if (options_.measure) floats = fastest({std::move(floats), divided(evaluation), with_all(candidates)}, evaluation);
    for (size_t number : candidates) {
      if (!floats.contains(number)) continue;
      reasons_[number] =
          fmt::format("to hold the budget: quantized alone, it leaves {:.1f} dB{}", decibels(alone_[number]),
                      calibrated_.has_codes_in_float(number) ? "; its weights are stored as codes" : "");
    }
    stay_float_ = std::move(floats);
    if (options_.measure) leave_out_islands_that_do_not_pay(evaluation);
  }

  std::set<size_t> with_all(const std::vector<size_t>& candidates) const {
    std::set<size_t> all = stay_float_;
    all.insert(candidates.begin(), candidates.end());
    return all;
  }

  // What stays float where changing between codes and floats is counted too: the fewest seconds for the least price of
  // errors that holds the budget. Everything, if nothing else was found.
  std::set<size_t> divided(const Evaluation& evaluation) {
    constexpr int steps = 14;
    constexpr double widest =
        1e4;  // from the prices that are tried to one at which the budget is worth all that is saved
    const Planned all = planned();
    double saved = 0;
    for (const auto& [number, _] : alone_) {
      const ir::Node& node = *all.plan.entries()[number].node;
      saved += std::max(before_seconds(node) - after_seconds(node), 0.0);
    }
    const auto costs = [&](size_t number) {
      const ir::Node& node = *all.plan.entries()[number].node;
      const auto loss = alone_.find(number);
      return NodeCosts{before_seconds(node), after_seconds(node), loss == alone_.end() ? 0 : loss->second};
    };
    const double per_code = seconds_per_code(all.plan);
    const auto floats_at = [&](double price) {
      std::set<size_t> floats =
          cheapest_floats(all.plan, costs, price, per_code, [&](const ir::Value& value) { return elements_of(value); });
      floats.insert(stay_float_.begin(), stay_float_.end());
      return floats;
    };
    const double middle = saved / *options_.loss.most;
    double low = middle / widest, high = middle * widest;
    std::set<size_t> best = floats_at(high);
    for (int step = 0; step < steps; ++step) {
      say("budget, with the time that codes take", static_cast<double>(step) / steps);
      const double price = std::sqrt(low * high);
      std::set<size_t> floats = floats_at(price);
      const bool holds = loss_of(write(floats), evaluation) <= *options_.loss.most;
      (holds ? high : low) = price;
      if (holds) best = std::move(floats);
    }
    return best;
  }

  // What making a code takes in the model that is quantized throughout; its layout is changed in about the same time.
  double seconds_per_code(const Plan& plan) const {
    constexpr double with_layout = 2;
    double seconds_of_codes = 0, elements = 0;
    for (const ir::Value* value : plan.coded()) {
      const double taken = seconds(times_.after, value->name + "/codes");
      seconds_of_codes += taken;
      if (taken > 0) elements += static_cast<double>(elements_of(*value));
    }
    return elements > 0 ? with_layout * seconds_of_codes / elements : 0;
  }

  // With 1 for sizes that are not known.
  int64_t elements_of(const ir::Value& value) const {
    const auto type = types_.types.find(value.name);
    if (type == types_.types.end() || !type->second.shape) return 0;
    return element_count(*type->second.shape).evaluate([](const std::string&) { return 1; }).value_or(0);
  }

  // Of several sets that stay float.
  std::set<size_t> fastest(std::vector<std::set<size_t>> sets, const Evaluation& evaluation) const {
    std::set<size_t> best = std::move(sets.front());
    for (auto set = sets.begin() + 1; set != sets.end(); ++set) {
      if (*set == best) continue;
      const OnnxModel model = write(*set);
      if (loss_of(model, evaluation) > *options_.loss.most) continue;
      const MeasuredPair times = measure_pair(write(best), model, evaluation.samples().front(), options_.session);
      if (times.run_after < times.run_before) best = std::move(*set);
    }
    return best;
  }

  // Between products in float, making codes of numbers and numbers of codes may take longer than integers save. Errors
  // may have made up for each other, so that the budget is looked at again.
  void leave_out_islands_that_do_not_pay(const Evaluation& evaluation) {
    constexpr double least_gain = 1.005;
    const Planned all = planned();
    const std::vector<std::vector<size_t>> regions = regions_of(all.plan);
    double done = 0;
    for (const std::vector<size_t>& region : regions) {
      say("times of what is quantized between floats", done++ / static_cast<double>(regions.size()));
      std::set<size_t> without = stay_float_;
      for (size_t number : region) {
        if (all.plan.entries()[number].role == Role::product) without.insert(number);
      }
      const OnnxModel model = write(without);
      const MeasuredPair times =
          measure_pair(model, write(stay_float_), evaluation.samples().front(), options_.session);
      if (times.run_after * least_gain < times.run_before || loss_of(model, evaluation) > *options_.loss.most) continue;
      for (size_t number : without) {
        if (!stay_float_.contains(number))
          reasons_[number] =
              fmt::format("with what makes codes and numbers around it, it is not faster than {}", float_name());
      }
      stay_float_ = std::move(without);
    }
  }

  // Weights of what computes in float can be codes all the same: that costs less of the budget, no time, and keeps the
  // file small. Where it costs too much, some are floats, so that enough of the budget is left for integers.
  void store_codes_that_fit(std::vector<size_t> products, const Evaluation& evaluation) {
    // Weights in float16 take half of the bytes already.
    const double share_for_codes = report_.float_type == ElementType::float16 ? 0.15 : 0.5;
    if (options_.mode != QuantizeMode::static_) return;
    products.insert(products.end(), stay_float_.begin(), stay_float_.end());
    const std::set<size_t> all_in_float(products.begin(), products.end());
    const auto holds = [&] {
      return loss_of(write(all_in_float), evaluation) <= share_for_codes * *options_.loss.most;
    };
    calibrated_.float_products_have_codes = true;
    if (holds()) return;
    const auto leave_float = [&](const std::vector<size_t>& set) {
      calibrated_.float_weights.clear();
      for (size_t i : set) calibrated_.float_weights.insert(products[i]);
    };
    leave_float(smallest_set(products.size(), [&](const std::vector<size_t>& set) {
      say(fmt::format("budget, weights of {} of {} products in float", set.size(), products.size()));
      leave_float(set);
      return holds();
    }));
  }

  // The products that are quantized; first those that cost much of the budget and save little time.
  std::vector<size_t> by_price(const Evaluation& evaluation) {
    const Planned all = planned();
    std::set<size_t> products;
    for (size_t i = 0; i < all.plan.entries().size(); ++i) {
      const Plan::Entry& entry = all.plan.entries()[i];
      if (is_unit(entry.role) && entry.is_quantized) products.insert(i);
    }
    std::vector<std::pair<double, size_t>> prices;
    for (size_t number : products) {
      say("what each product costs of the budget",
          static_cast<double>(prices.size()) / static_cast<double>(products.size()));
      std::set<size_t> others = products;
      others.insert(stay_float_.begin(), stay_float_.end());
      others.erase(number);
      alone_[number] = evaluation.of(write(others)).loss;
      const ir::Node& node = *all.plan.entries()[number].node;
      const double saved = std::max(before_seconds(node) - after_seconds(node), 1e-6);
      prices.emplace_back(-alone_[number] / saved, number);
    }
    std::ranges::sort(prices);
    std::vector<size_t> order;
    for (const auto& [_, number] : prices) order.push_back(number);
    return order;
  }

  void finish(const Evaluation& evaluation) {
    report_.model = write(stay_float_);
    say("comparing");
    const Evaluation::Result result = evaluation.of(report_.model);
    report_.outputs = result.outputs;
    report_.loss = result.loss;
    if (report_.metric_before) {
      report_.metric_after = options_.loss.metric(report_.model);
      report_.loss =
          (*report_.metric_before - *report_.metric_after) / std::max(std::abs(*report_.metric_before), 1e-30);
    }
    for (const std::string& output : result.not_compared)
      report_.warnings.push_back(fmt::format("output '{}' has another size and was not compared", output));
    if (options_.measure) take_times(evaluation.samples().front());
    describe_nodes(evaluation.samples().front());
    describe_ranges();
  }

  void take_times(const NamedValues& inputs) {
    const MeasuredPair times = measure_pair(prepared_, report_.model, inputs, options_.session);
    report_.seconds_before = times.run_before;
    report_.seconds_after = times.run_after;
    if (times.run_after > times.run_before)
      report_.warnings.push_back(
          fmt::format("the quantized model is not faster on this machine: {:.3f} ms, {:.3f} in float",
                      1e3 * times.run_after, 1e3 * times.run_before));
  }

  void describe_nodes(const NamedValues& sample) {
    const Planned all = planned();
    const std::map<std::string, double> errors = layer_errors(prepared_, report_.model, all.plan, sample);
    for (size_t i = 0; i < all.plan.entries().size(); ++i) {
      const Plan::Entry& entry = all.plan.entries()[i];
      if (!is_unit(entry.role)) continue;
      QuantizedNodeReport node{
          entry.node->describe(), entry.node->op_type, entry.is_quantized, entry.why_float, {}, {}};
      if (const auto reason = reasons_.find(i); reason != reasons_.end()) node.why_float = reason->second;
      if (const auto alone = alone_.find(i); alone != alone_.end()) node.sqnr = decibels(alone->second);
      if (const auto error = errors.find(entry.node->name); error != errors.end()) node.own_sqnr = error->second;
      report_.nodes.push_back(std::move(node));
    }
  }

  void describe_ranges() {
    const Planned all = planned();
    std::set<std::string> used;
    for (ir::Value* value : all.plan.coded()) used.insert(all.plan.range_source(*value).name);
    for (const std::string& name : used) {
      const CodeMeaning meaning = activation_meaning(name, calibrated_.ranges.find(name)->second, options_);
      const Histogram& histogram = calibration_.tensors[name].histogram;
      report_.ranges.push_back({name, histogram.min(), histogram.max(), meaning.low(), meaning.high(),
                                static_cast<double>(meaning.scale), meaning.zero,
                                histogram.share_outside(meaning.low(), meaning.high())});
    }
  }

  const QuantizeOptions& options_;
  const QuantizeData& data_;
  QuantizeReport& report_;
  OnnxModel prepared_;
  KnownTypes types_;
  Calibration calibration_;
  Calibrated calibrated_;
  std::map<std::string, double> magnitudes_;  // of values, where what stays float computes in float16
  MeasuredPair times_;
  mutable BlockCache blocks_;
  std::set<size_t> stay_float_;            // numbers of nodes
  std::map<size_t, std::string> reasons_;  // for that
  std::map<size_t, double> alone_;         // the loss when a product alone is quantized
};

}  // namespace

void fill_report(const OnnxModel& model, const QuantizeOptions& options, const QuantizeData& data,
                 QuantizeReport& report) {
  Quantizer(model, options, data, report).run();
}

}  // namespace tenon::tools
