#include "tools/quantize/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "ir/visit.h"
#include "tools/graph_edit.h"
#include "tools/patterns.h"

namespace tenon::tools {
namespace {

struct OperatorRole {
  std::string_view op;
  Role role;
};
// Add and Mul are functions where their other operand is a number.
constexpr OperatorRole roles[] = {
    {"Conv", Role::product},
    {"Gemm", Role::product},
    {"MatMul", Role::product},
    {"Add", Role::sum},
    {"Mul", Role::sum},
    {"GlobalAveragePool", Role::average},
    {"Concat", Role::concat},
    {"DepthToSpace", Role::move},
    {"Flatten", Role::move},
    {"MaxPool", Role::move},
    {"Reshape", Role::move},
    {"Resize", Role::move},
    {"Slice", Role::move},
    {"SpaceToDepth", Role::move},
    {"Split", Role::move},
    {"Squeeze", Role::move},
    {"Transpose", Role::move},
    {"Unsqueeze", Role::move},
    {"Clip", Role::function},
    {"Div", Role::function},
    {"Elu", Role::function},
    {"Erf", Role::function},
    {"Gelu", Role::function},
    {"HardSigmoid", Role::function},
    {"HardSwish", Role::function},
    {"LeakyRelu", Role::function},
    {"Max", Role::function},
    {"Min", Role::function},
    {"Mish", Role::function},
    {"Pow", Role::function},
    {"Relu", Role::function},
    {"Selu", Role::function},
    {"Sigmoid", Role::function},
    {"Softplus", Role::function},
    {"Softsign", Role::function},
    {"Sub", Role::function},
    {"Swish", Role::function},
    {"Tanh", Role::function},
};

bool is_number(const ir::Value& value) {
  return value.is_fixed() && value.constant()->tensor.elements() == 1 && value.constant()->tensor.rank() <= 1;
}

// Of those that may: what they make is nothing but elements that they read.
bool keeps_codes(const ir::Node& node) {
  if (node.op_type == "Resize")
    return node.string_attribute("mode", "nearest") == "nearest" &&
           node.string_attribute("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
  return node.op_type == "Split" || node.output_count() == 1;
}

bool fits_any(const std::vector<std::string>& patterns, const ir::Node& node) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return fits_pattern(node.name, pattern) || fits_pattern(node.op_type, pattern);
  });
}

// What has nothing but what it takes of activations as constants.
bool is_row(const ir::Value* value) { return value && value->is_fixed() && value->constant()->tensor.rank() == 1; }

}  // namespace

Plan::Plan(ir::Model& model, const KnownTypes& types, const QuantizeOptions& options,
           const std::set<size_t>& stay_float)
    : types_(types), options_(options) {
  ir::for_each_graph(*model.graph, [&](ir::Graph& graph) {
    outputs_.insert(graph.outputs().begin(), graph.outputs().end());
    for (ir::Node& node : graph.nodes()) {
      numbers_[&node] = entries_.size();
      Entry& entry = entries_.emplace_back();
      entry.node = &node;
      entry.role = role_of(node);
      if (entry.role != Role::product) continue;
      entry.activation = node.input(0);
      entry.weight = weight_of(node, 1);
    }
  });
  if (options_.mode == QuantizeMode::static_) find_followers();
  find_sources();
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.role == Role::none || entry.role == Role::follower) continue;
    if (stay_float.contains(i))
      entry.why_float = "chosen to stay float";
    else if (fits_any(options_.keep, *entry.node))
      entry.why_float = "it was asked for";
    else if (!options_.only.empty() && !fits_any(options_.only, *entry.node))
      entry.why_float = "it is not among those that were asked for";
    else if (entry.role == Role::product)
      entry.why_float = why_no_product(entry);
  }
  decide();
  if (options_.mode == QuantizeMode::static_) collect_codes();
}

bool Plan::is_float(const ir::Value* value) const {
  if (!value) return false;
  if (value->constant()) return value->constant()->tensor.type() == ElementType::float32;
  const auto found = types_.types.find(value->name);
  const ir::Type& type = found == types_.types.end() ? value->type : found->second;
  return type.is_tensor() && type.element == ElementType::float32;
}

// Small tables are not worth it.
bool Plan::is_embedding(const ir::Node& node) const {
  constexpr int64_t least_elements = 1 << 14;
  const ir::Value* table = node.input(0);
  return node.op_type == "Gather" && node.int_attribute("axis", 0) == 0 && table && table->is_fixed() &&
         is_float(table) && table->constant()->tensor.rank() == 2 &&
         table->constant()->tensor.elements() >= least_elements && node.input(1) && !node.input(1)->is_initializer();
}

