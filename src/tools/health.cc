#include "tenon/tools/health.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "session/providers.h"
#include "tenon/tools/inspect.h"
#include "tenon/tools/tensor_stats.h"
#include "tenon/tools/value_files.h"

namespace tenon::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string milliseconds(double seconds) { return fmt::format("{:.3g} ms", seconds * 1e3); }

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Estimates are numbers once shapes are known; those that are none count as unknown.
std::optional<double> number_in(const std::string& estimate) {
  double number = 0;
  const char* end = estimate.data() + estimate.size();
  const auto [last, error] = std::from_chars(estimate.data(), end, number);
  return error == std::errc() && last == end ? std::optional(number) : std::nullopt;
}

struct Share {
  double of_all = 0;
  int64_t nodes = 0, all_nodes = 0, unknown = 0;
  bool is_of_flops = true;
};

// Of what the nodes compute; of their bytes where nothing is computed.
Share share_of(const PlacementReport& report, const std::string& provider) {
  Share share;
  double flops = 0, all_flops = 0, bytes = 0, all_bytes = 0;
  for (const NodePlacement& node : report.nodes) {
    const bool runs_here = node.provider == provider;
    const std::optional<double> work = number_in(node.flops), moved = number_in(node.bytes);
    ++share.all_nodes;
    share.nodes += runs_here;
    share.unknown += !work;
    all_flops += work.value_or(0);
    all_bytes += moved.value_or(0);
    flops += runs_here ? work.value_or(0) : 0;
    bytes += runs_here ? moved.value_or(0) : 0;
  }
  share.is_of_flops = all_flops > 0;
  if (share.nodes == share.all_nodes)
    share.of_all = 1;
  else if (all_flops > 0)
    share.of_all = flops / all_flops;
  else if (all_bytes > 0)
    share.of_all = bytes / all_bytes;
  return share;
}

// Why a node that a provider declined does not run there: the first such reason.
std::string first_refusal(const PlacementReport& report, const std::string& provider) {
  for (const NodePlacement& node : report.nodes) {
    for (const auto& [name, reason] : node.declined) {
      if (name == provider) return fmt::format("; it declined {}: {}", node.node, reason);
    }
  }
  return "";
}

// "" if all floats are finite, else which are not.
std::string not_finite(const NamedValues& outputs, bool allow_infinite) {
  for (const auto& [name, value] : outputs) {
    if (!value.is_tensor()) continue;
    const NotFinite count = count_not_finite(value.tensor());
    const bool is_bad = count.nans > 0 || (count.infinities > 0 && !allow_infinite);
    if (is_bad)
      return fmt::format("output '{}' has {} NaN and {} infinite of {} elements", name, count.nans, count.infinities,
                         value.tensor().elements());
  }
  return "";
}

class Examination {
 public:
  Examination(const HealthOptions& options, HealthReport& report) : options_(options), report_(report) {}

  void examine(const Session& session) {
    const NamedValues expected = expectations(session);
    const MadeInputs first = make_inputs(session, options_.inputs);
    if (!run_samples(session, first, expected)) return;
    if (!options_.require_provider.empty()) check_provider(session, first.values);
    check_latency(session, first.values);
  }

  void check(std::string name, bool passed, std::string reason) {
    report_.checks.push_back({std::move(name), passed, std::move(reason)});
  }

 private:
  NamedValues expectations(const Session& session) const {
    NamedValues expected = options_.expected;
    for (const auto& [name, file] : options_.expected_files) expected[name] = read_value(file, output(session, name));
    for (const auto& [name, _] : expected) output(session, name);
    return expected;
  }

  static const ValueInfo& output(const Session& session, const std::string& name) {
    const std::vector<ValueInfo>& outputs = session.outputs();
    auto found = std::ranges::find(outputs, name, &ValueInfo::name);
    if (found == outputs.end())
      throw Error(ErrorCode::unknown_name, fmt::format("the model has no output '{}' to expect something of", name));
    return *found;
  }

  // Whether all ran.
  bool run_samples(const Session& session, const MadeInputs& first, const NamedValues& expected) {
    const int64_t samples = first.random.empty() ? 1 : options_.samples;
    std::string bad;
    for (int64_t i = 0; i < samples; ++i) {
      InputSources sources = options_.inputs;
      sources.seed += static_cast<uint64_t>(i);
      NamedValues outputs;
      const Clock::time_point start = Clock::now();
      try {
        outputs = session.run(i == 0 ? first.values : make_inputs(session, sources).values);
      } catch (const Error& error) {
        report_.error = error;
        check("run", false, error.what());
        return false;
      }
      if (i == 0) report_.first_run_seconds = seconds_since(start);
      if (bad.empty()) bad = not_finite(outputs, options_.allow_infinite);
      if (i == 0) wrong_ = differences(outputs, expected);
    }
    check("run", true,
          fmt::format("{} ran, the first in {}", sample_text(samples, first), milliseconds(report_.first_run_seconds)));
    check("finite", bad.empty(), bad.empty() ? "outputs are finite" : bad);
    if (!expected.empty())
      check("expected", wrong_.empty(),
            wrong_.empty() ? counted(static_cast<int64_t>(expected.size()), "output") + " as expected" : wrong_);
    return true;
  }

