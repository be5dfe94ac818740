#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/fail.h"
#include "tenon/scalar.h"
#include "tools/check/subject.h"

namespace tenon::tools {
namespace {

struct NonFinite {
  int64_t nans = 0, infinities = 0, first = -1;
};

template <typename T>
NonFinite count_non_finite(const Tensor& tensor) {
  NonFinite result;
  const std::span<const T> data = tensor.data<T>();
  for (size_t i = 0; i < data.size(); ++i) {
    const auto number = static_cast<double>(static_cast<float>(data[i]));
    if (std::isfinite(number)) continue;
    ++(std::isnan(number) ? result.nans : result.infinities);
    if (result.first < 0) result.first = static_cast<int64_t>(i);
  }
  return result;
}

template <>
NonFinite count_non_finite<double>(const Tensor& tensor) {
  NonFinite result;
  const std::span<const double> data = tensor.data<double>();
  for (size_t i = 0; i < data.size(); ++i) {
    if (std::isfinite(data[i])) continue;
    ++(std::isnan(data[i]) ? result.nans : result.infinities);
    if (result.first < 0) result.first = static_cast<int64_t>(i);
  }
  return result;
}

NonFinite non_finite(const Tensor& tensor) {
  if (!has_content(tensor)) return {};
  switch (tensor.type()) {
    case ElementType::float32:
      return count_non_finite<float>(tensor);
    case ElementType::float64:
      return count_non_finite<double>(tensor);
    case ElementType::float16:
      return count_non_finite<float16>(tensor);
    case ElementType::bfloat16:
      return count_non_finite<bfloat16>(tensor);
    default:
      return {};
  }
}

void find_non_finite(const Subject& subject, Findings& findings, int64_t NonFinite::*kind, std::string_view what,
                     std::string_view fix) {
  for_each_constant(subject.model, [&](const ir::Constant& constant, const ir::Node* holder) {
    const NonFinite found = non_finite(constant.tensor);
    if (found.*kind == 0) return;
    findings.add_at(holder ? holder->describe() : "", constant.name,
                    fmt::format("{} of its {} elements {} {}", found.*kind, constant.tensor.elements(),
                                found.*kind == 1 ? "is" : "are", what),
                    std::string(fix));
  });
}

void find_nans(const Subject& subject, Findings& findings) {
  find_non_finite(subject, findings, &NonFinite::nans, "NaN", "train or export the weights again");
}

void find_infinities(const Subject& subject, Findings& findings) {
  find_non_finite(subject, findings, &NonFinite::infinities, "infinite",
                  "meant for masks; in weights, train or export them again");
}

bool is_double(const ir::Value* value) {
  return value && value->type.is_tensor() && value->type.element == ElementType::float64;
}

bool computes_in_double(const ir::Node& node) { return std::ranges::any_of(node.outputs(), is_double); }

// Nodes of one graph that compute in double, in groups that hang together.
std::vector<std::vector<const ir::Node*>> double_islands(const ir::Graph& graph) {
  std::vector<const ir::Node*> nodes;
  std::unordered_map<const ir::Node*, size_t> index;
  for (const ir::Node& node : graph.nodes()) {
    if (!computes_in_double(node)) continue;
    index.emplace(&node, nodes.size());
    nodes.push_back(&node);
  }
  std::vector<size_t> parent(nodes.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  auto root = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const ir::Value* input : nodes[i]->inputs()) {
      auto found = is_double(input) && input->producer() ? index.find(input->producer()) : index.end();
      if (found != index.end()) parent[root(i)] = root(found->second);
    }
  }
  std::unordered_map<size_t, size_t> position;
  std::vector<std::vector<const ir::Node*>> islands;
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto [at, added] = position.emplace(root(i), islands.size());
    if (added) islands.emplace_back();
    islands[at->second].push_back(nodes[i]);
  }
  return islands;
}

// Where the model's inputs or outputs are double, that is what its author wants.
void find_double_islands(const Subject& subject, Findings& findings) {
  if (!subject.understood) return;
  const ir::Graph& main = *subject.understood->graph;
  if (std::ranges::any_of(main.inputs(), is_double) || std::ranges::any_of(main.outputs(), is_double)) return;
  for_each_graph(*subject.understood, [&](const ir::Graph& graph, const ir::OpsetImports&) {
    for (const auto& island : double_islands(graph)) {
      const std::string rest =
          island.size() == 1 ? ""
                             : fmt::format(", and so do {} more nodes that hang together with it", island.size() - 1);
      findings.at_node(*island.front(),
                       fmt::format("it computes in double, though no input or output of the model is one{}", rest),
                       "cast to float where it begins; often a Python number in the exported code is the cause");
    }
  });
}

// Below this, a tensor is a shape, an axis or the like.
constexpr int64_t few_elements = 1024;

