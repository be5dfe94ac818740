#include <algorithm>
#include <map>
#include <set>

#include "base/fail.h"
#include "ops/operator.h"
#include "tenon/tools/convert.h"
#include "tools/check/target.h"

namespace tenon::tools {
namespace {

constexpr CheckRule rules[] = {
    {"target-opset", Severity::error, "opsets that are newer than the target takes"},
    {"target-ir-version", Severity::error, "an IR version that is newer than the target takes"},
    {"target-operator", Severity::error, "operators, in the model's version, that the target does not run"},
    {"target-type", Severity::error, "operators that the target does not run with the types they have"},
    {"target-fallback", Severity::warning, "nodes that another provider than the one asked for would run"},
    {"target-unknown", Severity::note, "nodes about which nothing is known there"},
};

// That `tenon convert` goes down to.
constexpr int oldest_opset = 7;

// "tensor(float)" as tables write it: "float"; "" where it is not known.
std::string short_type(const ir::Type& type) {
  if (!type.known()) return "";
  std::string text = type.name();
  for (size_t at; (at = text.find("tensor(")) != std::string::npos;) {
    const size_t end = text.find(')', at);
    text.erase(end, 1);
    text.erase(at, 7);
  }
  std::erase(text, ' ');
  return text.find('?') == std::string::npos ? text : "";
}

// A node as tables see it.
struct NodeUse {
  const ir::Node& node;
  const ops::Operator* op;                   // null if Tenon does not have it
  std::string name;                          // in tables
  int64_t version;                           // of the operator
  std::vector<std::string> inputs, outputs;  // types; "" where not known
};

// The type of a parameter in a node, "" if it is not known.
std::string type_at(const TypeSupport& support, const NodeUse& use) {
  auto first = [](const std::vector<int>& places, bool repeats, const std::vector<std::string>& types) {
    for (size_t i = 0; i < types.size(); ++i) {
      const bool is_one = std::ranges::find(places, static_cast<int>(i)) != places.end() ||
                          (repeats && static_cast<int>(i) > places.back());
      if (is_one && !types[i].empty()) return types[i];
    }
    return std::string();
  };
  // Documents mean the first input; a kernel whose operator has no known schema could mean any.
  if (support.inputs.empty() && support.outputs.empty())
    return support.evidence == Evidence::documented && !use.inputs.empty() ? use.inputs[0] : "";
  const std::string type = first(support.inputs, support.inputs_repeat, use.inputs);
  return type.empty() ? first(support.outputs, support.outputs_repeat, use.outputs) : type;
}

// What a table says about a node in one release.
struct Verdict {
  enum class Kind : uint8_t { runs, no_operator, no_type, fails_to_run, unknown } kind = Kind::runs;
  std::string parameter, type;  // of no_type and fails_to_run
};

bool is_positive(const TypeSupport& support) { return support.evidence != Evidence::fails; }

Verdict verdict(const TargetFacts& facts, const NodeUse& use, int64_t version, size_t release) {
  const std::span<const TypeSupport> all = facts.support(use.name);
  if (all.empty() && !facts.covers(use.node.domain.empty() ? "" : ir::canonical_domain(use.node.domain)))
    return {Verdict::Kind::unknown, "", ""};
  bool has_version = false;
  std::map<std::string, Verdict> by_parameter;  // of parameters whose type is known
  for (const TypeSupport& support : all) {
    if (support.since_version != 0 && support.since_version != version) continue;
    if (!support.releases[release]) continue;
    has_version = has_version || is_positive(support);
    const std::string type = type_at(support, use);
    if (type.empty()) continue;
    auto at =
        by_parameter.try_emplace(support.parameter, Verdict{Verdict::Kind::no_type, support.parameter, type}).first;
    if (!support.allows(type)) continue;
    if (is_positive(support))
      at->second.kind = Verdict::Kind::runs;
    else if (at->second.kind == Verdict::Kind::no_type)
      at->second.kind = Verdict::Kind::fails_to_run;
  }
  if (!has_version) return {Verdict::Kind::no_operator, "", ""};
  for (const auto& [_, each] : by_parameter) {
    if (each.kind != Verdict::Kind::runs) return each;
  }
  return {};
}

bool runs(const TargetFacts& facts, const NodeUse& use, int64_t version, size_t release) {
  return verdict(facts, use, version, release).kind == Verdict::Kind::runs;
}

class TargetCheck {
 public:
  TargetCheck(const Subject& subject, const Target& target, std::string model_name, std::vector<Finding>& findings)
      : subject_(subject), target_(target), model_name_(std::move(model_name)), findings_(findings) {
    for (const auto& function : subject.model.functions) functions_.insert({function->domain, function->name});
  }

