#include "tenon/tools/health.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli.h"

namespace tenon::cli {
namespace {

struct HealthFlags {
  std::string model;
  SessionFlags session;
  InputFlags inputs;
  std::vector<std::string> expected;
  double max_latency_ms = 0, max_load_ms = 0;
  tools::HealthOptions options;
  bool json = false;
};

nlohmann::json to_json(const tools::HealthReport& report, const std::string& model) {
  nlohmann::json checks = nlohmann::json::array();
  for (const tools::HealthCheck& check : report.checks)
    checks.push_back({{"name", check.name}, {"passed", check.passed}, {"reason", check.reason}});
  nlohmann::json json = {{"model", model},
                         {"healthy", report.healthy()},
                         {"checks", checks},
                         {"load_ms", report.load_seconds * 1e3},
                         {"first_run_ms", report.first_run_seconds * 1e3},
                         {"latency_ms",
                          {{"runs", report.latency.runs},
                           {"min", report.latency.min * 1e3},
                           {"median", report.latency.p50 * 1e3},
                           {"max", report.latency.max * 1e3}}}};
  if (report.provider_share) json["provider_share"] = *report.provider_share;
  if (report.error) json["error"] = cli::to_json(*report.error)["error"];
  return json;
}

// A model that could not be loaded has the exit code that other commands give it.
int exit_code(const tools::HealthReport& report) {
  if (report.healthy()) return fine;
  const bool was_loaded = !report.checks.empty() && report.checks[0].name == "load" && report.checks[0].passed;
  return report.error && !was_loaded ? exit_code_for(report.error->code()) : check_failed;
}

int health(const HealthFlags& flags) {
  tools::HealthOptions options = flags.options;
  options.session = flags.session.options();
  options.inputs = flags.inputs.sources();
  for (const std::string& text : flags.expected) options.expected_files.insert(split(text, "--expect", "NAME=FILE"));
  options.max_latency_seconds = flags.max_latency_ms / 1e3;
  options.max_load_seconds = flags.max_load_ms / 1e3;
  const tools::HealthReport report = tools::check_health(flags.model, options);
  if (flags.json)
    fmt::print("{}\n", to_json(report, flags.model).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("{}\n", report.text());
  return exit_code(report);
}

}  // namespace

void add_health(CLI::App& program, Action& action) {
  auto flags = std::make_shared<HealthFlags>();
  CLI::App* command =
      program.add_subcommand("health", "Load and run a model and say in one line whether it is fit to serve");
  command->add_option("model", flags->model, "The .onnx file, or one that `tenon compile` wrote")
      ->required()
      ->type_name("MODEL");
  command->add_option("--require-provider", flags->options.require_provider, "The provider that must run the model")
      ->type_name("NAME");
  command
      ->add_option("--min-share", flags->options.min_share, "Of the FLOPs that it must run, from 0 to 1 (default: 0.9)")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("SHARE");
  command->add_option("--expect", flags->expected, "What an output must be for the given inputs, from a file")
      ->type_name("NAME=FILE");
  command->add_option("--rtol", flags->options.tolerance.relative, "Allowed relative difference (default: 1e-3)");
  command->add_option("--atol", flags->options.tolerance.absolute, "Allowed absolute difference (default: 1e-7)");
  command->add_flag("--allow-infinite", flags->options.allow_infinite, "Outputs may be infinite, but not NaN");
  command->add_option("--max-latency-ms", flags->max_latency_ms, "Most milliseconds of the median run")
      ->check(CLI::PositiveNumber)
      ->type_name("MS");
  command->add_option("--max-load-ms", flags->max_load_ms, "Most milliseconds that loading may take")
      ->check(CLI::PositiveNumber)
      ->type_name("MS");
  command->add_option("--samples", flags->options.samples, "Random samples, if inputs are not given (default: 3)")
      ->check(CLI::PositiveNumber);
  command->add_option("--runs", flags->options.runs, "Measured runs (default: 5)")->check(CLI::PositiveNumber);
  flags->inputs.add_to(*command);
  command->add_flag("--json", flags->json, "Print one JSON document");
  flags->session.add_to(*command);
  command->callback([flags, &action] { action = [flags] { return health(*flags); }; });
}

}  // namespace tenon::cli
