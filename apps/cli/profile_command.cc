#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli.h"
#include "table.h"

namespace tenon::cli {
namespace {

struct ProfileFlags {
  std::string model, output;
  SessionFlags session;
  InputFlags inputs;
  tools::ProfileOptions options;
  bool json = false;
};

constexpr size_t most_nodes = 10;  // in the table of the slowest

std::string rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds / 1e9) : "";
}

// The columns that operators and nodes share. Calls and time are of one run, in a unit that suits all of them.
class ProfileColumns {
 public:
  explicit ProfileColumns(const tools::ProfileSummary& summary)
      : runs_(std::max(1.0, static_cast<double>(summary.runs))),
        is_short_(summary.step_seconds / runs_ < 1e-3),
        has_device_(std::ranges::any_of(summary.nodes, [](const auto& node) { return node.device_seconds > 0; })) {}

  Table& add_to(Table& table) const {
    table.column("calls").column(is_short_ ? "µs" : "ms");
    if (has_device_) table.column("on device");
    return table.column("%").column("GFLOP/s").column("GB/s").column("on", Table::Align::left);
  }

  std::vector<std::string> cells(const tools::ProfileTotals& totals) const {
    const double rated = totals.device_seconds > 0 ? totals.device_seconds : totals.seconds;
    std::vector<std::string> cells{fmt::format("{:.4g}", static_cast<double>(totals.calls) / runs_),
                                   time_text(totals.seconds)};
    if (has_device_) cells.push_back(totals.device_seconds > 0 ? time_text(totals.device_seconds) : "");
    for (std::string cell : {fmt::format("{:.1f}", totals.share * 100), rate(totals.flops, rated),
                             rate(totals.bytes, rated), totals.provider})
      cells.push_back(std::move(cell));
    return cells;
  }

 private:
  std::string time_text(double seconds) const {
    return fmt::format("{:.{}f}", seconds / runs_ * (is_short_ ? 1e6 : 1e3), is_short_ ? 1 : 3);
  }

  double runs_;
  bool is_short_, has_device_;
};

nlohmann::json to_json(const tools::ProfileTotals& totals) {
  nlohmann::json json = {{"op_type", totals.op_type}, {"provider", totals.provider}, {"calls", totals.calls},
                         {"seconds", totals.seconds}, {"share", totals.share},       {"flops", totals.flops},
                         {"bytes", totals.bytes}};
  if (totals.device_seconds > 0) json["device_seconds"] = totals.device_seconds;
  if (totals.node.empty()) return json;
  json["node"] = totals.node;
  json["kernel"] = totals.kernel;
  json["inputs"] = totals.inputs;
  json["outputs"] = totals.outputs;
  return json;
}

int profile(const ProfileFlags& flags) {
  const Session session = Session::load(flags.model, flags.session.options());
  const NamedValues inputs = flags.inputs.make(session, flags.json);
  std::vector<tools::ProfiledRun> runs;
  {
    tools::ProfileOptions options = flags.options;
    Progress progress(static_cast<size_t>(options.warmup + options.runs));
    options.progress = [&](int64_t done) { progress.at(static_cast<size_t>(done), "runs"); };
    runs = tools::profile(session, inputs, options);
  }
  if (!flags.output.empty()) tools::write_trace(flags.output, runs, flags.model);
  const tools::ProfileSummary summary = tools::summarize(runs);
  if (flags.json) {
    nlohmann::json json = cli::to_json(summary);
    json["model"] = flags.model;
    if (!flags.output.empty()) json["trace"] = flags.output;
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return fine;
  }
  print_profile(summary);
  if (!flags.output.empty()) fmt::print("\nwrote {}: open it in ui.perfetto.dev or chrome://tracing\n", flags.output);
  return fine;
}

}  // namespace

void print_profile(const tools::ProfileSummary& summary) {
  const double n = std::max(1.0, static_cast<double>(summary.runs));
  fmt::print("operators, per run: mean of {}, {} of {} in nodes\n", count_text(summary.runs, "profiled run"),
             quantity(summary.step_seconds / n, "s"), quantity(summary.seconds / n, "s"));
  const ProfileColumns columns(summary);
  Table operators;
  columns.add_to(operators).column("operator", Table::Align::left);
  for (const tools::ProfileTotals& totals : summary.operators) {
    std::vector<std::string> row = columns.cells(totals);
    row.push_back(totals.op_type);
    operators.row(std::move(row));
  }
  operators.print();
  const size_t shown = std::min(most_nodes, summary.nodes.size());
  fmt::print("\nslowest nodes, {} of {}\n", shown, summary.nodes.size());
  Table nodes;
  columns.add_to(nodes).column("kernel", Table::Align::left, 20).column("node", Table::Align::left);
  for (size_t i = 0; i < shown; ++i) {
    std::vector<std::string> row = columns.cells(summary.nodes[i]);
    row.push_back(summary.nodes[i].kernel);
    row.push_back(summary.nodes[i].node);
    nodes.row(std::move(row));
  }
  nodes.print();
}

nlohmann::json to_json(const tools::ProfileSummary& summary) {
  nlohmann::json operators = nlohmann::json::array(), nodes = nlohmann::json::array();
  for (const tools::ProfileTotals& totals : summary.operators) operators.push_back(to_json(totals));
  for (const tools::ProfileTotals& totals : summary.nodes) nodes.push_back(to_json(totals));
  return {{"runs", summary.runs},
          {"seconds", summary.seconds},
          {"step_seconds", summary.step_seconds},
          {"operators", operators},
          {"nodes", nodes}};
}

void add_profile(CLI::App& program, Action& action) {
  auto flags = std::make_shared<ProfileFlags>();
  CLI::App* command =
      program.add_subcommand("profile", "Measure every node of some runs; write a trace that Perfetto shows");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  command->add_option("-o,--output", flags->output, "The trace to write (Chrome and Perfetto trace events)")
      ->type_name("TRACE.json");
  command->add_option("--runs", flags->options.runs, "Runs to measure (default: 3)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->type_name("N");
  command->add_option("--warmup", flags->options.warmup, "Runs before those (default: 3)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command->add_flag("--json", flags->json, "Print one JSON document");
  flags->inputs.add_to(*command);
  flags->session.add_to(*command);
  command->callback([flags, &action] { action = [flags] { return profile(*flags); }; });
}

}  // namespace tenon::cli
