#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli.h"
#include "table.h"
#include "tenon/tools/inspect.h"

namespace tenon::cli {
namespace {

struct InspectFlags {
  std::string model;
  SessionFlags session;
  InputFlags inputs;
  bool text = false, inferred = false, placement = false, json = false;
};

nlohmann::json to_json(const std::vector<ValueInfo>& values) {
  nlohmann::json list = nlohmann::json::array();
  for (const ValueInfo& value : values) list.push_back(cli::to_json(value));
  return list;
}

nlohmann::json to_json(const tools::ModelSummary& s) {
  nlohmann::json opsets = nlohmann::json::object(), metadata = nlohmann::json::object(),
                 operators = nlohmann::json::array();
  for (const auto& [domain, version] : s.info.opsets) opsets[domain.empty() ? "ai.onnx" : domain] = version;
  for (const auto& [key, value] : s.info.metadata) metadata[key] = value;
  for (const tools::OperatorUse& use : s.operators)
    operators.push_back({{"name", use.name}, {"count", use.count}, {"known", use.known}});
  return {{"ir_version", s.info.ir_version},
          {"opsets", opsets},
          {"producer", s.info.producer_name},
          {"producer_version", s.info.producer_version},
          {"graph", s.info.graph_name},
          {"metadata", metadata},
          {"inputs", to_json(s.inputs)},
          {"outputs", to_json(s.outputs)},
          {"overridable_initializers", to_json(s.overridable_initializers)},
          {"operators", operators},
          {"functions", s.functions},
          {"nodes", s.nodes},
          {"parameters", s.parameters},
          {"parameter_bytes", s.parameter_bytes},
          {"dynamic_dims", s.dynamic_dims},
          {"flops", s.flops},
          {"problem", s.problem},
          {"notes", s.notes}};
}

void print_values(const char* title, const std::vector<ValueInfo>& values) {
  for (const ValueInfo& value : values) {
    fmt::print("{:<12}{}: {}\n", title, value.name, type_text(value));
    title = "";
  }
}

void print(const tools::ModelSummary& s) {
  fmt::print("{:<12}{}{}{}\n", "producer", s.info.producer_name.empty() ? "unknown" : s.info.producer_name,
             s.info.producer_version.empty() ? "" : " ", s.info.producer_version);
  std::string opsets;
  for (const auto& [domain, version] : s.info.opsets)
    opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", domain.empty() ? "ai.onnx" : domain, version);
  fmt::print("{:<12}{} (IR version {})\n", "opsets", opsets, s.info.ir_version);
  print_values("inputs", s.inputs);
  print_values("overridable", s.overridable_initializers);
  print_values("outputs", s.outputs);
  std::string dims;
  for (const std::string& dim : s.dynamic_dims) dims += (dims.empty() ? "" : ", ") + dim;
  fmt::print("{:<12}{}\n", "dynamic", dims.empty() ? "no named sizes" : dims);
  fmt::print("{:<12}{} ({})\n", "parameters", s.parameters, size_text(s.parameter_bytes));
  if (!s.flops.empty()) fmt::print("{:<12}{} in matrix products and convolutions\n", "FLOPs", s.flops);
  fmt::print("{:<12}{}\n", "nodes", s.nodes);
  for (const tools::OperatorUse& use : s.operators)
    fmt::print("  {:>6}  {}{}\n", use.count, use.name, use.known ? "" : "   (unknown to Tenon)");
  for (const std::string& function : s.functions) fmt::print("function {}\n", function);
  for (const auto& [key, value] : s.info.metadata) fmt::print("metadata {}: {}\n", key, value.substr(0, 200));
  for (const std::string& note : s.notes) fmt::print("note: {}\n", note);
  if (!s.problem.empty()) fmt::print("problem: {}\n", s.problem);
}

// With expressions over the model's named sizes, unless some sizes are given.
PlacementReport placement(const InspectFlags& flags) {
  const Session session = Session::load(flags.model, flags.session.options());
  if (flags.inputs.shapes.empty() && flags.inputs.dims.empty()) return session.placement_report();
  std::vector<std::string> assumed;
  PlacementReport report = session.placement_report(tools::input_shapes(session, flags.inputs.sources(), assumed));
  if (!assumed.empty() && !flags.json) fmt::print(stderr, "note: {}\n", assumed_text(assumed));
  return report;
}

int inspect(const InspectFlags& flags) {
  if (flags.text) {
    std::string text = tools::model_text(flags.model, flags.inferred, flags.session.options());
    if (flags.json)
      fmt::print("{}\n", nlohmann::json({{"text", text}}).dump(2));
    else
      fmt::print("{}", text);
    return fine;
  }
  tools::ModelSummary summary = tools::inspect(flags.model, flags.session.options());
  if (flags.json) {
    nlohmann::json json = to_json(summary);
    if (flags.placement) json["placement"] = cli::to_json(placement(flags));
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return fine;
  }
  std::optional<PlacementReport> report;
  if (flags.placement) report = placement(flags);
  print(summary);
  if (report) print_placement(*report);
  return fine;
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = program.add_subcommand("inspect", "Say what is in a model: inputs, outputs, operators, sizes");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  command->add_flag("--text", flags->text, "Print the graph as text");
  command->add_flag("--inferred", flags->inferred, "With --text: lifted to the newest operators, with inferred types");
  command->add_flag("--placement", flags->placement,
                    "Print where each node would run and what that costs, totals first");
  flags->inputs.add_shapes_to(*command, "With --placement");
  command->add_flag("--json", flags->json, "Print one JSON document");
  flags->session.add_to(*command);
  command->callback([flags, &action] { action = [flags] { return inspect(*flags); }; });
}

}  // namespace tenon::cli
