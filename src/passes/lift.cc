#include "passes/lift.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/fail.h"
#include "base/names.h"
#include "ir/format_versions.h"
#include "ir/unique_names.h"
#include "ops/operator.h"
#include "ops/stand_in.h"

namespace tenon::passes {
namespace {

class Lifter {
 public:
  // With `targets`, adapters to later versions are left for later; domains that are not there stay as they are.
  Lifter(ir::Model& model, const ops::CustomOperatorList& custom, const OpsetVersions* targets = nullptr,
         std::vector<LiftProblem>* problems = nullptr)
      : model_(model), custom_(custom), targets_(targets), problems_(problems) {
    for (const auto& function : model.functions) functions_.insert({function->domain, function->name});
  }

  std::vector<std::string> run() {
    if (model_.ir_version > ir::newest_ir_version) {
      notes_.push_back(
          fmt::format("the model has IR version {}, newer than {}; it runs if all it contains is understood",
                      model_.ir_version, ir::newest_ir_version));
    }
    note_new_opsets(model_.opset_imports);
    lift_graph(*model_.graph, model_.opset_imports);
    for (const auto& function : model_.functions) lift_graph(*function->body, function->opset_imports);
    throw_unknown();
    return std::move(notes_);
  }

 private:
  void note_new_opsets(const ir::OpsetImports& imports) {
    for (const auto& [domain, version] : imports.entries()) {
      int64_t newest = ops::newest_opset_of(ir::canonical_domain(domain));
      if (newest > 0 && version > newest) {
        notes_.push_back(fmt::format(
            "the model imports opset {} of '{}', newer than {}; its operators are taken to mean what they mean there",
            version, domain.empty() ? "ai.onnx" : domain, newest));
      }
    }
  }

  void lift_graph(ir::Graph& graph, const ir::OpsetImports& imports) {
    std::vector<ir::Node*> nodes;
    for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
    for (ir::Node* node : nodes) {
      for (const ir::Attribute& attribute : node->attributes) {
        attribute.for_each_graph([&](ir::Graph& subgraph) { lift_graph(subgraph, imports); });
      }
      if (functions_.count({node->domain, node->op_type})) continue;
      node->domain = ir::canonical_domain(node->domain);
      lift_node(*node, imports.version(node->domain));
    }
  }

  void lift_node(ir::Node& node, int64_t opset) {
    if (targets_ && !targets_->contains(node.domain)) return;
    node.custom_operator = custom_.find(node.domain, node.op_type, opset);
    const ops::Operator* op = ops::operator_of(node);
    if (!op && problems_) {
      leave(node, Error(ErrorCode::unknown_operator, unknown_text(node.domain, node.op_type)));
      return;
    }
    if (!op) {
      unknown_[{node.domain, node.op_type}].push_back(node.describe());
      return;
    }
    if (opset == 0) opset = op->newest_version();
    if (opset < op->versions.front()) {
      notes_.push_back(fmt::format("{} came with opset {}, the model imports {}; it runs all the same", node.describe(),
                                   op->versions.front(), opset));
    }
    try {
      while (true) {
        int version = op->version_at(opset);
        auto adapter = std::ranges::find_if(op->adapters, [&](const ops::Adapter& a) {
          return a.from <= version && version < a.to && a.to <= last_version(op->domain);
        });
        if (adapter == op->adapters.end()) break;
        adapter->lift(node);
        opset = adapter->to;
        op = ops::operator_of(node);
        TENON_CHECK(op);
      }
    } catch (Error& error) {
      if (!problems_) throw error.at_node(node.describe());
      leave(node, error);
    }
  }

  int64_t last_version(const std::string& domain) const {
    if (!targets_) return std::numeric_limits<int64_t>::max();
    auto target = targets_->find(domain);
    return target == targets_->end() ? 0 : target->second;
  }

  void leave(ir::Node& node, const Error& error) {
    problems_->push_back({node.describe(), node.domain, error});
    node.custom_operator = ops::stand_in_operator();
  }

  bool knows_domain(const std::string& domain) const {
    return !custom_.names_of(domain).empty() || ops::operators().knows_domain(domain);
  }

  // What is nearest to an operator that is not known, "" if nothing is.
  std::string_view nearest_operator(const std::string& domain, const std::string& name) const {
    std::vector<std::string_view> names = custom_.names_of(domain);
    for (const ops::Operator* op : ops::operators().all()) {
      if (op->domain == domain) names.push_back(op->name);
    }
    return nearest_name(name, names);
  }

  std::string unknown_text(const std::string& domain, const std::string& name) const {
    const std::string full = ops::full_name(domain, name);
    if (!knows_domain(domain))
      return fmt::format("Tenon does not know {}: the domain '{}' is unknown and the model defines no function of it",
                         full, domain);
    const std::string_view nearest = nearest_operator(domain, name);
    return fmt::format("Tenon does not know {}{}", full,
                       nearest.empty() ? "" : fmt::format("; the nearest known one is {}", nearest));
  }

  void throw_unknown() const {
    if (unknown_.empty()) return;
    std::string text = unknown_.size() == 1
                           ? "Tenon does not know an operator of this model:"
                           : fmt::format("Tenon does not know {} operators of this model:", unknown_.size());
    std::string hint;
    for (const auto& [key, nodes] : unknown_) {
      const auto& [domain, name] = key;
      std::string suggestion;
      if (!knows_domain(domain)) {
        suggestion = fmt::format("; the domain '{}' is unknown and the model defines no function of it", domain);
        hint = "operators of your own come with SessionOptions::custom_operators or --custom-operators";
      } else {
        std::string_view nearest = nearest_operator(domain, name);
        if (!nearest.empty()) suggestion = fmt::format("; the nearest known one is {}", nearest);
      }
      std::string times = nodes.size() == 1 ? "" : fmt::format(" and {} more", nodes.size() - 1);
      text += fmt::format("\n  {}{}{}: {}{}{}", domain, domain.empty() ? "" : ".", name, nodes[0], times, suggestion);
    }
    throw Error(ErrorCode::unknown_operator, text, hint);
  }

  ir::Model& model_;
  const ops::CustomOperatorList& custom_;
  const OpsetVersions* targets_;
  std::vector<LiftProblem>* problems_;
  std::set<std::pair<std::string, std::string>> functions_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> unknown_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> lift_to_newest_opset(ir::Model& model, const ops::CustomOperatorList& custom,
                                              std::vector<LiftProblem>* problems) {
  return Lifter(model, custom, nullptr, problems).run();
}

void lift_to_opsets(ir::Model& model, const OpsetVersions& versions, const ops::CustomOperatorList& custom) {
  Lifter(model, custom, &versions).run();
  auto import_at_least = [&](ir::OpsetImports& imports) {
    for (const auto& [domain, version] : versions) {
      int64_t imported = imports.version(domain);
      if (imported > 0 && imported < version) imports.set(domain, version);
    }
  };
  import_at_least(model.opset_imports);
  for (const auto& function : model.functions) import_at_least(function->opset_imports);
  ir::make_names_unique(model);
}

}  // namespace tenon::passes
