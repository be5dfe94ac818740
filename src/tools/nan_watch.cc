#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "tenon/tools/watch.h"
#include "tensor/element_value.h"
#include "tools/watched_model.h"

namespace tenon::tools {
namespace {

constexpr int64_t shown_elements = 8;

// Their bodies are watched instead: what these read and write passes through.
constexpr std::string_view operators_with_bodies[] = {"If", "Loop", "Scan", "SequenceMap"};

// Calls see(const Tensor&) for the tensors in a value.
template <typename See>
void for_each_tensor(const Value& value, See&& see) {
  if (value.is_tensor()) see(value.tensor());
  if (value.is_sequence()) {
    for (const Value& item : value.sequence().items) for_each_tensor(item, see);
  }
  if (value.is_optional() && value.optional().item) for_each_tensor(*value.optional().item, see);
  if (value.is_map()) see(value.map().values);
  if (value.is_sparse()) see(value.sparse().values);
}

bool is_hollow(const Tensor& tensor) { return tensor.elements() > 0 && !tensor.raw(); }

// Of several tensors only the counts are kept.
void add(TensorStats& sum, const TensorStats& stats) {
  if (sum.elements == 0) {
    sum = stats;
    return;
  }
  sum.elements += stats.elements;
  sum.nans += stats.nans;
  sum.infinities += stats.infinities;
  sum.zeros += stats.zeros;
  sum.finite_numbers = 0;
}

std::string count_text(const TensorStats& stats) {
  if (stats.infinities == 0) return fmt::format("{} NaN", stats.nans);
  if (stats.nans == 0) return fmt::format("{} infinite", stats.infinities);
  return fmt::format("{} NaN and {} infinite", stats.nans, stats.infinities);
}

}  // namespace

std::string to_text(const ValueSummary& value) {
  std::string text = fmt::format("{}: {}", value.name, value.value);
  if (!value.origin.empty()) text += ", " + value.origin;
  if (!value.is_seen) return text + "; its kernel holds it rearranged, so it was not looked at";
  if (const std::string stats = to_text(value.stats); !stats.empty()) text += "\n    " + stats;
  if (!value.first.empty()) {
    const bool all = static_cast<int64_t>(value.first.size()) == value.stats.elements;
    text += fmt::format("\n    [{}{}]", fmt::join(value.first, ", "), all ? "" : ", …");
  }
  return text;
}

std::string to_text(const NanFinding& finding) {
  TensorStats made;
  for (const ValueSummary& output : finding.outputs) add(made, output.stats);
  std::string text = fmt::format("{} makes {} of {} numbers", finding.node, count_text(made), made.elements);
  if (finding.node.find(finding.op_type) == std::string::npos) text += fmt::format(", run as {}", finding.op_type);
  if (!finding.attributes.empty()) text += "\n  attributes " + finding.attributes;
  for (const ValueSummary& input : finding.inputs) text += "\n  input " + to_text(input);
  for (const ValueSummary& output : finding.outputs) text += "\n  output " + to_text(output);
  return text;
}

class NanWatch::State {
 public:
  State(const Session& session, const OnnxModel* model, const NanWatchOptions& options)
      : model_(session, model), options_(options) {}

  void before(const WatchedStep& step) {
    std::vector<ValueSummary>& inputs = under_way_.emplace_back();
    for (const WatchedStep::Operand& operand : step.inputs) {
      if (!operand.value) continue;
      inputs.push_back(summary_of(operand));
      if (!inputs.back().stats.finite()) note_source(inputs.back());
    }
  }

  void after(const WatchedStep& step) {
    const std::vector<ValueSummary> inputs = std::move(under_way_.back());
    under_way_.pop_back();
    for (const WatchedStep::Operand& operand : step.outputs)
      makers_.insert_or_assign(std::string(operand.name), step.node);
    if (std::ranges::find(operators_with_bodies, step.op_type) != std::end(operators_with_bodies)) return;
    if (!makes_bad_numbers(inputs, step.outputs)) return;
    finding = NanFinding{step.node, std::string(step.op_type), model_.attributes_of(step.node), inputs, {}};
    for (const WatchedStep::Operand& operand : step.outputs) {
      if (operand.value) finding->outputs.push_back(summary_of(operand));
    }
    throw Error(ErrorCode::invalid_value, to_text(*finding));
  }

