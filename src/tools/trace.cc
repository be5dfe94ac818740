#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "tenon/tools/profile.h"

namespace tenon::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int row_of_runs = 1;

Json named(const char* what, const std::string& name, int row = row_of_runs) {
  return {{"ph", "M"}, {"pid", 1}, {"tid", row}, {"name", what}, {"args", {{"name", name}}}};
}

Json complete(const std::string& name, const std::string& category, int row, int64_t start_ns, int64_t duration_ns,
              Json args) {
  return {{"ph", "X"},
          {"pid", 1},
          {"tid", row},
          {"ts", static_cast<double>(start_ns) / 1e3},
          {"dur", static_cast<double>(duration_ns) / 1e3},
          {"name", name},
          {"cat", category},
          {"args", std::move(args)}};
}

Json details(const StepProfile& step) {
  Json args = {{"node", step.node},     {"op", step.op_type},    {"provider", step.provider},
               {"kernel", step.kernel}, {"inputs", step.inputs}, {"outputs", step.outputs}};
  if (step.duration_ns <= 0) return args;
  const auto nanoseconds = static_cast<double>(step.duration_ns);
  if (step.flops > 0) args["GFLOP/s"] = step.flops / nanoseconds;
  if (step.bytes > 0) args["GB/s"] = step.bytes / nanoseconds;
  return args;
}

}  // namespace

std::string trace_json(std::span<const ProfiledRun> runs, const std::string& model) {
  Json events = Json::array({named("process_name", model), named("thread_name", "runs")});
  const int64_t zero = runs.empty() ? 0 : runs[0].start_ns;
  int most_threads = 0;
  for (size_t r = 0; r < runs.size(); ++r) {
    const ProfiledRun& run = runs[r];
    events.push_back(complete(fmt::format("run {}", r + 1), "run", row_of_runs, run.start_ns - zero, run.duration_ns,
                              {{"steps", run.steps.size()}}));
    // A node before what its bodies did.
    std::vector<const StepProfile*> steps;
    for (const StepProfile& step : run.steps) steps.push_back(&step);
    std::ranges::stable_sort(steps, [](const StepProfile* a, const StepProfile* b) {
      return std::pair(a->start_ns, -a->duration_ns) < std::pair(b->start_ns, -b->duration_ns);
    });
    for (const StepProfile* step : steps) {
      most_threads = std::max(most_threads, step->thread);
      events.push_back(complete(step->op_type, step->provider, row_of_runs + step->thread, step->start_ns - zero,
                                step->duration_ns, details(*step)));
    }
  }
  for (int thread = 1; thread <= most_threads; ++thread)
    events.push_back(named("thread_name", fmt::format("side by side {}", thread), row_of_runs + thread));
  const Json document = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_trace(const std::filesystem::path& path, std::span<const ProfiledRun> runs, const std::string& model) {
  std::ofstream file(path, std::ios::binary);
  file << trace_json(runs, model) << '\n';
  file.close();
  if (!file) fail(ErrorCode::write_failed, "'{}' cannot be written", path.string());
}

}  // namespace tenon::tools