  static std::string sample_text(int64_t samples, const MadeInputs& made) {
    return made.random.empty() ? "the given sample" : counted(samples, "random sample");
  }

  std::string differences(const NamedValues& outputs, const NamedValues& expected) const {
    std::string text;
    for (const auto& [name, value] : expected) {
      const std::string how = difference(outputs.at(name), value, options_.tolerance);
      if (!how.empty()) text += fmt::format("{}output '{}': {}", text.empty() ? "" : "; ", name, how);
    }
    return text;
  }

  void check_provider(const Session& session, const NamedValues& inputs) {
    const std::string provider = short_provider_name(options_.require_provider);
    const PlacementReport placement = placement_for(session, inputs);
    const Share share = share_of(placement, provider);
    report_.provider_share = share.of_all;
    const bool passed = share.of_all >= options_.min_share;
    std::string reason =
        fmt::format("{} runs {:.4g} % of the {} ({} of {})", provider, 100 * share.of_all,
                    share.is_of_flops ? "FLOPs" : "bytes", share.nodes, counted(share.all_nodes, "node"));
    if (share.unknown > 0) reason += fmt::format(", without {} of unknown cost", counted(share.unknown, "node"));
    if (!passed)
      reason += fmt::format("; {:.4g} % are required{}", 100 * options_.min_share, first_refusal(placement, provider));
    check("provider", passed, reason);
  }

  void check_latency(const Session& session, const NamedValues& inputs) {
    constexpr double most_seconds = 10;
    report_.latency =
        bench(session, inputs, {.runs = options_.runs, .seconds = most_seconds, .warmup = 0, .progress = {}}).latency;
    const double median = report_.latency.p50, limit = options_.max_latency_seconds;
    const bool passed = limit <= 0 || median <= limit;
    std::string reason = fmt::format("median of {} {}", counted(report_.latency.runs, "run"), milliseconds(median));
    if (!passed) reason += fmt::format(", {} are allowed", milliseconds(limit));
    check("latency", passed, reason);
  }

  const HealthOptions& options_;
  HealthReport& report_;
  std::string wrong_;
};

// Errors have their hint in a line of its own.
std::string in_one_line(std::string text) {
  for (size_t at; (at = text.find("\n  ")) != std::string::npos;) text.replace(at, 3, "; ");
  std::ranges::replace(text, '\n', ' ');
  return text;
}

void check_options(const HealthOptions& options) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ErrorCode::invalid_argument, what);
  };
  require(options.min_share >= 0 && options.min_share <= 1, "the share of a provider is a number from 0 to 1");
  require(options.samples > 0, "a model's health needs a sample at least");
  require(options.runs > 0, "a model's health needs a measured run at least");
  require((options.expected.empty() && options.expected_files.empty()) ||
              !(options.inputs.values.empty() && options.inputs.files.empty()),
          "outputs can be expected of given inputs only");
}

SessionOptions session_options(const HealthOptions& options) {
  SessionOptions session = options.session;
  const std::string& provider = options.require_provider;
  const auto is_required = [&](const std::string& name) {
    return short_provider_name(name) == short_provider_name(provider);
  };
  if (!provider.empty() && std::ranges::none_of(session.providers, is_required))
    session.providers.insert(session.providers.begin(), provider);
  return session;
}

}  // namespace

bool HealthReport::healthy() const { return std::ranges::all_of(checks, &HealthCheck::passed); }

std::string HealthReport::text() const {
  std::string text;
  for (const HealthCheck& check : checks) {
    if (check.passed != healthy()) continue;
    const std::string reason = check.passed ? check.reason : check.name + ": " + check.reason;
    text += (text.empty() ? "" : "; ") + reason;
  }
  return (healthy() ? "healthy: " : "unhealthy: ") + in_one_line(text);
}

HealthReport check_health(const Session& session, const HealthOptions& options) {
  check_options(options);
  HealthReport report;
  Examination(options, report).examine(session);
  return report;
}

HealthReport check_health(const std::filesystem::path& path, const HealthOptions& options) {
  check_options(options);
  HealthReport report;
  Examination examination(options, report);
  const Clock::time_point start = Clock::now();
  std::optional<Session> session;
  try {
    session.emplace(Session::load(path, session_options(options)));
  } catch (const Error& error) {
    report.error = error;
    const bool is_provider = error.code() == ErrorCode::provider_unavailable;
    examination.check(is_provider ? "provider" : "load", false, error.what());
    return report;
  }
  report.load_seconds = seconds_since(start);
  const bool in_time = options.max_load_seconds <= 0 || report.load_seconds <= options.max_load_seconds;
  std::string reason = "loaded in " + milliseconds(report.load_seconds);
  if (!in_time) reason += fmt::format(", {} are allowed", milliseconds(options.max_load_seconds));
  examination.check("load", in_time, reason);
  examination.examine(*session);
  return report;
}

}  // namespace tenon::tools
