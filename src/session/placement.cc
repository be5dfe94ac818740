#include "session/placement.h"

#include <optional>

#include "ir/copy_nodes.h"
#include "ops/cost.h"
#include "passes/infer.h"
#include "session/check_inputs.h"

namespace tenon {
namespace {

using ir::Twins;

const ir::Type& type_of(const ir::Value& value, const Twins& twins) {
  auto twin = twins.find(&value);
  return twin == twins.end() ? value.type : twin->second->type;
}

ops::CostTensor cost_tensor(const ir::Value* value, const Twins& twins) {
  if (!value) return {};
  const ir::Type& type = type_of(*value, twins);
  if (!type.is_tensor()) return {};
  return {type.element, type.shape ? &*type.shape : nullptr};
}

// nullopt where shapes are not known, or are too large to multiply.
std::optional<ops::Cost> cost_of(const ir::Node& node, const Twins& twins) {
  auto tensors = [&](std::span<ir::Value* const> values) {
    std::vector<ops::CostTensor> list;
    for (const ir::Value* value : values) list.push_back(cost_tensor(value, twins));
    return list;
  };
  try {
    std::optional<ops::Cost> cost = ops::cost_of(node, tensors(node.inputs()), tensors(node.outputs()));
    if (cost && (cost->flops.has_unknown() || cost->bytes.has_unknown())) cost.reset();
    return cost;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Dim> bytes_of(const ir::Value& value, const Twins& twins) {
  const ops::CostTensor tensor = cost_tensor(&value, twins);
  if (!tensor.shape || tensor.element == ElementType::string) return std::nullopt;
  try {
    const Dim bytes = ops::bytes_of(tensor);
    return bytes.has_unknown() ? std::nullopt : std::optional(bytes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string text_of(const std::optional<Dim>& size) { return size ? size->to_string() : ""; }

// Once a sum does not fit, or is too long an expression, it is nullopt.
void add_to(std::optional<Dim>& sum, const Dim& size) {
  try {
    if (sum) sum = *sum + size;
    if (sum && sum->has_unknown()) sum.reset();
  } catch (const Error&) {
    sum.reset();
  }
}

struct Sums {
  std::optional<Dim> flops = Dim(0), bytes = Dim(0);
};

}  // namespace

PlacementReport report(const Placement& placement, const std::vector<std::string>& providers, const ir::Graph& graph,
                       const std::map<std::string, Shape>& input_shapes) {
  Twins twins;
  std::unique_ptr<ir::Graph> shaped;
  if (!input_shapes.empty()) {
    check_input_shapes(graph, input_shapes);
    shaped = graph.clone(&twins);
    for (ir::Value* input : shaped->inputs()) {
      auto given = input_shapes.find(input->name);
      if (given != input_shapes.end() && input->type.is_tensor()) input->type.shape = symbolic(given->second);
    }
    passes::infer_types(*shaped);
  }
  PlacementReport report;
  std::map<std::string_view, Sums> sums;
  std::map<std::string_view, ProviderTotals> totals;
  for (const Placement::Node& placed : placement.nodes) {
    const std::optional<ops::Cost> cost = cost_of(*placed.node, twins);
    report.nodes.push_back({placed.node->describe(), placed.node->op_type, std::string(placed.provider), placed.kernel,
                            placed.declined, cost ? cost->flops.to_string() : "", cost ? cost->bytes.to_string() : ""});
    ++totals[placed.provider].nodes;
    if (cost) {
      add_to(sums[placed.provider].flops, cost->flops);
      add_to(sums[placed.provider].bytes, cost->bytes);
    } else {
      ++totals[placed.provider].unknown;
    }
  }
  for (const std::string& name : providers) {
    const ProviderTotals& total = totals[name];
    report.providers.push_back(
        {name, total.nodes, text_of(sums[name].flops), text_of(sums[name].bytes), total.unknown});
  }
  std::optional<Dim> copied = Dim(0);
  for (const Placement::Copy& copy : placement.copies) {
    const std::optional<Dim> bytes = bytes_of(*copy.value, twins);
    report.copies.push_back({copy.value->name, std::string(copy.from), std::string(copy.to), text_of(bytes)});
    if (bytes)
      add_to(copied, *bytes);
    else
      ++report.unknown_copies;
  }
  report.copied_bytes = text_of(copied);
  return report;
}

}  // namespace tenon
