#include "tenon/tools/check.h"

#include <algorithm>

#include "base/fail.h"
#include "base/names.h"
#include "ir/count.h"
#include "session/custom_operator.h"
#include "tools/check/subject.h"
#include "tools/check/target.h"

namespace tenon::tools {
namespace {

std::vector<Rule> all_rules() {
  std::vector<Rule> list;
  for (std::span<const Rule> part : {structure_rules(), operator_rules(), value_rules()})
    list.insert(list.end(), part.begin(), part.end());
  return list;
}

void require_known_rules(const std::vector<std::string>& codes) {
  std::vector<std::string_view> known;
  for (const CheckRule& rule : check_rules()) known.push_back(rule.code);
  for (const std::string& code : codes) {
    if (std::ranges::find(known, code) != known.end()) continue;
    const std::string_view nearest = nearest_name(code, known);
    throw Error(
        ErrorCode::invalid_argument, fmt::format("there is no rule '{}'", code),
        nearest.empty() ? "`tenon check --list-rules` prints them" : fmt::format("did you mean '{}'?", nearest));
  }
}

int64_t count_nodes(const ir::Model& model) {
  size_t count = ir::count_nodes(*model.graph);
  for (const auto& function : model.functions) count += ir::count_nodes(*function->body);
  return static_cast<int64_t>(count);
}

CheckReport check_model(const ir::Model& model, std::vector<onnx::ExternalProblem> external_problems,
                        const std::string& model_name, const CheckOptions& options) {
  require_known_rules(options.disabled);
  auto is_disabled = [&](std::string_view code) { return std::ranges::count(options.disabled, code) > 0; };
  std::optional<Target> target;
  if (!options.target.empty()) target = Target::parse(options.target, options.provider);

  CheckReport report;
  report.nodes = count_nodes(model);
  const Subject subject =
      understand(model, std::move(external_problems),
                 list_custom_operators(options.session.custom_operators, options.session.custom_operator_libraries));
  for (const Rule& rule : all_rules()) {
    if (is_disabled(rule.about.code)) continue;
    Findings findings(report.findings, std::string(rule.about.code), rule.about.severity);
    rule.find(subject, findings);
  }
  if (target) {
    report.target = target->name;
    report.provider = options.provider;
    report.basis = target->basis;
    check_target(subject, *target, model_name, report.findings);
    std::erase_if(report.findings, [&](const Finding& finding) { return is_disabled(finding.code); });
  }
  std::ranges::stable_sort(report.findings, std::greater(), &Finding::severity);
  return report;
}

}  // namespace

std::string_view name_of(Severity severity) {
  constexpr std::string_view names[] = {"note", "warning", "error"};
  return names[static_cast<size_t>(severity)];
}

int64_t CheckReport::count(Severity severity) const {
  return std::ranges::count(findings, severity, &Finding::severity);
}

std::vector<CheckRule> check_rules() {
  std::vector<CheckRule> list;
  for (const Rule& rule : all_rules()) list.push_back(rule.about);
  for (const CheckRule& rule : target_rules()) list.push_back(rule);
  return list;
}

CheckReport check(const std::filesystem::path& path, const CheckOptions& options) {
  std::vector<onnx::ExternalProblem> problems;
  onnx::ReadOptions reading;
  reading.external_problems = &problems;
  const std::unique_ptr<ir::Model> model = onnx::load_model(path, nullptr, reading);
  return check_model(*model, std::move(problems), options.model_name.empty() ? path.string() : options.model_name,
                     options);
}

CheckReport check(const OnnxModel& model, const CheckOptions& options) {
  return check_model(model.ir(), {}, options.model_name.empty() ? "MODEL" : options.model_name, options);
}

}  // namespace tenon::tools
