#include "tenon/tools/rename.h"

#include <cctype>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "tools/graph_edit.h"
#include "tools/type_edit.h"

namespace tenon::tools {
namespace {

// One "old=new", with at most one '*' on each side.
class Rule {
 public:
  Rule(const std::string& from, const std::string& to) : from_(from), to_(to), star_(from.find('*')) {
    if (from.empty() || to.empty()) fail(ErrorCode::invalid_argument, "'{}={}' lacks a name", from, to);
    const bool is_pattern = star_ != std::string::npos;
    const bool twice = is_pattern && from.find('*', star_ + 1) != std::string::npos;
    if (twice || (!is_pattern && to.find('*') != std::string::npos) || to.find('*') != to.rfind('*'))
      fail(ErrorCode::invalid_argument, "'{}={}' may have one '*' in the old name, and then one in the new one", from,
           to);
  }

  // The new name for one that fits, else nothing.
  std::optional<std::string> apply(const std::string& name) const {
    if (star_ == std::string::npos) return name == from_ ? std::optional(to_) : std::nullopt;
    const std::string_view head = std::string_view(from_).substr(0, star_),
                           tail = std::string_view(from_).substr(star_ + 1);
    if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail))
      return std::nullopt;
    std::string result = to_;
    const size_t at = result.find('*');
    if (at != std::string::npos)
      result.replace(at, 1, name.substr(head.size(), name.size() - head.size() - tail.size()));
    return result;
  }

  const std::string& from() const { return from_; }
  bool used = false;

 private:
  std::string from_, to_;
  size_t star_;
};

// The rules for one kind of thing, and what they fit.
class Rules {
 public:
  Rules(std::string kind, const NameRules& rules) : kind_(std::move(kind)) {
    for (const auto& [from, to] : rules) rules_.emplace_back(from, to);
  }

  // The new name of `name`, which is the same where no rule fits.
  std::string apply(const std::string& name) {
    seen_.insert(name);
    for (Rule& rule : rules_) {
      std::optional<std::string> result = rule.apply(name);
      if (!result) continue;
      rule.used = true;
      return *result;
    }
    return name;
  }

  // Throws for a rule that fitted none of the names that came by.
  void require_all_used() const {
    for (const Rule& rule : rules_) {
      if (rule.used) continue;
      throw Error(ErrorCode::unknown_name, fmt::format("the model has no {} '{}'", kind_, rule.from()),
                  nearest_hint(rule.from(), {seen_.begin(), seen_.end()}));
    }
  }

  bool empty() const { return rules_.empty(); }

 private:
  std::string kind_;
  std::vector<Rule> rules_;
  std::set<std::string> seen_;
};

using NewNames = std::map<std::string, std::string>;

class Renamer {
 public:
  Renamer(ir::Model& model, const RenameOptions& options)
      : graph_(*model.graph),
        options_(options),
        values_("value", options.values),
        nodes_("node", options.nodes),
        dims_("dimension", options.dims) {}

  void run() {
    rename_values();
    rename_nodes();
    if (!dims_.empty()) rename_dims();
  }

  std::vector<ModelChange> changes;

 private:
  void rename_values() {
    std::set<std::string> kept;
    if (options_.keep_io) {
      for (const ir::Value* value : graph_.inputs()) kept.insert(value->name);
      for (const ir::Value* value : graph_.outputs()) kept.insert(value->name);
    }
    NewNames names;
    for_each_graph(graph_, [&](const ir::Graph& graph) {
      for (const ir::Value& value : graph.values()) {
        if (value.name.empty()) continue;
        std::string name = values_.apply(value.name);
        if (name == value.name && !kept.contains(name)) name = options_.prefix + name;
        if (name != value.name) names.emplace(value.name, std::move(name));
      }
    });
    values_.require_all_used();
    for (const auto& [from, to] : names) changes.push_back({"renamed value", from, to});
    apply(names);
    std::unordered_map<std::string, const ir::Value*> visible;
    require_no_clash(graph_, names, visible);
  }

  void apply(const NewNames& names) {
    const auto replace = [&](std::string& name) {
      if (auto found = names.find(name); found != names.end()) name = found->second;
    };
    for_each_graph(graph_, [&](ir::Graph& graph) {
      for (ir::Value& value : graph.values()) {
        replace(value.name);
        if (value.is_initializer()) rename_initializer(value);
      }
      for (auto& [tensor, parameters] : graph.quantization_annotations) {
        replace(tensor);
        for (auto& [_, name] : parameters) replace(name);
      }
    });
  }

  // A new name may not be that of another value in its graph or around it: there it would stand for that one.
  static void require_no_clash(const ir::Graph& graph, const NewNames& names,
                               std::unordered_map<std::string, const ir::Value*>& visible) {
    std::set<std::string> renamed;
    for (const auto& [_, to] : names) renamed.insert(to);
    std::vector<std::string> own;
    for (const ir::Value& value : graph.values()) {
      if (value.name.empty() || value.is_undefined()) continue;
      if (visible.emplace(value.name, &value).second) {
        own.push_back(value.name);
      } else if (renamed.contains(value.name)) {
        throw Error(ErrorCode::duplicate_name, fmt::format("two values would be called '{}'", value.name),
                    "choose another name, or rename the other value too");
      }
    }
    for (const ir::Node& node : graph.nodes())
      for_each_subgraph(node, [&](const ir::Graph& inner) { require_no_clash(inner, names, visible); });
    for (const std::string& name : own) visible.erase(name);
  }

  void rename_nodes() {
    for_each_graph(graph_, [&](ir::Graph& graph) {
      for (ir::Node& node : graph.nodes()) {
        if (node.name.empty()) continue;
        std::string name = nodes_.apply(node.name);
        if (name == node.name) name = options_.prefix + name;
        if (name == node.name) continue;
        changes.push_back({"renamed node", node.name, name});
        node.name = std::move(name);
      }
    });
    nodes_.require_all_used();
  }

  void rename_dims() {
    std::set<std::string> before;
    const auto collect = [&](const Dim& dim) {
      if (dim.is_known()) return;
      for (const std::string& name : names_in(dim.to_string())) before.insert(name);
    };
    change_dims(graph_, [&](Dim& dim) { collect(dim); });
    NewNames names;
    for (const std::string& name : before) {
      std::string to = dims_.apply(name);
      if (to != name) names.emplace(name, std::move(to));
    }
    dims_.require_all_used();
    std::set<std::string> after;
    for (const std::string& name : before) {
      auto found = names.find(name);
      if (!after.insert(found == names.end() ? name : found->second).second)
        fail(ErrorCode::duplicate_name, "two dimensions would be called '{}'",
             found == names.end() ? name : found->second);
    }
    for (const auto& [from, to] : names) changes.push_back({"renamed dimension", from, to});
    change_dims(graph_, [&](Dim& dim) {
      if (!dim.is_known() && !dim.has_unknown()) dim = Dim::symbol(replace_names(dim.to_string(), names));
    });
  }

  ir::Graph& graph_;
  const RenameOptions& options_;
  Rules values_, nodes_, dims_;
};

}  // namespace

ChangedModel rename(const OnnxModel& model, const RenameOptions& options) {
  if (options.values.empty() && options.nodes.empty() && options.dims.empty() && options.prefix.empty())
    fail(ErrorCode::invalid_argument, "no new names are given");
  std::unique_ptr<ir::Model> copy = model.ir().clone();
  Renamer renamer(*copy, options);
  renamer.run();
  return {model.with(std::move(copy)), std::move(renamer.changes), {}};
}

}  // namespace tenon::tools
