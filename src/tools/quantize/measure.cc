#include "tools/quantize/measure.h"

#include <algorithm>
#include <chrono>

#include "tools/step_times.h"

namespace tenon::tools {
namespace {

constexpr double seconds_at_least = 0.3;  // that runs of each take together
constexpr int rounds_at_least = 3, rounds_at_most = 50;

double seconds_of(const Session& session, const NamedValues& inputs) {
  const auto start = std::chrono::steady_clock::now();
  session.run(inputs);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void take_step_times(const Session& session, const NamedValues& inputs, NodeSeconds& least) {
  std::vector<StepProfile> steps;
  RunOptions options;
  options.profile = &steps;
  session.run(inputs, options);
  const std::vector<OwnTime> times = own_times(steps);
  NodeSeconds now;
  for (size_t i = 0; i < steps.size(); ++i)
    now[node_name(steps[i].node)] += static_cast<double>(times[i].nanoseconds) * 1e-9;
  for (const auto& [name, seconds] : now) {
    const auto [found, is_new] = least.emplace(name, seconds);
    if (!is_new) found->second = std::min(found->second, seconds);
  }
}

}  // namespace

std::string node_name(const std::string& description) {
  const size_t first = description.find('\''), last = description.rfind('\'');
  return first == std::string::npos || first == last ? "" : description.substr(first + 1, last - first - 1);
}

MeasuredPair measure_pair(const OnnxModel& before, const OnnxModel& after, const NamedValues& inputs,
                          const SessionOptions& options) {
  const Session first = before.open(options), second = after.open(options);
  MeasuredPair result;
  for (const Session* session : {&first, &second}) session->run(inputs);
  result.run_before = seconds_of(first, inputs);
  result.run_after = seconds_of(second, inputs);
  double spent = 0;
  for (int round = 0; round < rounds_at_most && (round < rounds_at_least || spent < seconds_at_least); ++round) {
    const double a = seconds_of(first, inputs), b = seconds_of(second, inputs);
    result.run_before = std::min(result.run_before, a);
    result.run_after = std::min(result.run_after, b);
    spent += std::min(a, b);
    take_step_times(first, inputs, result.before);
    take_step_times(second, inputs, result.after);
  }
  return result;
}

}  // namespace tenon::tools
