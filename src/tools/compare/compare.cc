#include "tenon/tools/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "tools/blocked_image.h"
#include "tools/compare/align.h"
#include "tools/compare/tensor_store.h"
#include "tools/patterns.h"
#include "tools/value_names.h"

namespace tenon::tools {
namespace {

// A tensor as one side made it.
struct MadeTensor {
  std::string name, node, op_type;
  bool is_output = false;
};

using See = std::function<void(const MadeTensor&, const Tensor&)>;

bool can_be_compared(const Value& value) { return value.is_tensor() && value.tensor().type() != ElementType::string; }

// Hands on what steps of the main graph make. Those of bodies run again and again, under the same names.
class Listener : public RunWatcher {
 public:
  Listener(const See& see, const std::set<std::string>& outputs) : see_(see), outputs_(outputs) {}

  void before(const WatchedStep&) override { ++depth_; }
  void after(const WatchedStep& step) override {
    if (--depth_ > 0) return;
    for (const WatchedStep::Operand& output : step.outputs) {
      if (!output.value || !output.value->defined() || !can_be_compared(*output.value)) continue;
      const std::string name(output.name);
      see_({name, step.node, std::string(step.op_type), outputs_.contains(name)}, output.value->tensor());
      seen_.insert(name);
    }
  }

  // Outputs that no step made: views of others, and what follows from weights alone.
  void take_rest(const NamedValues& results) const {
    for (const auto& [name, value] : results) {
      if (!seen_.contains(name) && can_be_compared(value)) see_({name, "", "", true}, value.tensor());
    }
  }

 private:
  const See& see_;
  const std::set<std::string>& outputs_;
  std::set<std::string> seen_;
  int depth_ = 0;
};

// Runs a side; its session is there only as long as this goes on.
class Runner {
 public:
  Runner(const CompareSide& side, const CompareOptions& options) : side_(side), options_(options) {
    if (!side.model) return;
    session_.emplace(side.model->open(side.session));
    names_ = ValueNames(session_->rewrites());
  }

  const Session* session() const { return session_ ? &*session_ : nullptr; }

  const ValueNames& names() const { return names_; }

  void run(const NamedValues& inputs, const See& see) {
    if (options_.progress) options_.progress(side_.label, 0);
    if (!session_) {
      for (const auto& [name, value] : side_.saved) {
        if (can_be_compared(value)) see({name, "", "", false}, value.tensor());
      }
      return;
    }
    std::set<std::string> outputs;
    for (const ValueInfo& output : session_->outputs()) outputs.insert(output.name);
    const See see_plain = [&](const MadeTensor& made, const Tensor& tensor) {
      const int64_t channels = names_.channels_in_blocks(made.name);
      see(made, channels > 0 ? without_blocks(tensor, channels) : tensor);
    };
    Listener listener(see_plain, outputs);
    RunOptions how;
    if (!options_.outputs_only) how.watcher = &listener;
    listener.take_rest(session_->run(inputs, how));
    session_.reset();
    if (options_.progress) options_.progress(side_.label, 1);
  }

 private:
  const CompareSide& side_;
  const CompareOptions& options_;
  std::optional<Session> session_;
  ValueNames names_;
};

// Tensors that wait to be compared.
struct Waiting {
  MadeTensor made;
  size_t number;  // in the store
  bool is_taken = false;
};

class Comparer {
 public:
  Comparer(const CompareSide& expected, const CompareSide& actual, const CompareOptions& options)
      : expected_(expected), actual_(actual), options_(options) {}

  Comparison run() {
    result_.expected = expected_.label;
    result_.actual = actual_.label;
    const NamedValues inputs = run_expected();
    run_actual(inputs);
    align_rest();
    finish();
    return std::move(result_);
  }

 private:
  NamedValues run_expected() {
    Runner runner(expected_, options_);
    NamedValues inputs;
    if (runner.session()) inputs = make(*runner.session());
    expected_names_ = runner.names();
    runner.run(inputs, [&](const MadeTensor& made, const Tensor& tensor) {
      const auto [place, is_new] = waiting_by_name_.try_emplace(made.name, waiting_.size());
      if (is_new) waiting_.push_back({made, store_.add(tensor)});
    });
    return inputs;
  }

  NamedValues make(const Session& session) {
    MadeInputs made = make_inputs(session, options_.inputs);
    result_.random = std::move(made.random);
    result_.assumed = std::move(made.assumed);
    return std::move(made.values);
  }

  void run_actual(NamedValues inputs) {
    Runner runner(actual_, options_);
    if (!runner.session()) fail(ErrorCode::invalid_argument, "the second of two that are compared must be a model");
    inputs = expected_.model ? for_other_names(std::move(inputs), *runner.session()) : make(*runner.session());
    runner.run(inputs, [&](const MadeTensor& made, const Tensor& tensor) { take(made, tensor, runner.names()); });
  }

  // Two models may call their inputs differently.
  static NamedValues for_other_names(NamedValues inputs, const Session& session) {
    const std::vector<ValueInfo>& wanted = session.inputs();
    const auto has = [&](const ValueInfo& input) { return inputs.contains(input.name); };
    if (std::ranges::all_of(wanted, has)) {
      std::erase_if(inputs, [&](const auto& item) {
        return std::ranges::find(wanted, item.first, &ValueInfo::name) == wanted.end();
      });
      return inputs;
    }
    if (wanted.size() != 1 || inputs.size() != 1) {
      std::string names;
      for (const ValueInfo& input : wanted) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", input.name);
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the two models have other inputs; those of the second are {}", names),
                  "`tenon rename` gives them the same names");
    }
    return {{wanted[0].name, std::move(inputs.begin()->second)}};
  }

