#include "tenon/tools/check.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli.h"

namespace tenon::cli {
namespace {

using tools::Finding;
using tools::Severity;

constexpr size_t most_shown = 5;  // of a rule, unless --all

struct CheckFlags {
  std::string model, target, provider = "cpu", format = "text";
  std::vector<std::string> disabled, libraries;
  bool all = false, json = false, list_rules = false, list_targets = false;
};

nlohmann::json to_json(const Finding& finding) {
  return {{"severity", tools::name_of(finding.severity)},
          {"code", finding.code},
          {"node", finding.node},
          {"tensor", finding.tensor},
          {"reason", finding.reason},
          {"fix", finding.fix}};
}

nlohmann::json to_json(const tools::CheckReport& report, const std::string& model) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& finding : report.findings) findings.push_back(to_json(finding));
  nlohmann::json json = {{"model", model},
                         {"ok", report.ok()},
                         {"nodes", report.nodes},
                         {"errors", report.count(Severity::error)},
                         {"warnings", report.count(Severity::warning)},
                         {"notes", report.count(Severity::note)},
                         {"findings", findings}};
  if (!report.target.empty()) {
    json["target"] = report.target;
    json["basis"] = report.basis;
  }
  return json;
}

std::string place(const Finding& finding) {
  std::string text = finding.node;
  if (!finding.tensor.empty()) text += fmt::format("{}tensor '{}'", text.empty() ? "" : ", ", finding.tensor);
  return text;
}

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Findings of a rule together, and what can be done once where it is the same for all.
void print_group(std::span<const Finding> group, bool all) {
  const Finding& first = group.front();
  const bool same_fix = std::ranges::all_of(group, [&](const Finding& f) { return f.fix == first.fix; });
  fmt::print("{} {} ({})\n", tools::name_of(first.severity), first.code, group.size());
  const size_t shown = all ? group.size() : std::min(group.size(), most_shown);
  for (const Finding& finding : group.first(shown)) {
    const std::string where = place(finding);
    fmt::print("  {}{}{}\n", where, where.empty() ? "" : ": ", finding.reason);
    if (!same_fix && !finding.fix.empty()) fmt::print("    fix: {}\n", finding.fix);
  }
  if (shown < group.size()) fmt::print("  … and {} more (--all prints them)\n", group.size() - shown);
  if (same_fix && !first.fix.empty()) fmt::print("  fix: {}\n", first.fix);
}

void print_text(const tools::CheckReport& report, bool all) {
  std::vector<std::vector<Finding>> groups;  // the report has the gravest first; a rule has one severity
  std::map<std::string, size_t> positions;
  for (const Finding& finding : report.findings) {
    auto [at, added] = positions.emplace(finding.code, groups.size());
    if (added) groups.emplace_back();
    groups[at->second].push_back(finding);
  }
  for (const auto& group : groups) print_group(group, all);
  const std::string target = report.target.empty() ? "" : fmt::format(" for {}", report.target);
  fmt::print("{}{}: {}, {}, {} in {}\n", report.ok() ? "ok" : "failed", target,
             counted(report.count(Severity::error), "error"), counted(report.count(Severity::warning), "warning"),
             counted(report.count(Severity::note), "note"), counted(report.nodes, "node"));
}

// As workflow commands of GitHub want it; commas and colons matter in properties only.
std::string escaped(std::string_view text, bool property) {
  std::string result;
  for (char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    result += special ? fmt::format("%{:02X}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return result;
}

void print_annotations(const tools::CheckReport& report, const std::string& model) {
  constexpr std::string_view commands[] = {"notice", "warning", "error"};
  for (const Finding& finding : report.findings) {
    const std::string where = place(finding);
    std::string text = where.empty() ? finding.reason : where + ": " + finding.reason;
    if (!finding.fix.empty()) text += "\nfix: " + finding.fix;
    fmt::print("::{} file={},title={}::{}\n", commands[static_cast<size_t>(finding.severity)], escaped(model, true),
               escaped("tenon check: " + finding.code, true), escaped(text, false));
  }
}

int list_rules(bool json) {
  nlohmann::json list = nlohmann::json::array();
  for (const tools::CheckRule& rule : tools::check_rules()) {
    const std::string_view severity = tools::name_of(rule.severity);
    if (json)
      list.push_back({{"code", rule.code}, {"severity", severity}, {"finds", rule.finds}});
    else
      fmt::print("{:<22} {:<8} {}\n", rule.code, severity, rule.finds);
  }
  if (json) fmt::print("{}\n", list.dump(2));
  return fine;
}

int list_targets(bool json) {
  const std::vector<std::string> targets = tools::known_targets();
  if (json) fmt::print("{}\n", nlohmann::json(targets).dump(2));
  for (const std::string& target : targets) {
    if (!json) fmt::print("{}\n", target);
  }
  return fine;
}

int check(const CheckFlags& flags) {
  if (flags.list_rules) return list_rules(flags.json);
  if (flags.list_targets) return list_targets(flags.json);
  if (flags.model.empty()) throw Error(ErrorCode::invalid_argument, "no model is given");
  if (flags.format != "text" && flags.format != "json" && flags.format != "github")
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no format", flags.format), "text, json or github");
  tools::CheckOptions options;
  options.target = flags.target;
  options.provider = flags.provider;
  options.disabled = flags.disabled;
  options.session.custom_operator_libraries.assign(flags.libraries.begin(), flags.libraries.end());
  const tools::CheckReport report = tools::check(std::filesystem::path(flags.model), options);
  if (flags.json || flags.format == "json")
    fmt::print("{}\n", to_json(report, flags.model).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else if (flags.format == "github")
    print_annotations(report, flags.model);
  else
    print_text(report, flags.all);
  return report.ok() ? fine : check_failed;
}

}  // namespace

void add_check(CLI::App& program, Action& action) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* command =
      program.add_subcommand("check", "Find all that is wrong with a model, and what keeps it from running elsewhere");
  command->add_option("model", flags->model, "The .onnx file")->type_name("MODEL");
  command
      ->add_option("--target", flags->target,
                   "Where it is to run: onnxruntime==1.16, openvino==2024.1, tensorrt==8.5 or opset==13")
      ->type_name("NAME==VERSION");
  command->add_option("--provider", flags->provider, "Of onnxruntime: cpu, cuda or tensorrt (default: cpu)");
  command->add_option("--disable", flags->disabled, "Rules to leave out")->delimiter(',')->type_name("RULE,…");
  command->add_option("--format", flags->format, "text, json, or github for annotations of its workflows");
  command->add_flag("--all", flags->all, "Print all findings of a rule, not the first few");
  command->add_flag("--list-rules", flags->list_rules, "Print every rule: code, severity, what it finds");
  command->add_flag("--list-targets", flags->list_targets, "Print what there are facts about");
  add_custom_operators(*command, flags->libraries);
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] { action = [flags] { return check(*flags); }; });
}

}  // namespace tenon::cli