Role Plan::role_of(const ir::Node& node) const {
  if (node.domain.empty() && is_embedding(node)) return Role::embedding;
  if (!node.domain.empty() || node.output_count() == 0 || !is_float(node.output(0))) return Role::none;
  const auto found = std::ranges::find(roles, node.op_type, &OperatorRole::op);
  if (found == std::end(roles) || !is_float(node.input(0))) return Role::none;
  if (found->role == Role::move && !keeps_codes(node)) return Role::none;
  if (found->role != Role::product && options_.mode != QuantizeMode::static_) return Role::none;
  return found->role;
}

ir::Node* Plan::sole_user(const ir::Value& value) const {
  return value.users().size() == 1 && !is_output(value) ? value.users()[0] : nullptr;
}

// A bias after MatMul, and Relu or Clip after anything that computes, are done as its result is rounded to codes, whose
// range ends where they do.
void Plan::find_followers() {
  for (Entry& entry : entries_) {
    const bool computes = entry.role == Role::product || entry.role == Role::sum || entry.role == Role::average;
    if (!computes) continue;
    ir::Value* value = entry.node->output(0);
    const auto take = [&](ir::Node& user) {
      Entry& follower = entry_of(user);
      follower.role = Role::follower;
      follower.leader = entry.node;
      value = user.output(0);
    };
    if (ir::Node* user = sole_user(*value); entry.node->op_type == "MatMul" && user && user->op_type == "Add" &&
                                            (is_row(user->input(0)) || is_row(user->input(1))))
      take(*user);
    // Codes with 0 in their middle have no limit at 0.
    if (options_.symmetric_activations) continue;
    if (ir::Node* user = sole_user(*value);
        user && user->domain.empty() && (user->op_type == "Relu" || user->op_type == "Clip") && user->input(0) == value)
      take(*user);
  }
}

// Functions of elements depend on one activation, or on two: then Add and Mul are sums and nothing else goes.
void Plan::find_sources() {
  const auto source_of = [&](ir::Value* value) {
    const auto found = sources_.find(value);
    return found == sources_.end() ? value : found->second;
  };
  for (Entry& entry : entries_) {
    if (entry.role != Role::function && entry.role != Role::sum) continue;
    std::set<ir::Value*> activations;
    bool only_numbers = true;
    for (ir::Value* input : entry.node->inputs()) {
      if (!input) continue;
      if (input->is_initializer())
        only_numbers &= is_number(*input);
      else
        activations.insert(source_of(input));
    }
    if (activations.size() == 1 && only_numbers) {
      entry.role = Role::function;
      entry.source = *activations.begin();
      sources_[entry.node->output(0)] = entry.source;
    } else if (entry.role == Role::function || activations.size() != 2) {
      entry.role = Role::none;
    }
  }
}

Weight Plan::weight_of(ir::Node& node, size_t input) const {
  ir::Value* value = node.input(input);
  Weight weight;
  if (!value) return weight;
  ir::Node* maker = value->producer();
  std::vector<int64_t> order;
  ir::Node* reader = &node;
  if (maker && maker->domain.empty() && maker->op_type == "Transpose" && maker->input(0)->is_fixed()) {
    weight.transpose = reader = maker;
    value = maker->input(0);
    for (int64_t i = value->constant()->tensor.rank() - 1; i >= 0; --i) order.push_back(i);
    order = maker->ints_attribute("perm", order);
    input = 0;
  }
  if (!value->is_fixed() || value->constant()->tensor.type() != ElementType::float32) return {};
  weight.value = value;
  weight.reader = reader;
  weight.input = input;
  const int rank = value->constant()->tensor.rank();
  if (node.op_type == "Conv")
    weight.axis = 0;
  else if (rank == 2)
    weight.axis = node.op_type == "Gemm" && node.int_attribute("transB", 0) != 0 ? 0 : 1;
  if (weight.transpose && weight.axis >= 0) weight.axis = order[static_cast<size_t>(weight.axis)];
  if (!options_.per_channel) weight.axis = -1;
  return weight;
}

std::string Plan::why_no_product(const Entry& entry) const {
  const ir::Node& node = *entry.node;
  const Weight& weight = entry.weight;
  if (!is_float(node.input(1))) return "its operands are not float";
  const bool is_static = options_.mode == QuantizeMode::static_;
  if (!is_static && !weight.value) return "both of its operands are computed";
  if (options_.mode == QuantizeMode::dynamic && node.op_type == "Conv")
    return "convolutions are no faster with ranges that are found in every run";
  if (options_.mode == QuantizeMode::weight_only && node.op_type == "Conv" && bits_of(options_.weights) < 8)
    return "codes of few bits are for MatMul and Gemm";
  if (!is_static && node.op_type == "MatMul" && weight.value->constant()->tensor.rank() != 2)
    return "its weights are not one matrix";
  if (node.op_type == "Conv") {
    if (!weight.value || weight.transpose) return "its weights are computed";
    if (node.input(2) && !is_row(node.input(2))) return "its bias is computed";
  }
  if (node.op_type == "Gemm") {
    if (node.float_attribute("alpha", 1) != 1 || (node.input(2) && node.float_attribute("beta", 1) != 1))
      return "it has a factor";
    if (node.int_attribute("transA", 0) != 0) return "its first operand is transposed";
    if (!weight.value) return "its weights are computed";
    if (node.input(2) && !is_row(node.input(2))) return "its bias is not one row of constants";
  }
  if (node.op_type == "MatMul" && weight_of(*entry.node, 0).value) return "its first operand is constant";
  return "";
}

