#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/session.h"
#include "tenon/tools/benchmark.h"
#include "tenon/tools/compare_values.h"
#include "tenon/tools/make_inputs.h"

namespace tenon::tools {

// What a probe asks of a model that serves.
struct HealthOptions {
  // That the model is loaded with. A required provider that is not among its providers is asked first.
  SessionOptions session;
  // The provider that must run the model: `min_share` of its FLOPs at least. "": any.
  std::string require_provider;
  double min_share = 0.9;
  // What the model is run on. Where inputs are random, as many samples as told, each with another seed.
  InputSources inputs;
  int64_t samples = 3;
  // What outputs must be, for inputs that are given; as values, or as files that read_value reads.
  NamedValues expected;
  std::map<std::string, std::string> expected_files;
  Tolerance tolerance;
  bool allow_infinite = false;  // outputs may be infinite, but not NaN
  double max_load_seconds = 0;  // 0: no limit
  // Of the median of as many runs, after the samples. 0: no limit.
  double max_latency_seconds = 0;
  int64_t runs = 5;
};

struct HealthCheck {
  std::string name;  // "load", "provider", "run", "finite", "expected" or "latency"
  bool passed = false;
  std::string reason;  // what was seen, also where it passed
};

struct HealthReport {
  std::vector<HealthCheck> checks;  // those that were made: after one that fails to load or to run there are no more
  double load_seconds = 0, first_run_seconds = 0;
  Latency latency;
  std::optional<double> provider_share;  // of the FLOPs, 0 to 1, that the required provider runs
  std::optional<Error> error;            // what loading or running threw

  bool healthy() const;
  // "healthy: …" or "unhealthy: …", with the reasons, in one line.
  std::string text() const;
};

// Loads the model, runs it, and checks everything that `options` ask for. Throws only for options that make no sense:
// names that the model does not have, files that are not there.
HealthReport check_health(const std::filesystem::path& path, const HealthOptions& options = {});
// The same for a session that is loaded already.
HealthReport check_health(const Session& session, const HealthOptions& options = {});

}  // namespace tenon::tools
