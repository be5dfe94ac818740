#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "table.h"
#include "tenon/compile.h"
#include "tenon/tools/benchmark.h"
#include "tenon/tools/compare_values.h"

namespace tenon::cli {
namespace {

constexpr int64_t profiled_runs = 10;
constexpr int device_repeats = 20;  // of each node, to measure the GPU alone

struct BenchFlags {
  std::string model;
  SessionFlags session;
  InputFlags inputs;
  tools::BenchOptions options;
  bool operators = false, json = false;
};

struct Measured {
  double load = 0;  // seconds
  tools::BenchResult result;
  SessionMemory memory;
  std::optional<tools::ProfileSummary> profile;
  std::optional<double> error;  // of the outputs, where the precision is not full
};

// How far outputs are from those in full precision. A compiled file has but one precision.
std::optional<double> error_of(const BenchFlags& flags, const Session& session, const NamedValues& inputs) {
  SessionOptions options = flags.session.options();
  if (options.precision == Precision::full || is_compiled(flags.model)) return std::nullopt;
  options.precision = Precision::full;
  return tools::largest_difference(session.run(inputs), Session::load(flags.model, options).run(inputs));
}

size_t count_rounded(const Session& session) {
  return static_cast<size_t>(std::ranges::count_if(
      session.placement(), [](const NodePlacement& node) { return node.kernel.ends_with(", bf16"); }));
}

Measured measure(const BenchFlags& flags, const Session& session, const NamedValues& inputs) {
  Measured measured;
  tools::BenchOptions options = flags.options;
  {
    Progress progress(100);
    options.progress = [&](double part) { progress.at(static_cast<size_t>(part * 100), "% of the runs"); };
    measured.result = tools::bench(session, inputs, options);
  }
  measured.memory = session.memory();
  if (!flags.operators) return measured;
  Progress progress(profiled_runs);
  tools::ProfileOptions profile;
  profile.runs = profiled_runs;
  profile.warmup = 0;
  // Every node is repeated many times already.
  if (flags.options.on_device) profile.device_repeats = device_repeats;
  profile.progress = [&](int64_t done) { progress.at(static_cast<size_t>(done), "profiled runs"); };
  measured.profile = tools::summarize(tools::profile(session, inputs, profile));
  return measured;
}

// One unit for all of them, so that they can be compared.
void print_latency(const tools::Latency& latency) {
  const bool is_short = latency.p50 < 1e-3;
  const double scale = is_short ? 1e6 : 1e3;
  fmt::print("{:<12}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "latency", "min", "mean", "p50", "p90", "p95", "p99",
             "max");
  fmt::print("{:<12}", is_short ? "  in µs" : "  in ms");
  for (double seconds : {latency.min, latency.mean, latency.p50, latency.p90, latency.p95, latency.p99, latency.max})
    fmt::print("{:>10.{}f}", seconds * scale, is_short ? 1 : 3);
  fmt::print("\n");
}

void print(const BenchFlags& flags, const Session& session, const Measured& measured) {
  const tools::BenchResult& result = measured.result;
  fmt::print("{:<12}{}\n", "model", flags.model);
  fmt::print("{:<12}{}, {}, level {}\n", "session", fmt::join(flags.session.options().providers, ","),
             count_text(session.threads(), "thread"), flags.session.level);
  fmt::print("{:<12}{}\n", "load", quantity(measured.load, "s"));
  fmt::print("{:<12}{}\n", "first run", quantity(result.first_run, "s"));
  fmt::print("{:<12}{} in {}, {}\n", "runs", result.latency.runs, quantity(result.seconds, "s"),
             flags.options.concurrency == 1 ? "one at a time" : fmt::format("{} at a time", flags.options.concurrency));
  fmt::print("{:<12}{} runs/s\n", "throughput", quantity(result.throughput));
  print_latency(result.latency);
  fmt::print("{:<12}{} of weights, {} at most for runs\n", "memory",
             quantity(static_cast<double>(measured.memory.weights), "B"),
             quantity(static_cast<double>(measured.memory.peak), "B"));
  if (flags.session.precision == "fast") {
    fmt::print("{:<12}fast: {} of {} in bfloat16", "precision", count_rounded(session),
               count_text(static_cast<int64_t>(session.placement().size()), "node"));
    if (measured.error) fmt::print("; outputs differ by {:.2g} of the largest value", *measured.error);
    fmt::print("\n");
  }
  if (!measured.profile) return;
  fmt::print("\n");
  print_profile(*measured.profile);
}

nlohmann::json to_json(const BenchFlags& flags, const Session& session, const Measured& measured) {
  const tools::BenchResult& result = measured.result;
  const tools::Latency& latency = result.latency;
  nlohmann::json json = {{"model", flags.model},
                         {"providers", flags.session.options().providers},
                         {"threads", session.threads()},
                         {"level", flags.session.level},
                         {"load_seconds", measured.load},
                         {"first_run_seconds", result.first_run},
                         {"runs", latency.runs},
                         {"seconds", result.seconds},
                         {"concurrency", flags.options.concurrency},
                         {"warmup", flags.options.warmup},
                         {"runs_per_second", result.throughput},
                         {"latency_seconds",
                          {{"min", latency.min},
                           {"mean", latency.mean},
                           {"p50", latency.p50},
                           {"p90", latency.p90},
                           {"p95", latency.p95},
                           {"p99", latency.p99},
                           {"max", latency.max}}},
                         {"memory", {{"weights", measured.memory.weights}, {"peak", measured.memory.peak}}}};
  json["precision"] = flags.session.precision;
  if (flags.session.precision == "fast") json["rounded_nodes"] = count_rounded(session);
  if (measured.error) json["error"] = *measured.error;
  if (measured.profile) json["profile"] = cli::to_json(*measured.profile);
  return json;
}

int bench(const BenchFlags& flags) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const Session session = Session::load(flags.model, flags.session.options());
  const double load = std::chrono::duration<double>(Clock::now() - start).count();
  const NamedValues inputs = flags.inputs.make(session, flags.json);
  Measured measured = measure(flags, session, inputs);
  measured.load = load;
  measured.error = error_of(flags, session, inputs);
  if (flags.json)
    fmt::print("{}\n", to_json(flags, session, measured).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    print(flags, session, measured);
  return fine;
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = program.add_subcommand("bench", "Measure how fast a model runs: latency, throughput, memory");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  CLI::Option* runs =
      command->add_option("--runs", flags->options.runs, "Runs to measure (default: as fit in --seconds)")
          ->check(CLI::PositiveNumber)
          ->type_name("N");
  CLI::Option* seconds =
      command->add_option("--seconds", flags->options.seconds, "How long to measure (default: 3, without --runs)")
          ->check(CLI::PositiveNumber)
          ->type_name("S");
  command->add_option("--warmup", flags->options.warmup, "Runs before those (default: 3 of each caller)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command
      ->add_option("--concurrency", flags->options.concurrency,
                   "Callers that run the one session at the same time (default: 1)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  command->add_flag(
      "--operators", flags->operators,
      "Then profile 10 more runs: time per operator, and the slowest nodes. With --on-device also what the GPU "
      "takes for each node by itself, repeated without waits");
  command->add_flag("--on-device", flags->options.on_device,
                    "Inputs and outputs stay in the GPU's memory, with --provider cuda");
  command->add_flag("--json", flags->json, "Print one JSON document");
  flags->inputs.add_to(*command);
  flags->session.add_to(*command);
  command->callback([flags, runs, seconds, &action] {
    if (*runs && !*seconds) flags->options.seconds = 0;
    action = [flags] { return bench(*flags); };
  });
}

}  // namespace tenon::cli
