#include "ops/inference.h"

#include <algorithm>

namespace tenon::ops {

Fact Fact::of(const Tensor& tensor) {
  Fact fact;
  fact.type = ir::Type::tensor(tensor.type(), symbolic(tensor.shape()));
  fact.constant = &tensor;
  return fact;
}

namespace {

// The content of an int64, int32 or bool tensor of rank 0 or 1, as numbers of another type.
template <typename List>
std::optional<List> content_as(const Tensor& tensor) {
  if (tensor.rank() > 1) return std::nullopt;
  List list;
  auto append = [&](auto numbers) {
    for (auto number : numbers) list.push_back(typename List::value_type(static_cast<int64_t>(number)));
  };
  switch (tensor.type()) {
    case ElementType::int64:
      append(tensor.data<int64_t>());
      return list;
    case ElementType::int32:
      append(tensor.data<int32_t>());
      return list;
    case ElementType::boolean:
      append(tensor.data<bool>());
      return list;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<SymbolicValues> values_of(const Fact& fact) {
  if (fact.values) return fact.values;
  if (!fact.constant || static_cast<size_t>(fact.constant->elements()) > most_values) return std::nullopt;
  return content_as<SymbolicValues>(*fact.constant);
}

std::optional<std::vector<int64_t>> ints_of(const Fact& fact) {
  if (!fact.values) return fact.constant ? content_as<std::vector<int64_t>>(*fact.constant) : std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim& dim : *fact.values) {
    if (!dim.is_known()) return std::nullopt;
    numbers.push_back(dim.value());
  }
  return numbers;
}

void Inference::output(size_t i, ElementType element, std::optional<SymbolicShape> shape) {
  if (i < outputs_.size()) outputs_[i].type = ir::Type::tensor(element, std::move(shape));
}

void Inference::output(size_t i, ir::Type type) {
  if (i < outputs_.size()) outputs_[i].type = std::move(type);
}

void Inference::output(size_t i, Fact fact) {
  if (i < outputs_.size()) outputs_[i] = std::move(fact);
}

void Inference::output_values(size_t i, SymbolicValues values) {
  if (i < outputs_.size() && values.size() <= most_values) outputs_[i].values = std::move(values);
}

int Inference::axis(int64_t axis, int rank, bool one_past) const {
  int64_t result = axis < 0 ? axis + rank : axis;
  if (result < 0 || result > rank || (result == rank && !one_past)) {
    fail_with(ErrorCode::invalid_attribute, fmt::format("axis {} is out of range for rank {}", axis, rank));
  }
  return static_cast<int>(result);
}

std::vector<int> Inference::axes(std::span<const int64_t> list, int rank) const {
  std::vector<int> result;
  for (int64_t a : list) {
    int one = axis(a, rank);
    if (std::ranges::find(result, one) != result.end()) {
      fail_with(ErrorCode::invalid_attribute, fmt::format("axis {} is given twice", a));
    }
    result.push_back(one);
  }
  return result;
}

ElementType Inference::element_attribute(std::string_view name, ElementType otherwise) const {
  if (!node_.attribute(name)) return otherwise;
  int64_t number = node_.int_attribute(name, 0);
  if (number < 1 || number >= element_type_count)
    fail_with(ErrorCode::invalid_attribute, fmt::format("{} is {}, which is no element type", name, number));
  return static_cast<ElementType>(number);
}

Dim Inference::equal(const Dim& a, const Dim& b, std::string_view what) const {
  if (a == b) return a;
  if (a.is_known() && b.is_known()) fail("{} must be equal: {} against {}", what, a.value(), b.value());
  if (a.is_known()) return a;
  if (b.is_known()) return b;
  return a.has_unknown() ? b : a;
}

SymbolicShape Inference::broadcast(const SymbolicShape& a, const SymbolicShape& b) const {
  const SymbolicShape& longer = a.size() >= b.size() ? a : b;
  const SymbolicShape& shorter = a.size() >= b.size() ? b : a;
  SymbolicShape result = longer;
  size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& dim = result[offset + i];
    const Dim& other = shorter[i];
    if (dim == other || other.is(1)) continue;
    if (dim.is(1)) {
      dim = other;
    } else if (dim.is_known() && other.is_known()) {
      fail("shapes {} and {} cannot be broadcast: {} against {} on axis {}", to_string(a), to_string(b), dim.value(),
           other.value(), offset + i);
    } else if (other.is_known()) {
      dim = other;
    } else if (!dim.is_known()) {
      dim = Dim::unknown();
    }
  }
  return result;
}

void Inference::require_rank(size_t i, int wanted) const {
  if (has_shape(i) && rank(i) != wanted) fail("input {} must have rank {}, it has rank {}", i, wanted, rank(i));
}

void Inference::require_rank_at_least(size_t i, int wanted) const {
  if (has_shape(i) && rank(i) < wanted) fail("input {} must have at least rank {}, it has rank {}", i, wanted, rank(i));
}

std::optional<std::vector<Fact>> Inference::infer_subgraph(std::string_view attribute,
                                                           std::span<const Fact> inputs) const {
  if (!subgraphs_) return std::nullopt;
  return (*subgraphs_)(attribute, inputs);
}

std::string describe_input(const ir::Node& node, size_t i, const ir::Type& type) {
  const ir::Value* value = node.input(i);
  if (!value) return fmt::format("input {} is left out", i);
  std::string source;
  if (const ir::Node* producer = value->producer())
    source = ", made by " + producer->describe();
  else if (value->is_initializer())
    source = ", an initializer";
  else if (value->is_graph_input())
    source = ", an input of the graph";
  return fmt::format("input {} '{}' is {}{}", i, value->name, type.to_string(), source);
}

void Inference::fail_with(ErrorCode code, const std::string& message) const {
  std::string text = message;
  for (size_t i = 0; i < inputs_.size() && i < 6; ++i) {
    if (inputs_[i]) text += "\n  " + describe_input(node_, i, inputs_[i]->type);
  }
  throw Error(code, text);
}

}  // namespace tenon::ops