void find_wide_integers(const Subject& subject, Findings& findings) {
  for_each_constant(subject.model, [&](const ir::Constant& constant, const ir::Node* holder) {
    const Tensor& tensor = constant.tensor;
    if (tensor.type() != ElementType::int64 || tensor.elements() < few_elements || !has_content(tensor)) return;
    auto fits = [](int64_t n) {
      return n >= std::numeric_limits<int32_t>::min() && n <= std::numeric_limits<int32_t>::max();
    };
    if (!std::ranges::all_of(tensor.data<int64_t>(), fits)) return;
    findings.add_at(holder ? holder->describe() : "", constant.name,
                    fmt::format("its {} elements are int64, all fit int32", tensor.elements()),
                    "store them as int32 and cast, where memory or a runtime without int64 matters");
  });
}

// The symbol that an input calls its first size, "" if it is no symbol.
std::string_view batch_symbol(const ir::Value& input) {
  if (!input.type.is_tensor() || !input.type.shape || input.type.shape->empty()) return "";
  return (*input.type.shape)[0].symbol_name();
}

const Dim* first_dim(const ir::Type& type) {
  return type.is_tensor() && type.shape && !type.shape->empty() ? &(*type.shape)[0] : nullptr;
}

bool is_batch(const Dim& dim, const ir::Graph& main) {
  return std::ranges::any_of(main.inputs(), [&](const ir::Value* input) {
    const std::string_view symbol = batch_symbol(*input);
    return !symbol.empty() && dim.symbol_name() == symbol;
  });
}

// Free what the export fixed: sizes are pinned to what they were then, and freed again with what follows from them.
std::string freeing(const Dim& batch) {
  return fmt::format(
      "`tenon fix MODEL {0}=1 -o PINNED`, with the size that it was exported with, then `tenon dynamic PINNED --dim "
      "0={0} -o OUT`",
      batch.to_string());
}

void find_baked_reshapes(const Subject& subject, Findings& findings) {
  const ir::Graph& main = *subject.understood->graph;
  for_each_node(*subject.understood, [&](const ir::Node& node, const ir::OpsetImports&) {
    if (node.op_type != "Reshape" || !node.domain.empty() || !node.input(0) || !node.input(1)) return;
    const Dim* before = first_dim(node.input(0)->type);
    const auto target = subject.inference.facts.find(node.input(1));
    if (!before || !is_batch(*before, main) || target == subject.inference.facts.end()) return;
    const auto numbers = ops::ints_of(target->second);
    if (!numbers || numbers->empty() || (*numbers)[0] <= 0) return;
    findings.add_at(node.describe(), node.input(1)->name,
                    fmt::format("the shape [{}] fixes the first size, which is '{}' before", fmt::join(*numbers, ", "),
                                before->to_string()),
                    freeing(*before));
  });
}

void find_baked_outputs(const Subject& subject, Findings& findings) {
  const ir::Graph& main = *subject.understood->graph;
  for (size_t i = 0; i < main.outputs().size(); ++i) {
    const Dim* declared = first_dim(main.declared_output_types()[i]);
    const Dim* actual = first_dim(main.outputs()[i]->type);
    if (!declared || !actual || !is_batch(*declared, main) || !actual->is_known()) continue;
    findings.on_tensor(main.outputs()[i]->name,
                       fmt::format("its first size is declared as '{}', the nodes make it {}", declared->to_string(),
                                   actual->to_string()),
                       freeing(*declared));
  }
}

void find_baked_batches(const Subject& subject, Findings& findings) {
  if (!subject.understood) return;
  find_baked_reshapes(subject, findings);
  find_baked_outputs(subject, findings);
}

void find_fixed_batches(const Subject& subject, Findings& findings) {
  std::vector<std::string_view> names;
  for (const ir::Value* input : subject.model.graph->inputs()) {
    if (input->is_initializer()) continue;
    const Dim* first = first_dim(input->type);
    if (!first || !first->is(1) || input->type.shape->size() < 2) return;
    names.push_back(input->name);
  }
  if (names.empty()) return;
  findings.on_tensor(std::string(names.front()),
                     names.size() == 1 ? "its first size is 1: the model takes no batches"
                                       : "the first size of every input is 1: the model takes no batches",
                     "`tenon dynamic MODEL --dim 0=batch -o OUT` makes it a batch, where that is possible");
}

constexpr Rule rules[] = {
    {{"nan-weights", Severity::warning, "weights that are NaN"}, find_nans},
    {{"float64-island", Severity::warning, "nodes that compute in double between tensors of other types"},
     find_double_islands},
    {{"baked-batch", Severity::warning, "a batch size that inputs leave open and nodes fix"}, find_baked_batches},
    {{"infinite-weights", Severity::note, "weights that are infinite"}, find_infinities},
    {{"fixed-batch", Severity::note, "inputs that take no batches"}, find_fixed_batches},
    {{"int64-weights", Severity::note, "large int64 tensors whose elements all fit int32"}, find_wide_integers},
};

}  // namespace

std::span<const Rule> value_rules() { return rules; }

}  // namespace tenon::tools