  void run() {
    check_limits();
    for_each_node(subject_.model, [&](const ir::Node& node, const ir::OpsetImports& imports) {
      if (functions_.contains({node.domain, node.op_type})) return;  // its body is looked at
      check_node(use_of(node, imports));
    });
  }

 private:
  Findings rule(std::string_view code) const {
    const auto found = std::ranges::find(rules, code, &CheckRule::code);
    return Findings(findings_, std::string(code), found->severity);
  }

  std::string convert(const std::string& options) const {
    return fmt::format("`tenon convert {} {} -o OUT`", model_name_, options);
  }

  void check_limits() {
    const Release& limits = target_.limits;
    for (const auto& [domain, version] : subject_.model.opset_imports.entries()) {
      const std::string_view canonical = ir::canonical_domain(domain);
      const bool is_ml = canonical == ops::ai_onnx_ml;
      if (!canonical.empty() && !is_ml) continue;
      const int64_t newest = is_ml ? limits.ml_opset : limits.opset;
      if (newest == 0 || version <= newest) continue;
      rule("target-opset")
          .add(fmt::format("it imports opset {} of {}, {} takes up to {}{}", version, is_ml ? "ai.onnx.ml" : "ai.onnx",
                           target_.name, newest, later_with_opset(version, is_ml)),
               is_ml ? fmt::format("export it with opset {} of ai.onnx.ml", newest)
                     : convert(fmt::format("--opset {}", newest)));
    }
    if (limits.ir_version > 0 && subject_.model.ir_version > limits.ir_version)
      rule("target-ir-version")
          .add(fmt::format("it has IR version {}, {} takes up to {}", subject_.model.ir_version, target_.name,
                           limits.ir_version),
               convert(fmt::format("--ir-version {}", limits.ir_version)));
  }

  // "; 1.18.0 and later do" where a later release takes an opset.
  std::string later_with_opset(int64_t version, bool is_ml) const {
    if (target_.tables.empty()) return "";
    for (const Release& release : target_.tables.back().facts->releases()) {
      if ((is_ml ? release.ml_opset : release.opset) >= version && release.numbers > target_.limits.numbers)
        return fmt::format("; {} takes it", release.version);
    }
    return "";
  }

  NodeUse use_of(const ir::Node& node, const ir::OpsetImports& imports) const {
    const std::string domain(ir::canonical_domain(node.domain));
    const ops::Operator* op = ops::operators().find(domain, node.op_type);
    const int64_t opset = imports.version(domain);
    NodeUse use{node, op, domain.empty() ? node.op_type : domain + "." + node.op_type, 1, {}, {}};
    if (op) use.version = opset > 0 ? op->version_at(opset) : op->newest_version();
    auto type_of = [&](const ir::Value* value) { return value ? short_type(subject_.type_of(*value)) : ""; };
    for (const ir::Value* value : node.inputs()) use.inputs.push_back(type_of(value));
    for (const ir::Value* value : node.outputs()) use.outputs.push_back(type_of(value));
    return use;
  }

  void check_node(const NodeUse& use) {
    if (target_.tables.empty()) return check_opset(use);
    std::vector<Verdict> verdicts;
    for (const Target::Table& table : target_.tables) {
      verdicts.push_back(verdict(*table.facts, use, use.version, table.release));
      if (verdicts.back().kind == Verdict::Kind::runs) break;
    }
    const Verdict& last = verdicts.back();
    if (last.kind == Verdict::Kind::runs && verdicts.size() == 1) return;
    if (last.kind == Verdict::Kind::runs) return report_fallback(use, verdicts);
    if (last.kind == Verdict::Kind::unknown) {
      rule("target-unknown").at_node(use.node, fmt::format("nothing is known about {} in {}", use.name, target_.name));
      return;
    }
    const Target::Table& table = target_.tables.back();
    const std::string_view code = last.kind == Verdict::Kind::no_operator ? "target-operator" : "target-type";
    rule(code).at_node(use.node, reason(use, last, table) + since(use, table), help(use, table));
  }

  void report_fallback(const NodeUse& use, const std::vector<Verdict>& verdicts) {
    const Target::Table& wanted = target_.tables.front();
    const Target::Table& actual = target_.tables[verdicts.size() - 1];
    rule("target-fallback")
        .at_node(use.node,
                 fmt::format("{}; it falls back to {}", reason(use, verdicts.front(), wanted), actual.provider),
                 help(use, wanted));
  }

