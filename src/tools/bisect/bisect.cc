#include "tenon/tools/bisect.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/fail.h"
#include "ir/graph.h"
#include "tenon/tools/compare.h"
#include "tenon/tools/convert_dtype.h"
#include "tools/bisect/float_nodes.h"
#include "tools/bisect/smallest_set.h"

namespace tenon::tools {
namespace {

// Runs a model in one way after the other, always on the same inputs.
class Trials {
 public:
  Trials(const OnnxModel& model, const BisectOptions& options) : model_(model), options_(options) {
    SessionOptions right = options.session;
    right.level = OptimizationLevel::none;
    right.precision = Precision::full;
    const Session session = model.open(right);
    inputs_ = make_inputs(session, options.inputs).values;
    expected_ = session.run(inputs_);
  }

  const OnnxModel& model() const { return model_; }
  const BisectOptions& options() const { return options_; }
  int64_t runs() const { return runs_; }
  void expect(int64_t more) { estimate_ = runs_ + more; }

  OutputErrors run(const SessionOptions& how) { return run(model_, how); }
  OutputErrors run(const OnnxModel& model, const SessionOptions& how) {
    OutputErrors errors = errors_of(model.open(how).run(inputs_));
    ++runs_;
    if (options_.progress) options_.progress(runs_, std::max(runs_, estimate_));
    return errors;
  }

 private:
  OutputErrors errors_of(const NamedValues& actual) const {
    OutputErrors worst;
    double most = -1;
    for (const auto& [name, expected] : expected_) {
      if (!expected.is_tensor() || expected.tensor().type() == ElementType::string) continue;
      const auto found = actual.find(name);
      if (found == actual.end())
        fail(ErrorCode::invalid_argument, "the models have other outputs: one has '{}', the other has not", name);
      const Tensor& tensor = found->second.tensor();
      ErrorVerdict verdict{{}, false, INFINITY, 0};
      if (tensor.shape() == expected.tensor().shape()) verdict = judge(tensor, expected.tensor(), options_.limit);
      worst.within &= verdict.within;
      const double part = verdict.error == 0 ? 0 : verdict.error / std::max(verdict.limit, 1e-300);
      if (part <= most) continue;
      most = part;
      worst.output = name;
      worst.error = verdict.error;
      worst.limit = verdict.limit;
    }
    return worst;
  }

  const OnnxModel& model_;
  const BisectOptions& options_;
  NamedValues inputs_, expected_;
  int64_t runs_ = 0, estimate_ = 0;
};

int64_t halvings(int64_t count) { return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(count, 1))); }

SessionOptions with_rewrites(const BisectOptions& options, int64_t most) {
  SessionOptions how = options.session;
  how.most_rewrites = most;
  return how;
}

// By how much errors grow, in dB, where a node or a tensor of such a name is made. What a node's output has more of
// than its inputs is not known of a run, so it is what it has more of than the tensor before.
std::map<std::string, double> error_growth(const Comparison& comparison, std::string ComparedTensor::*name) {
  std::map<std::string, double> growth;
  double before = 200;  // next to nothing
  for (const ComparedTensor& tensor : comparison.tensors) {
    const double now = std::clamp(tensor.verdict.statistics.sqnr, -200.0, 200.0);
    double& most = growth[tensor.*name];
    most = std::max(most, before - now);
    before = now;
  }
  return growth;
}

// `run(kept)` runs the model with these candidates in full precision.
NodeBisection search(Trials& trials, std::vector<std::string> candidates,
                     const std::function<OutputErrors(const std::vector<std::string>&)>& run) {
  NodeBisection result;
  result.candidates = std::move(candidates);
  if (result.candidates.empty()) {
    result.outcome = NodeBisection::Outcome::nothing_rounds;
    return result;
  }
  trials.expect(2 + 2 * halvings(std::ssize(result.candidates)));
  result.before = run({});
  if (result.before.within) {
    result.outcome = NodeBisection::Outcome::holds;
  } else if (result.after = run(result.candidates); !result.after.within) {
    result.outcome = NodeBisection::Outcome::wrong_already;
  } else {
    const auto names = [&](const std::vector<size_t>& set) {
      std::vector<std::string> list;
      for (size_t i : set) list.push_back(result.candidates[i]);
      return list;
    };
    result.keep = names(smallest_set(result.candidates.size(), [&](const std::vector<size_t>& set) {
      const OutputErrors errors = run(names(set));
      if (errors.within) result.after = errors;
      return errors.within;
    }));
  }
  result.runs = trials.runs();
  return result;
}

}  // namespace

