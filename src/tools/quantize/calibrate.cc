#include "tools/quantize/calibrate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "tools/quantize/codes.h"

namespace tenon::tools {
namespace {

bool is_float(const Value& value) { return value.is_tensor() && value.tensor().type() == ElementType::float32; }

int64_t bytes_of(const NamedValues& sample) {
  int64_t bytes = 0;
  for (const auto& [_, value] : sample) bytes += value.is_tensor() ? value.tensor().bytes() : 0;
  return bytes;
}

// Sees what is wanted, once each time it is made. What no step makes, as the result of a Reshape, is seen when it is
// read.
class Observer final : public RunWatcher {
 public:
  Observer(const Wanted& wanted, Calibration& calibration) : wanted_(wanted), calibration_(calibration) {}

  void start(const NamedValues& inputs) {
    seen_.clear();
    for (const auto& [name, value] : inputs) {
      if (is_float(value)) calibration_.inputs[name].add(value.tensor().data<float>());
      see(name, value);
    }
  }

  void before(const WatchedStep& step) override {
    for (const WatchedStep::Operand& operand : step.inputs) {
      if (operand.value && !seen_.contains(operand.name)) see(operand.name, *operand.value);
    }
  }
  void after(const WatchedStep& step) override {
    for (const WatchedStep::Operand& operand : step.outputs) {
      if (operand.value && operand.value->defined()) see(operand.name, *operand.value);
    }
  }

 private:
  void see(std::string_view name, const Value& value) {
    if (!is_float(value) || (value.tensor().elements() > 0 && !value.tensor().raw())) return;
    const bool ranges = wanted_.ranges.contains(name), products = wanted_.products.contains(name);
    const auto channels = wanted_.channels.find(name);
    if (!ranges && !products && channels == wanted_.channels.end()) return;
    seen_.emplace(name);
    if (ranges) see_range(std::string(name), value.tensor());
    if (products) calibration_.products[std::string(name)].add(value.tensor());
    if (channels == wanted_.channels.end()) return;
    ChannelStatistics& statistics = calibration_.channels[std::string(name)];
    statistics.axis = channels->second;
    statistics.add(value.tensor());
  }

  void see_range(const std::string& name, const Tensor& tensor) {
    const auto numbers = tensor.data<float>();
    ObservedTensor& observed = calibration_.tensors[name];
    if (numbers.empty()) return;
    observed.histogram.add(numbers);
    const auto [low, high] = std::ranges::minmax(numbers);
    observed.lows += static_cast<double>(low);
    observed.highs += static_cast<double>(high);
    ++observed.times;
  }

  const Wanted& wanted_;
  Calibration& calibration_;
  std::set<std::string, std::less<>> seen_;  // in this run
};

}  // namespace

void ChannelStatistics::add(const Tensor& tensor) {
  const int at = axis < 0 ? tensor.rank() - 1 : axis;
  if (at >= tensor.rank() || tensor.elements() == 0) return;
  const int64_t channels = tensor.dim(at);
  int64_t inner = 1;
  for (int i = at + 1; i < tensor.rank(); ++i) inner *= tensor.dim(i);
  const int64_t outer = tensor.elements() / channels / inner;
  sums.resize(static_cast<size_t>(channels));
  largest.resize(static_cast<size_t>(channels));
  const float* numbers = tensor.data<float>().data();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      float most = 0;
      for (int64_t i = 0; i < inner; ++i, ++numbers) {
        sum += static_cast<double>(*numbers);
        most = std::max(most, std::abs(*numbers));
      }
      sums[static_cast<size_t>(c)] += sum;
      largest[static_cast<size_t>(c)] = std::max(largest[static_cast<size_t>(c)], static_cast<double>(most));
    }
  }
  count += static_cast<double>(outer * inner);
}

void ChannelProducts::add(const Tensor& tensor) {
  if (tensor.rank() == 0 || tensor.elements() == 0) return;
  const int64_t k = tensor.dim(tensor.rank() - 1), rows = tensor.elements() / k;
  channels = k;
  sums.resize(static_cast<size_t>(k * k));
  const float* x = tensor.data<float>().data();
  std::vector<float> product(sums.size());
  kernels::gemm(*ThreadPool::shared(), k, k, rows, {x, k, true}, {x, k}, product.data(), k);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += product[i];
}

void FewSamples::offer(const NamedValues& sample) {
  constexpr size_t most = 16;
  constexpr int64_t most_bytes = int64_t{64} << 20;
  if (offered_++ % stride_ != 0) return;
  kept_.push_back(sample);
  bytes_ += bytes_of(sample);
  if (kept_.size() < 2 || (kept_.size() <= most && bytes_ <= most_bytes)) return;
  stride_ *= 2;
  size_t left = 1;  // the first stays where it is: moving a map into itself empties it
  for (size_t i = 2; i < kept_.size(); i += 2) kept_[left++] = std::move(kept_[i]);
  kept_.resize(left);
  bytes_ = 0;
  for (const NamedValues& one : kept_) bytes_ += bytes_of(one);
}

Calibration calibrate(const OnnxModel& model, Samples& samples, const Wanted& wanted, const QuantizeOptions& options) {
  Calibration result;
  SessionOptions how = options.session;
  how.level = std::min(how.level, OptimizationLevel::extended);  // beyond that images have other layouts
  const auto& graph = *model.ir().graph;
  std::set<std::string, std::less<>> here;
  for (const ir::Value& value : graph.values()) here.insert(value.name);
  const auto keep = [&](const auto& name) {
    if (here.contains(name))
      how.keep.emplace_back(name);
    else
      how.level = OptimizationLevel::none;  // values of bodies have their names there only
  };
  for (const std::string& name : wanted.ranges) keep(name);
  for (const auto& [name, _] : wanted.channels) keep(name);
  for (const std::string& name : wanted.products) keep(name);
  const Session session = model.open(how);
  Observer observer(wanted, result);
  RunOptions run;
  run.watcher = &observer;
  FewSamples few;
  while (std::optional<NamedValues> sample = samples.next()) {
    observer.start(*sample);
    session.run(*sample, run);
    few.offer(*sample);
    ++result.samples;
    if (options.progress) {
      const int64_t count = samples.count();
      options.progress(fmt::format("calibration, sample {}", result.samples),
                       count > 0 ? static_cast<double>(result.samples) / static_cast<double>(count) : 0);
    }
  }
  if (result.samples == 0) fail(ErrorCode::invalid_argument, "there is no calibration data");
  result.kept = few.take();
  return result;
}

std::map<std::string, Range, std::less<>> ranges_of(const Calibration& calibration, const QuantizeOptions& options) {
  std::map<std::string, Range, std::less<>> ranges;
  for (const auto& [name, observed] : calibration.tensors) {
    const auto given = options.overrides.find(name);
    const bool has_given = given != options.overrides.end();
    const ElementType type = has_given && given->second.type ? *given->second.type : options.activations;
    const bool symmetric =
        has_given && given->second.symmetric ? *given->second.symmetric : options.symmetric_activations;
    if (options.range == RangeMethod::moving_average) {
      const auto times = static_cast<double>(std::max<int64_t>(observed.times, 1));
      ranges[name] = {std::min(0.0, observed.lows / times), std::max(0.0, observed.highs / times)};
      continue;
    }
    const CodeLimits limits = code_limits(type);
    ranges[name] = choose_range(observed.histogram, options.range, options.percentile,
                                static_cast<int>(limits.high - limits.low + 1), symmetric);
  }
  return ranges;
}

}  // namespace tenon::tools
