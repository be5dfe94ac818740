#include "tenon/tools/profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "tools/step_times.h"

namespace tenon::tools {

std::vector<OwnTime> own_times(const std::vector<StepProfile>& steps) {
  std::vector<OwnTime> own;
  std::vector<size_t> outermost;  // so far
  for (size_t i = 0; i < steps.size(); ++i) {
    // What ran in its bodies, some of it perhaps side by side; from the last to end to the first.
    int64_t inner = 0, counted_from = steps[i].start_ns + steps[i].duration_ns;
    while (steps[i].thread == 0 && !outermost.empty() && steps[outermost.back()].start_ns >= steps[i].start_ns) {
      const StepProfile& step = steps[outermost.back()];
      const int64_t end = std::min(step.start_ns + step.duration_ns, counted_from);
      inner += std::max<int64_t>(0, end - step.start_ns);
      counted_from = std::min(counted_from, step.start_ns);
      outermost.pop_back();
    }
    outermost.push_back(i);
    own.push_back({std::max<int64_t>(0, steps[i].duration_ns - inner), inner > 0});
  }
  return own;
}

namespace {

void add(ProfileTotals& totals, const StepProfile& step, const OwnTime& own) {
  totals.op_type = step.op_type;
  totals.provider = step.provider;
  ++totals.calls;
  totals.seconds += static_cast<double>(own.nanoseconds) * 1e-9;
  totals.device_seconds += static_cast<double>(step.device_ns) * 1e-9;
  if (own.has_inner) return;
  totals.flops += step.flops;
  totals.bytes += step.bytes;
}

template <typename Key>
std::vector<ProfileTotals> slowest_first(std::map<Key, ProfileTotals>& by_key, double all_seconds) {
  std::vector<ProfileTotals> list;
  for (auto& [key, totals] : by_key) {
    if (all_seconds > 0) totals.share = totals.seconds / all_seconds;
    list.push_back(std::move(totals));
  }
  std::ranges::stable_sort(list, std::greater(), &ProfileTotals::seconds);
  return list;
}

}  // namespace

std::vector<ProfiledRun> profile(const Session& session, const NamedValues& inputs, const ProfileOptions& options) {
  using Clock = std::chrono::steady_clock;
  auto nanoseconds = [](Clock::duration d) { return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count(); };
  auto tell = [&](int64_t done) {
    if (options.progress) options.progress(done);
  };
  for (int64_t i = 0; i < options.warmup; ++i) {
    session.run(inputs);
    tell(i + 1);
  }
  std::vector<ProfiledRun> runs;
  for (int64_t i = 0; i < options.runs; ++i) {
    ProfiledRun run;
    RunOptions run_options;
    run_options.profile = &run.steps;
    run_options.device_repeats = options.device_repeats;
    const Clock::time_point start = Clock::now();
    session.run(inputs, run_options);
    run.start_ns = nanoseconds(start.time_since_epoch());
    run.duration_ns = nanoseconds(Clock::now() - start);
    runs.push_back(std::move(run));
    tell(options.warmup + i + 1);
  }
  return runs;
}

ProfileSummary summarize(std::span<const ProfiledRun> runs) {
  ProfileSummary summary;
  std::map<std::tuple<std::string, std::string>, ProfileTotals> operators;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, ProfileTotals> nodes;
  for (const ProfiledRun& run : runs) {
    ++summary.runs;
    summary.seconds += static_cast<double>(run.duration_ns) * 1e-9;
    const std::vector<OwnTime> own = own_times(run.steps);
    for (size_t i = 0; i < run.steps.size(); ++i) {
      const StepProfile& step = run.steps[i];
      summary.step_seconds += static_cast<double>(own[i].nanoseconds) * 1e-9;
      add(operators[{step.op_type, step.provider}], step, own[i]);
      ProfileTotals& node = nodes[{step.node, step.op_type, step.provider, step.kernel}];
      add(node, step, own[i]);
      node.node = step.node;
      node.kernel = step.kernel;
      node.inputs = step.inputs;
      node.outputs = step.outputs;
    }
  }
  summary.operators = slowest_first(operators, summary.step_seconds);
  summary.nodes = slowest_first(nodes, summary.step_seconds);
  return summary;
}

}  // namespace tenon::tools