RewriteBisection bisect_rewrites(const OnnxModel& model, const BisectOptions& options) {
  using Outcome = RewriteBisection::Outcome;
  Trials trials(model, options);
  RewriteBisection result;
  const std::vector<Rewrite> rewrites = model.open(options.session).rewrites();
  result.rewrites = std::ssize(rewrites);
  trials.expect(3 + halvings(result.rewrites));
  result.after = trials.run(options.session);
  result.before = trials.run(with_rewrites(options, 0));
  result.outcome = result.after.within     ? Outcome::holds
                   : !result.before.within ? Outcome::wrong_already
                                           : Outcome::found;
  if (result.outcome == Outcome::found) {
    int64_t right = 0, wrong = result.rewrites;
    while (wrong - right > 1) {
      const int64_t middle = right + (wrong - right) / 2;
      const OutputErrors errors = trials.run(with_rewrites(options, middle));
      (errors.within ? right : wrong) = middle;
      (errors.within ? result.before : result.after) = errors;
    }
    result.number = wrong;
    result.rewrite = rewrites[static_cast<size_t>(wrong - 1)];
    SessionOptions without = options.session;
    without.disabled_passes.push_back(result.rewrite.pass);
    result.without_pass = trials.run(without);
  }
  result.runs = trials.runs();
  return result;
}

NodeBisection bisect_precision(const OnnxModel& model, const BisectOptions& options) {
  Trials trials(model, options);
  SessionOptions fast = options.session, full = options.session;
  fast.precision = Precision::fast;
  full.precision = Precision::full;
  std::vector<std::string> candidates;
  {
    const Session session = model.open(fast), exact = model.open(full);
    for (size_t i = 0; i < session.placement().size() && i < exact.placement().size(); ++i) {
      if (session.placement()[i].kernel != exact.placement()[i].kernel)
        candidates.push_back(session.placement()[i].node);
    }
  }
  if (!candidates.empty()) {
    CompareOptions how;
    how.inputs = options.inputs;
    auto growth = error_growth(compare(CompareSide::of(model, full, ""), CompareSide::of(model, fast, ""), how),
                               &ComparedTensor::node);
    std::ranges::stable_sort(candidates, std::greater(), [&](const std::string& node) { return growth[node]; });
  }
  return search(trials, candidates, [&](const std::vector<std::string>& kept) {
    SessionOptions with = fast;
    with.full_precision_nodes = kept;
    return trials.run(with);
  });
}

NodeBisection bisect_dtype(const OnnxModel& model, ElementType type, const BisectOptions& options) {
  Trials trials(model, options);
  DtypeOptions how;
  how.type = type;
  how.keep_io = true;
  how.check_overflow = false;
  const DtypeConversion whole = convert_dtype(model, how);
  std::vector<std::string> candidates;
  for (const ir::Node& node : model.ir().graph->nodes()) {
    const bool is_kept = std::ranges::any_of(whole.kept, [&](const KeptNode& kept) { return kept.node == node.name; });
    if (!node.name.empty() && !is_kept) candidates.push_back(node.name);
  }
  NodeBisection result = search(trials, candidates, [&](const std::vector<std::string>& kept) {
    DtypeOptions with = how;
    with.keep = kept;
    return trials.run(convert_dtype(model, with).model, options.session);
  });
  how.keep = result.keep;
  result.model = convert_dtype(model, how).model;
  return result;
}

NodeBisection bisect_quantization(const OnnxModel& original, const OnnxModel& quantized, const BisectOptions& options) {
  Trials trials(original, options);
  std::vector<QuantizedNode> nodes = quantized_nodes(quantized);
  if (nodes.empty()) {
    throw Error(
        ErrorCode::unsupported, "no node of the quantized model reads what a DequantizeLinear makes",
        "only models with QuantizeLinear and DequantizeLinear can be bisected (`quant_format=QuantFormat.QDQ`)");
  }
  SessionOptions plain = options.session;
  plain.level = OptimizationLevel::none;
  CompareOptions how;
  how.inputs = options.inputs;
  auto growth = error_growth(compare(CompareSide::of(original, plain, ""), CompareSide::of(quantized, plain, ""), how),
                             &ComparedTensor::actual_name);
  std::ranges::stable_sort(nodes, std::greater(), [&](const QuantizedNode& node) { return growth[node.output]; });
  std::vector<std::string> candidates;
  for (const QuantizedNode& node : nodes) candidates.push_back(node.name);
  NodeBisection result = search(trials, candidates, [&](const std::vector<std::string>& kept) {
    return trials.run(with_float_nodes(quantized, original, kept), options.session);
  });
  result.model = with_float_nodes(quantized, original, result.keep);
  return result;
}

}  // namespace tenon::tools
