#include "session/check_inputs.h"

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "base/names.h"

namespace tenon {
namespace {

using Kind = ir::Type::Kind;

Kind kind_of(const Value& value) {
  if (value.is_tensor()) return Kind::tensor;
  if (value.is_sparse()) return Kind::sparse_tensor;
  if (value.is_sequence()) return Kind::sequence;
  if (value.is_map()) return Kind::map;
  return value.is_optional() ? Kind::optional : Kind::unknown;
}

// What a run, or a caller, gave for a named size.
struct Binding {
  std::string_view symbol;
  int64_t size;
  const std::string* input;
  int axis;

  std::string where() const { return fmt::format("axis {} of '{}'", axis, *input); }
};
// Few: a list is faster than a map.
using Bindings = SmallVector<Binding, 8>;

void check_shape(const ir::Type& declared, const Shape& shape, const std::string& name, Bindings& bindings) {
  const SymbolicShape& expected = *declared.shape;
  if (static_cast<int>(expected.size()) != shape.rank()) {
    throw Error(ErrorCode::shape_mismatch, fmt::format("the model takes rank {} {}, got rank {} {}", expected.size(),
                                                       to_string(expected), shape.rank(), shape.to_string()))
        .on_tensor(name);
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Dim& dim = expected[static_cast<size_t>(axis)];
    int64_t size = shape[axis];
    if (dim.is_known() && dim.value() != size) {
      throw Error(ErrorCode::shape_mismatch,
                  fmt::format("axis {} must be {}, got {}: the model takes {}, the input is {}", axis, dim.value(),
                              size, to_string(expected), shape.to_string()))
          .on_tensor(name);
    }
    const Binding own{dim.symbol_name(), size, &name, axis};
    if (own.symbol.empty()) continue;
    auto bound = std::ranges::find(bindings, own.symbol, &Binding::symbol);
    if (bound == bindings.end()) {
      bindings.push_back(own);
    } else if (bound->size != size) {
      throw Error(ErrorCode::shape_mismatch,
                  fmt::format("size '{}' is {} on {} but {} on {}; it must be the same everywhere", own.symbol,
                              bound->size, bound->where(), size, own.where()))
          .on_tensor(name);
    }
  }
}

void check_value(const ir::Value& input, const Value& value, Bindings& bindings) {
  const ir::Type& declared = input.type;
  if (!declared.known()) return;
  // A plain value may be given where an optional is declared.
  if (declared.kind == Kind::optional && !value.is_optional()) return;
  if (kind_of(value) != declared.kind) {
    throw Error(ErrorCode::type_mismatch, fmt::format("the model takes {}, got {}", declared.name(), value.describe()))
        .on_tensor(input.name);
  }
  if (!value.is_tensor()) return;
  const Tensor& tensor = value.tensor();
  if (declared.element != ElementType::undefined && tensor.type() != declared.element) {
    throw Error(ErrorCode::type_mismatch,
                fmt::format("the model takes {}, got {}", name_of(declared.element), name_of(tensor.type())),
                fmt::format("convert the input to {} before the run", name_of(declared.element)))
        .on_tensor(input.name);
  }
  if (declared.shape) check_shape(declared, tensor.shape(), input.name, bindings);
}

// `feeds` is a map by input.
template <typename Feeds>
void throw_unknown(const ir::Graph& graph, const Feeds& feeds) {
  std::vector<std::string_view> names;
  for (const ir::Value* input : graph.inputs()) names.push_back(input->name);
  for (const auto& [name, _] : feeds) {
    if (std::ranges::find(names, name) != names.end()) continue;
    std::string_view nearest = nearest_name(name, names);
    throw Error(ErrorCode::unknown_name,
                fmt::format("the model has no input '{}'; it has {}", name, quoted_list(names)),
                nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest));
  }
}

}  // namespace

std::vector<Value> check_inputs(const ir::Graph& graph, const NamedValues& feeds) {
  throw_unknown(graph, feeds);
  std::vector<Value> arguments(graph.inputs().size());
  std::string missing;
  size_t missing_count = 0;
  Bindings bindings;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::Value& input = *graph.inputs()[i];
    auto found = feeds.find(input.name);
    if (found == feeds.end() || !found->second.defined()) {
      if (input.is_initializer()) continue;
      ++missing_count;
      missing += fmt::format("\n  '{}' {}", input.name, input.type.to_string());
      continue;
    }
    check_value(input, found->second, bindings);
    arguments[i] = found->second;
    if (input.type.kind == Kind::optional && !arguments[i].is_optional()) {
      arguments[i] = Optional{std::make_shared<const Value>(arguments[i])};
    }
  }
  if (missing_count > 0) {
    fail(ErrorCode::missing_input, "{} input{} not given:{}", missing_count, missing_count == 1 ? " is" : "s are",
         missing);
  }
  return arguments;
}

void check_input_shapes(const ir::Graph& graph, const std::map<std::string, Shape>& input_shapes) {
  throw_unknown(graph, input_shapes);
  Bindings bindings;
  for (const ir::Value* input : graph.inputs()) {
    auto given = input_shapes.find(input->name);
    if (given != input_shapes.end() && input->type.is_tensor() && input->type.shape)
      check_shape(input->type, given->second, input->name, bindings);
  }
}

}  // namespace tenon
