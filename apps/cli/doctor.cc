#include "tenon/tools/doctor.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli.h"
#include "tenon/tools/operators.h"

namespace tenon::cli {
namespace {

struct DoctorFlags {
  bool operators = false, no_measure = false, json = false;
};

nlohmann::json to_json(const tools::MachineSpeed::Rates& rates) {
  return {{"threads", rates.threads},
          {"peak_flops", rates.peak_flops},
          {"matmul_flops", rates.matmul_flops},
          {"read_bandwidth", rates.read_bandwidth},
          {"copy_bandwidth", rates.copy_bandwidth},
          {"peak_bandwidth", rates.peak_bandwidth}};
}

// Some variables of containers are pages long; --json has them whole.
std::string shortened(const std::string& value) {
  constexpr size_t most = 160;
  return value.size() <= most ? value : fmt::format("{}… ({} characters)", value.substr(0, most), value.size());
}

int print_machine(const DoctorFlags& flags) {
  tools::DoctorReport report = tools::examine_machine({.measure = !flags.no_measure});
  if (flags.json) {
    nlohmann::json document = nlohmann::json::object();
    for (const auto& section : report.sections) {
      for (const auto& [name, value] : section.lines) document[section.title][name] = value;
    }
    document["warnings"] = report.warnings;
    if (report.speed)
      document["measured"] = {{"one", to_json(report.speed->one)},
                              {"all", to_json(report.speed->all)},
                              {"memory_bytes", report.speed->memory_bytes},
                              {"seconds", report.speed->seconds}};
    fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return fine;
  }
  for (const auto& section : report.sections) {
    fmt::print("{}\n", section.title);
    for (const auto& [name, value] : section.lines) fmt::print("  {:<25} {}\n", name, shortened(value));
  }
  for (const std::string& warning : report.warnings) fmt::print("warning: {}\n", warning);
  return fine;
}

nlohmann::json to_json(const tools::OperatorInfo& op) {
  nlohmann::ordered_json types = nlohmann::ordered_json::object();
  for (const auto& [variable, names] : op.types) types[variable] = names;
  nlohmann::ordered_json additions = nlohmann::ordered_json::object();
  for (const auto& [what, version] : op.additions) additions[what] = version;
  return {{"operator", op.name},   {"domain", op.domain.empty() ? "ai.onnx" : op.domain},
          {"folder", op.folder},   {"versions", op.versions},
          {"types", types},        {"providers", op.providers},
          {"retired", op.retired}, {"decomposes", op.decomposes},
          {"changes", op.changes}, {"ways_back", op.ways_back},
          {"additions", additions}};
}

int print_operators(bool as_json) {
  std::vector<tools::OperatorInfo> operators = tools::list_operators();
  if (as_json) {
    nlohmann::json document = {{"operators", nlohmann::json::array()}};
    for (const auto& op : operators) document["operators"].push_back(to_json(op));
    fmt::print("{}\n", document.dump(2));
    return fine;
  }
  for (const auto& op : operators) {
    std::string name = op.domain.empty() ? op.name : op.domain + "." + op.name;
    fmt::print("{:<40} {:<8} {:<12} since {}\n", name, fmt::join(op.providers, ","), op.decomposes ? "decomposes" : "",
               fmt::join(op.versions, ", "));
  }
  return fine;
}

}  // namespace

void add_doctor(CLI::App& program, Action& action) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command = program.add_subcommand("doctor", "Describe the machine as Tenon sees it, for bug reports");
  command->add_flag("--operators", flags->operators, "List the operators instead: versions, types, providers");
  command->add_flag("--no-measure", flags->no_measure, "Leave out the self-test, which takes two seconds");
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] {
    action = [flags] { return flags->operators ? print_operators(flags->json) : print_machine(*flags); };
  });
}

}  // namespace tenon::cli
