#include "tools/quantize/smooth.h"

#include <algorithm>
#include <cmath>

#include "ir/verify.h"
#include "tools/quantize/graph_writer.h"

namespace tenon::tools {
namespace {

bool can_be_smoothed(const Plan::Entry& entry) {
  return entry.role == Role::product && entry.is_quantized && entry.node->op_type != "Conv" && entry.weight.value &&
         !entry.weight.transpose && entry.weight.value->constant()->tensor.rank() == 2;
}

bool is_transposed(const ir::Node& node) { return node.op_type == "Gemm" && node.int_attribute("transB", 0) != 0; }

// The largest weight of each channel that is read.
void take_largest(const ir::Node& node, const Tensor& weight, std::vector<double>& largest) {
  const int64_t columns = weight.dim(1);
  const auto numbers = weight.data<float>();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    double& most = largest[static_cast<size_t>(is_transposed(node) ? at % columns : at / columns)];
    most = std::max(most, static_cast<double>(std::abs(numbers[i])));
  }
}

Tensor multiplied(const ir::Node& node, const Tensor& weight, const std::vector<double>& factors) {
  Tensor result = weight.clone();
  const auto numbers = result.mutable_data<float>();
  const int64_t columns = weight.dim(1);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    numbers[i] *= static_cast<float>(factors[static_cast<size_t>(is_transposed(node) ? at % columns : at / columns)]);
  }
  return result;
}

Tensor divided(const Tensor& row, const std::vector<double>& factors) {
  Tensor result = row.clone();
  for (size_t i = 0; i < factors.size(); ++i) result.mutable_data<float>()[i] /= static_cast<float>(factors[i]);
  return result;
}

// Divides an activation, for all that read it.
void divide(ir::Value& value, const std::vector<ir::Node*>& readers, const std::vector<double>& factors) {
  ir::Graph& graph = value.graph();
  ir::Node* norm = value.producer();
  const auto is_row = [&](const ir::Value* v) {
    return v && v->is_fixed() && v->constant()->tensor.elements() == std::ssize(factors);
  };
  const bool alone =
      value.users().size() == readers.size() && std::ranges::find(graph.outputs(), &value) == graph.outputs().end();
  if (alone && norm && norm->op_type == "LayerNormalization" && is_row(norm->input(1)) &&
      (!norm->input(2) || is_row(norm->input(2)))) {
    for (size_t i = 1; i < norm->input_count(); ++i) {
      const ir::Value& row = *norm->input(i);
      norm->set_input(i, &graph.add_constant(divided(row.constant()->tensor, factors), row.name + "/smoothed"));
    }
    return;
  }
  Tensor inverse(ElementType::float32, Shape{std::ssize(factors)});
  for (size_t i = 0; i < factors.size(); ++i) inverse.mutable_data<float>()[i] = static_cast<float>(1 / factors[i]);
  ir::Value& smooth =
      add_operator(graph, "Mul", "", {&value, &graph.add_constant(std::move(inverse), value.name + "/smoothing")},
                   value.name + "/smoothed");
  for (ir::Node* reader : readers) reader->set_input(0, &smooth);
}

}  // namespace

Wanted channels_to_smooth(const Plan& plan) {
  Wanted wanted;
  for (const Plan::Entry& entry : plan.entries()) {
    if (can_be_smoothed(entry)) wanted.channels[entry.activation->name] = -1;
  }
  return wanted;
}

std::unique_ptr<ir::Model> smoothed(const ir::Model& model, const KnownTypes& types, const QuantizeOptions& options,
                                    const std::map<std::string, ChannelStatistics, std::less<>>& channels) {
  std::unique_ptr<ir::Model> copy = model.clone();
  const Plan plan(*copy, types, options);
  std::map<ir::Value*, std::vector<const Plan::Entry*>> readers;
  for (const Plan::Entry& entry : plan.entries()) {
    if (can_be_smoothed(entry)) readers[entry.activation].push_back(&entry);
  }
  for (auto& [value, entries] : readers) {
    const auto found = channels.find(value->name);
    if (found == channels.end()) continue;
    std::vector<double> largest(found->second.largest.size(), 0), factors;
    for (const Plan::Entry* entry : entries)
      take_largest(*entry->node, entry->weight.value->constant()->tensor, largest);
    for (size_t i = 0; i < largest.size(); ++i) {
      const double factor = std::pow(std::max(found->second.largest[i], 1e-5), *options.smooth) /
                            std::pow(std::max(largest[i], 1e-5), 1 - *options.smooth);
      factors.push_back(std::clamp(factor, 1e-5, 1e5));
    }
    std::vector<ir::Node*> nodes;
    for (const Plan::Entry* entry : entries) {
      const ir::Value& weight = *entry->weight.value;
      ir::Value& scaled = entry->node->graph().add_constant(
          multiplied(*entry->node, weight.constant()->tensor, factors), weight.name + "/smoothed");
      entry->node->set_input(1, &scaled);
      nodes.push_back(entry->node);
    }
    divide(*value, nodes, factors);
  }
  finish(*copy);
  return copy;
}

}  // namespace tenon::tools