bool Plan::is_quantized(const ir::Node& node) const {
  const auto found = numbers_.find(&node);
  if (found == numbers_.end()) return false;
  const Entry& e = entries_[found->second];
  if (e.role == Role::embedding) return false;  // what it makes are floats
  return e.role == Role::follower ? is_quantized(*e.leader) : e.is_quantized;
}

// Whether all that a node reads of activations is made by nodes that compute on codes.
bool Plan::is_made_of_codes(const Entry& entry) const {
  const auto is_made = [&](const ir::Value* value) { return value->producer() && is_quantized(*value->producer()); };
  if (entry.role == Role::function) {
    return std::ranges::all_of(entry.node->inputs(), [&](const ir::Value* input) {
      return !input || input->is_initializer() || is_made(input);
    });
  }
  const size_t count = entry.role == Role::concat || entry.role == Role::sum ? entry.node->input_count() : 1;
  for (size_t i = 0; i < count; ++i) {
    if (!is_made(entry.node->input(i))) return false;
  }
  return true;
}

bool Plan::feeds_codes(const ir::Value& value) const {
  return std::ranges::any_of(value.users(), [&](const ir::Node* user) {
    const Entry& reader = entry(*user);
    if (reader.role == Role::follower) return feeds_codes(*user->output(0));
    return reader.is_quantized;
  });
}

// Products compute on codes wherever they can; what is between them does where all that it reads is codes already and
// somebody wants what it makes as codes.
void Plan::decide() {
  for (Entry& entry : entries_) {
    if (entry.role == Role::none || entry.role == Role::follower || !entry.why_float.empty()) continue;
    entry.is_quantized = is_unit(entry.role) || is_made_of_codes(entry);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      if (!entry->is_quantized || is_unit(entry->role)) continue;
      const auto feeds = [&](const ir::Value* output) { return output && feeds_codes(*output); };
      if (is_made_of_codes(*entry) && std::ranges::any_of(entry->node->outputs(), feeds)) continue;
      entry->is_quantized = false;
      changed = true;
    }
  }
}

bool Plan::reads_codes(const ir::Node& node, const ir::Value& value) const {
  const Entry& reader = entry(node);
  if (!reader.is_quantized || value.is_initializer()) return false;
  // Within a function there are none.
  return reader.role != Role::function || &value == reader.source;
}

void Plan::collect_codes() {
  std::unordered_set<const ir::Value*> seen;
  for (const Entry& entry : entries_) {
    if (!entry.is_quantized || entry.role == Role::embedding) continue;
    const size_t count = entry.role == Role::move || entry.role == Role::average ? 1 : entry.node->input_count();
    for (size_t i = 0; i < count; ++i) {
      ir::Value* value = entry.node->input(i);
      if (!is_float(value) || !reads_codes(*entry.node, *value)) continue;
      if (entry.role == Role::product && i == 1 && entry.weight.value) continue;
      if (seen.insert(value).second) coded_.push_back(value);
    }
    if (entry.role != Role::move) continue;
    for (const ir::Value* output : entry.node->outputs()) range_sources_[output] = &range_source(*entry.node->input(0));
  }
}

ir::Value& Plan::range_source(ir::Value& value) const {
  const auto found = range_sources_.find(&value);
  return found == range_sources_.end() ? value : *found->second;
}

void require_nodes(const ir::Model& model, const std::vector<std::string>& patterns) {
  std::set<std::string> names;
  ir::for_each_graph(*model.graph, [&](const ir::Graph& graph) {
    for (const ir::Node& node : graph.nodes()) names.insert({node.name, node.op_type});
  });
  for (const std::string& pattern : patterns) {
    if (std::ranges::any_of(names, [&](const std::string& name) { return fits_pattern(name, pattern); })) continue;
    throw Error(ErrorCode::unknown_name, fmt::format("the model has no node and no operator '{}'", pattern),
                nearest_hint(pattern, {names.begin(), names.end()}));
  }
}

}  // namespace tenon::tools