  void take(const MadeTensor& made, const Tensor& tensor, const ValueNames& names) {
    order_.try_emplace(made.name, order_.size());
    std::vector<std::string> candidates = names.before(made.name);
    candidates.insert(candidates.begin(), made.name);
    for (const std::string& name : candidates) {
      std::vector<std::string> places = expected_names_.now(name);
      places.push_back(name);
      for (const std::string& there : places) {
        const auto found = waiting_by_name_.find(there);
        if (found == waiting_by_name_.end() || waiting_[found->second].is_taken) continue;
        const bool same_name = there == made.name;
        add(waiting_[found->second], made, name, tensor,
            same_name ? ComparedTensor::Match::name : ComparedTensor::Match::rewrite);
        return;
      }
    }
    rest_.push_back({made, rest_store_.add(tensor)});
  }

  void add(Waiting& expected, const MadeTensor& made, const std::string& name, const Tensor& actual,
           ComparedTensor::Match match) {
    expected.is_taken = true;
    if (!is_wanted(name)) return;
    ComparedTensor compared;
    compared.name = name;
    compared.expected_name = expected.made.name;
    compared.actual_name = made.name;
    compared.node = made.node;
    compared.op_type = made.op_type;
    compared.is_output = made.is_output || expected.made.is_output;
    compared.match = match;
    judge_numbers(compared, actual, store_.read(expected.number));
    result_.tensors.push_back(std::move(compared));
    orders_.push_back(order_.at(made.name));
  }

  void judge_numbers(ComparedTensor& compared, const Tensor& actual, const Tensor& expected) const {
    compared.type = fmt::format("{} {}", name_of(actual.type()), expected.shape().to_string());
    if (actual.shape() != expected.shape()) {
      compared.problem =
          fmt::format("expected shape {}, got {}", expected.shape().to_string(), actual.shape().to_string());
      return;
    }
    ErrorLimit limit = options_.limit;
    for (const auto& [pattern, tolerance] : options_.tolerances) {
      if (fits_pattern(compared.name, pattern)) limit.tolerance = tolerance;
    }
    compared.verdict = judge(actual, expected, limit);
  }

  bool is_wanted(const std::string& name) const {
    return options_.only.empty() ||
           std::ranges::any_of(options_.only, [&](const std::string& pattern) { return fits_pattern(name, pattern); });
  }

  // What has no name in common, by order and content.
  void align_rest() {
    std::vector<size_t> left;
    std::vector<Fingerprint> expected, actual;
    for (size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i].is_taken) continue;
      left.push_back(i);
      expected.push_back(fingerprint(store_.read(waiting_[i].number), waiting_[i].made.op_type));
    }
    for (const Waiting& item : rest_) actual.push_back(fingerprint(rest_store_.read(item.number), item.made.op_type));
    const bool one_model = expected_.model && actual_.model && &expected_.model->ir() == &actual_.model->ir();
    if (!one_model) {
      for (const auto& [i, j] : align(expected, actual)) {
        rest_[j].is_taken = true;
        add(waiting_[left[i]], rest_[j].made, rest_[j].made.name, rest_store_.read(rest_[j].number),
            ComparedTensor::Match::position);
      }
    }
    for (const Waiting& item : waiting_) {
      if (!item.is_taken && is_wanted(item.made.name)) result_.only_expected.push_back(item.made.name);
    }
    for (const Waiting& item : rest_) {
      if (!item.is_taken && is_wanted(item.made.name)) result_.only_actual.push_back(item.made.name);
    }
  }

  // Those matched last are put where they were made.
  void sort() {
    std::vector<size_t> places(orders_.size());
    std::iota(places.begin(), places.end(), size_t{0});
    std::ranges::stable_sort(places, {}, [&](size_t i) { return orders_[i]; });
    std::vector<ComparedTensor> sorted;
    for (size_t place : places) sorted.push_back(std::move(result_.tensors[place]));
    result_.tensors = std::move(sorted);
  }

  void finish() {
    sort();
    result_.stored_bytes = store_.bytes() + rest_store_.bytes();
    for (size_t i = 0; i < result_.tensors.size() && result_.first < 0; ++i) {
      if (!result_.tensors[i].ok()) result_.first = static_cast<int64_t>(i);
    }
  }

  const CompareSide &expected_, &actual_;
  const CompareOptions& options_;
  Comparison result_;
  TensorStore store_, rest_store_;
  ValueNames expected_names_;
  std::vector<Waiting> waiting_, rest_;
  std::unordered_map<std::string, size_t> waiting_by_name_;
  std::unordered_map<std::string, size_t> order_;  // in which the second run made tensors
  std::vector<size_t> orders_;                     // of result_.tensors
};

constexpr std::string_view match_names[] = {"name", "rewrite", "position"};

}  // namespace

std::string_view name_of(ComparedTensor::Match match) { return match_names[static_cast<size_t>(match)]; }

CompareSide CompareSide::of(OnnxModel model, const SessionOptions& options, std::string label) {
  return {std::move(label), std::move(model), options};
}

Comparison compare(const CompareSide& expected, const CompareSide& actual, const CompareOptions& options) {
  return Comparer(expected, actual, options).run();
}

}  // namespace tenon::tools