  // Only the versions of operators count.
  void check_opset(const NodeUse& use) {
    const bool is_onnx = use.op && use.op->domain.empty();
    if (!is_onnx || use.version <= target_.limits.opset) return;
    rule("target-operator")
        .at_node(use.node,
                 use.op->versions.front() > target_.limits.opset
                     ? fmt::format("{} came with opset {}", use.name, use.op->versions.front())
                     : fmt::format("it is version {} of {}, {} has version {}", use.version, use.name, target_.name,
                                   use.op->version_at(target_.limits.opset)),
                 convert_to(use, target_.limits.opset));
  }

  // The command that brings the node to another opset, or why it cannot.
  std::string convert_to(const NodeUse& use, int64_t opset) {
    const std::map<std::string, std::string>& blockers = blockers_at(opset);
    const auto found = blockers.find(use.node.describe());
    if (found != blockers.end()) return "`tenon convert` cannot help: " + found->second;
    const std::string others =
        blockers.empty() ? ""
                         : fmt::format(", but for {} other node{}", blockers.size(), blockers.size() == 1 ? "" : "s");
    return convert(fmt::format("--opset {}", opset)) + others;
  }

  // Reasons by node; a model that is broken cannot be converted at all.
  const std::map<std::string, std::string>& blockers_at(int64_t opset) {
    auto [at, added] = blockers_.try_emplace(opset);
    if (!added || opset < 7) return at->second;
    ConvertOptions options;
    options.opsets[""] = opset;
    try {
      const OnnxModel model(std::shared_ptr<const ir::Model>(subject_.model.clone()));
      for (const ConversionBlocker& blocker : tools::convert(model, options).blockers)
        at->second.emplace(blocker.node, blocker.reason);
    } catch (const Error&) {
      // What is wrong with it is reported by the other rules.
    }
    return at->second;
  }

  std::string reason(const NodeUse& use, const Verdict& verdict, const Target::Table& table) const {
    const std::string where = table.facts->releases()[table.release].version;
    const std::string who =
        target_.tables.size() == 1 ? target_.name : fmt::format("{} (release {})", table.provider, where);
    if (verdict.kind == Verdict::Kind::no_operator)
      return fmt::format("{} does not run version {} of {}", who, use.version, use.name);
    if (verdict.kind == Verdict::Kind::fails_to_run)
      return fmt::format("{} makes a session with {} of {} ({}), but running it fails", who, use.name, verdict.type,
                         verdict.parameter);
    if (verdict.kind == Verdict::Kind::unknown) return fmt::format("nothing is known about {} on {}", use.name, who);
    return fmt::format("{} does not run version {} of {} with {}{}", who, use.version, use.name, verdict.type,
                       verdict.parameter.empty() ? "" : fmt::format(" for {}", verdict.parameter));
  }

  // "; 1.19.0 and later do", if a later release runs the node.
  static std::string since(const NodeUse& use, const Target::Table& table) {
    for (size_t later = table.release + 1; later < table.facts->releases().size(); ++later) {
      if (runs(*table.facts, use, use.version, later))
        return fmt::format("; {} does", table.facts->releases()[later].version);
    }
    return "; no release that is known does";
  }

  // Whether another opset that the target takes has a form of the operator that it runs.
  std::string help(const NodeUse& use, const Target::Table& table) {
    if (!use.op || !use.op->domain.empty()) return "`tenon convert` cannot help: the operator has one form only";
    const int64_t newest =
        target_.limits.opset > 0 ? std::min(target_.limits.opset, ops::newest_opset) : ops::newest_opset;
    for (int64_t opset = newest; opset >= std::max(oldest_opset, use.op->versions.front()); --opset) {
      const int64_t version = use.op->version_at(opset);
      if (version != use.version && runs(*table.facts, use, version, table.release)) return convert_to(use, opset);
    }
    if (use.op->decomposition && use.op->versions.front() > oldest_opset)
      return convert_to(use, std::min<int64_t>(newest, use.op->versions.front() - 1)) + " (in smaller operators)";
    return "`tenon convert` cannot help: no version of it runs there with these types";
  }

  const Subject& subject_;
  const Target& target_;
  std::string model_name_;
  std::vector<Finding>& findings_;
  std::set<std::pair<std::string, std::string>> functions_;
  std::map<int64_t, std::map<std::string, std::string>> blockers_;  // by opset
};

}  // namespace

std::span<const CheckRule> target_rules() { return rules; }

void check_target(const Subject& subject, const Target& target, const std::string& model_name,
                  std::vector<Finding>& findings) {
  TargetCheck(subject, target, model_name, findings).run();
}

}  // namespace tenon::tools