  std::optional<NanFinding> finding;
  std::vector<ValueSummary> bad_sources;

 private:
  bool makes_bad_numbers(const std::vector<ValueSummary>& inputs,
                         const std::vector<WatchedStep::Operand>& outputs) const {
    NotFinite made;
    for (const WatchedStep::Operand& operand : outputs) {
      if (!operand.value) continue;
      for_each_tensor(*operand.value, [&](const Tensor& tensor) {
        const NotFinite count = count_not_finite(tensor);
        made.nans += count.nans;
        made.infinities += count.infinities;
      });
    }
    const auto has_nan = [](const ValueSummary& input) { return input.stats.nans > 0; };
    const auto has_bad = [](const ValueSummary& input) { return !input.stats.finite(); };
    if (made.nans > 0 && std::ranges::none_of(inputs, has_nan)) return true;
    return made.infinities > 0 && !options_.allow_infinite && std::ranges::none_of(inputs, has_bad);
  }

  ValueSummary summary_of(const WatchedStep::Operand& operand) {
    ValueSummary summary;
    summary.name = operand.name;
    summary.value = operand.value->describe();
    summary.origin = origin_of(operand.name);
    for_each_tensor(*operand.value, [&](const Tensor& tensor) { summarize(tensor, operand.name, summary); });
    return summary;
  }

  void summarize(const Tensor& given, std::string_view name, ValueSummary& summary) {
    const Tensor* tensor = is_hollow(given) ? model_.constant(name) : &given;
    summary.is_seen = tensor && !is_hollow(*tensor) && tensor->type() == given.type();
    if (!summary.is_seen) return;
    add(summary.stats, stats_of(*tensor, name));
    const bool is_whole_value = summary.value.starts_with(name_of(given.type()));
    if (!is_whole_value) return;
    for (int64_t i = 0; i < std::min(shown_elements, tensor->elements()); ++i)
      summary.first.push_back(element_as_text(*tensor, i));
  }

  // Constants are read again and again; once is enough.
  TensorStats stats_of(const Tensor& tensor, std::string_view name) {
    if (!model_.is_constant(name)) return tensor_stats(tensor);
    auto known = constants_.find(name);
    if (known == constants_.end()) known = constants_.emplace(name, tensor_stats(tensor)).first;
    return known->second;
  }

  std::string origin_of(std::string_view name) const {
    if (auto maker = makers_.find(name); maker != makers_.end()) return "made by " + maker->second;
    if (model_.is_input(name)) return "an input of the model";
    if (model_.is_constant(name)) return "a constant";
    return "a view of another value, or from constants and shapes alone";
  }

  void note_source(const ValueSummary& value) {
    if (makers_.contains(value.name)) return;
    if (std::ranges::find(bad_sources, value.name, &ValueSummary::name) == bad_sources.end())
      bad_sources.push_back(value);
  }

  const WatchedModel model_;
  const NanWatchOptions options_;
  std::map<std::string, std::string, std::less<>> makers_;  // nodes by the values that they made
  std::map<std::string, TensorStats, std::less<>> constants_;
  std::vector<std::vector<ValueSummary>> under_way_;  // inputs of steps, outer ones first
};

NanWatch::NanWatch(const Session& session, const OnnxModel* model, const NanWatchOptions& options)
    : state_(std::make_unique<State>(session, model, options)) {}
NanWatch::~NanWatch() = default;
void NanWatch::before(const WatchedStep& step) { state_->before(step); }
void NanWatch::after(const WatchedStep& step) { state_->after(step); }
const std::optional<NanFinding>& NanWatch::finding() const { return state_->finding; }
const std::vector<ValueSummary>& NanWatch::bad_sources() const { return state_->bad_sources; }

NanReport find_nan(const Session& session, const NamedValues& inputs, const OnnxModel* model,
                   const NanWatchOptions& options) {
  NanWatch watch(session, model, options);
  RunOptions run;
  run.watcher = &watch;
  try {
    session.run(inputs, run);
  } catch (const Error&) {
    if (!watch.finding()) throw;
  }
  return {watch.finding(), watch.bad_sources()};
}

void Watchers::before(const WatchedStep& step) {
  for (RunWatcher* watcher : all_) watcher->before(step);
}

void Watchers::after(const WatchedStep& step) {
  for (RunWatcher* watcher : all_) watcher->after(step);
}

}  // namespace tenon::tools
