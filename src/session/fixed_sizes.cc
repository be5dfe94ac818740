#include "session/fixed_sizes.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/fail.h"

namespace tenon {
namespace {

// `change` is called with every dimension of the type.
void change_dims(ir::Type& type, const std::function<void(Dim&)>& change) {
  if (type.inner) {
    ir::Type inner = *type.inner;
    change_dims(inner, change);
    type.inner = std::make_shared<const ir::Type>(std::move(inner));
  }
  if (type.shape) std::ranges::for_each(*type.shape, change);
}

// Of all values, in subgraphs too.
void change_dims(ir::Graph& graph, const std::function<void(Dim&)>& change) {
  for (ir::Value& value : graph.values()) change_dims(value.type, change);
  for (ir::Node& node : graph.nodes()) {
    for (ir::Attribute& attribute : node.attributes)
      attribute.for_each_graph([&](ir::Graph& inner) { change_dims(inner, change); });
  }
}

class SizeFixer {
 public:
  explicit SizeFixer(const SessionOptions& options) : sizes_(options.sizes), denoted_(options.denoted_sizes) {
    check(sizes_);
    check(denoted_);
  }

  // Sizes that a name has are fixed wherever the model uses it.
  void fix_denoted(ir::Value& input) {
    ir::Type& type = input.type;
    if (!type.details || !type.shape) return;
    const std::vector<std::string>& denotations = type.details->dim_denotations;
    for (size_t axis = 0; axis < std::min(denotations.size(), type.shape->size()); ++axis) {
      auto found = denoted_.find(denotations[axis]);
      if (found == denoted_.end()) continue;
      used_.insert(found->first);
      Dim& dim = (*type.shape)[axis];
      if (dim.is_known()) continue;
      if (!dim.symbol_name().empty() && !dim.has_unknown())
        sizes_.try_emplace(std::string(dim.symbol_name()), found->second);
      dim = found->second;
    }
  }

  void fix(ir::Graph& graph) {
    change_dims(graph, [&](Dim& dim) {
      auto found = dim.is_known() ? sizes_.end() : sizes_.find(std::string(dim.symbol_name()));
      if (found == sizes_.end()) return;
      used_.insert(found->first);
      dim = found->second;
    });
  }

  std::vector<std::string> unused(const SessionOptions& options) const {
    std::vector<std::string> notes;
    for (const auto& [name, _] : options.sizes) {
      if (!used_.contains(name)) notes.push_back(fmt::format("the model has no dimension that is called '{}'", name));
    }
    for (const auto& [name, _] : options.denoted_sizes) {
      if (!used_.contains(name)) notes.push_back(fmt::format("no input has a dimension that is denoted '{}'", name));
    }
    return notes;
  }

 private:
  static void check(const std::map<std::string, int64_t>& sizes) {
    for (const auto& [name, size] : sizes) {
      if (size < 0) fail(ErrorCode::invalid_argument, "the size given for '{}' is negative: {}", name, size);
    }
  }

  std::map<std::string, int64_t> sizes_;
  const std::map<std::string, int64_t>& denoted_;
  std::set<std::string> used_;
};

}  // namespace

std::vector<std::string> fix_sizes(ir::Graph& graph, const SessionOptions& options) {
  if (options.sizes.empty() && options.denoted_sizes.empty()) return {};
  SizeFixer fixer(options);
  for (ir::Value* input : graph.inputs()) fixer.fix_denoted(*input);
  fixer.fix(graph);
  return fixer.unused(options);
}

void forget_size_names(ir::Graph& graph) {
  change_dims(graph, [](Dim& dim) {
    if (!dim.is_known()) dim = Dim::unknown();
  });
}

}  // namespace tenon
