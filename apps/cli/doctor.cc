#include "tenon/tools/doctor.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli.h"

namespace tenon::cli {

void add_doctor(CLI::App& program, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand("doctor", "Describe the machine as Tenon sees it, for bug reports");
  command->add_flag("--json", *json, "Print one JSON document");
  command->callback([json, &action] {
    action = [json] {
      tools::DoctorReport report = tools::examine_machine();
      if (*json) {
        nlohmann::json document = nlohmann::json::object();
        for (const auto& section : report.sections) {
          for (const auto& [name, value] : section.lines) document[section.title][name] = value;
        }
        document["warnings"] = report.warnings;
        fmt::print("{}\n", document.dump(2));
        return fine;
      }
      for (const auto& section : report.sections) {
        fmt::print("{}\n", section.title);
        for (const auto& [name, value] : section.lines) fmt::print("  {:<26}{}\n", name, value);
      }
      for (const std::string& warning : report.warnings) fmt::print("warning: {}\n", warning);
      return fine;
    };
  });
}

}  // namespace tenon::cli
