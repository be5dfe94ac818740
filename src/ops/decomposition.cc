#include "ops/decomposition.h"

#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "ops/adapters.h"
#include "ops/dispatch.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

struct GivenUp {
  std::string reason;
};

template <typename T>
T nearest(double value) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (!(value > static_cast<double>(Limits::lowest()))) return Limits::lowest();
    return value < static_cast<double>(Limits::max()) ? static_cast<T>(value) : Limits::max();
  } else {
    return static_cast<T>(value);
  }
}

// Takes the nodes of a graph, and of graphs within it, off the lists of users that outer values have.
void detach(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes()) {
    for (const ir::Attribute& attribute : node.attributes) attribute.for_each_graph(detach);
    node.remove_trailing_inputs(0);
  }
}

}  // namespace

ElementType Decomposition::element(size_t i) const {
  const ir::Value* value = node_.input(i);
  if (!value || value->type.element == ElementType::undefined)
    give_up(fmt::format("the element type of input {} is not known", i));
  return value->type.element;
}

int Decomposition::rank(size_t i) const {
  const ir::Value* value = node_.input(i);
  if (!value || !value->type.shape) give_up(fmt::format("the rank of input {} is not known", i));
  return static_cast<int>(value->type.shape->size());
}

int64_t Decomposition::known_size(size_t i, int axis) const {
  const ir::Value* value = node_.input(i);
  if (!value || !value->type.shape) return -1;
  const SymbolicShape& shape = *value->type.shape;
  auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int>(shape.size()) : axis);
  return at < shape.size() && shape[at].is_known() ? shape[at].value() : -1;
}

Term Decomposition::input(size_t i) { return has_input(i) ? Term{this, node_.input(i), element(i)} : Term{}; }

Term Decomposition::wide_input(size_t i) { return has_input(i) ? cast(input(i), wide(element(i))) : Term{}; }

ir::Node& Decomposition::add_node(std::string op, const std::vector<ir::Value*>& inputs) {
  ir::Node& added = node_.graph().add_node(std::move(op), "", &node_);
  added_.push_back(&added);
  added.name = node_.name;
  added.origin = node_.origin;
  for (ir::Value* value : inputs) added.add_input(value);
  return added;
}

ir::Value* Decomposition::add_output(ir::Node& added) {
  ir::Value& value = node_.graph().add_value(node_.name + "/" + added.op_type, /*fresh=*/true);
  added.add_output(&value);
  return &value;
}

Term Decomposition::add(std::string op, const std::vector<Term>& inputs, std::initializer_list<Setting> attributes,
                        ElementType type) {
  std::vector<ir::Value*> values;
  for (const Term& term : inputs) values.push_back(term.value);
  while (!values.empty() && !values.back()) values.pop_back();
  ir::Node& added = add_node(std::move(op), values);
  for (const Setting& setting : attributes) {
    std::visit([&](const auto& value) { added.set_attribute(ir::Attribute(setting.name, value)); }, setting.value);
  }
  return {this, add_output(added), type == ElementType::undefined ? inputs.at(0).type : type};
}

Term Decomposition::constant(Tensor tensor) {
  ElementType type = tensor.type();
  constants_.push_back(&node_.graph().add_constant(std::move(tensor), node_.name + "/constant"));
  return {this, constants_.back(), type};
}

Term Decomposition::number(double value, ElementType type) {
  Tensor scalar(type, Shape{});
  dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      type, [&]<typename T>() { scalar.mutable_data<T>()[0] = nearest<T>(value); });
  return constant(std::move(scalar));
}

Term Decomposition::ints(const std::vector<int64_t>& numbers) { return constant(int64_vector(numbers)); }

Term Decomposition::indices(Term count) {
  Term ones = add("ConstantOfShape", {reshape(count, ints({1}))}, {{"value", Tensor(Shape{1}, {int64_t{1}})}});
  return add("CumSum", {ones, number(0, ElementType::int64)}, {{"exclusive", 1}});
}

Term Decomposition::axes_from(size_t i, int64_t first) {
  const bool known = node_.input(i)->type.shape.has_value();
  if (!known && first < -64) give_up(fmt::format("axis {} is not one of a tensor's", first));
  if (!known && first >= 0) {
    Term offset = ints({first});
    return indices(shape_of(shape_of(input(i))) - offset) + offset;
  }
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < (first < 0 ? 0 : rank(i)); ++axis) axes.push_back(axis);
  return ints(axes);
}

void Decomposition::output(size_t i, Term term) {
  if (!wants_output(i)) return;
  ElementType type = node_.output(i)->type.element;
  if (type == ElementType::undefined) give_up(fmt::format("the element type of output {} is not known", i));
  output(i, cast(term, type).value);
}

void Decomposition::give_up(std::string reason) const { throw GivenUp{std::move(reason)}; }

void Decomposition::finish() {
  ir::Graph& graph = node_.graph();
  // An Identity keeps the name of the node's output, which the graph's outputs may use.
  std::vector<std::pair<ir::Node*, ir::Value*>> outputs;
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!wants_output(i)) continue;
    TENON_CHECK(results_[i]);
    outputs.emplace_back(&add_node("Identity", {results_[i]}), node_.output(i));
  }
  for (const ir::Attribute& attribute : node_.attributes) attribute.for_each_graph(detach);
  node_.remove_trailing_outputs(0);
  graph.remove_node(node_);
  for (auto& [alias, old] : outputs) alias->add_output(old);
}

void Decomposition::undo() {
  for (; !added_.empty(); added_.pop_back()) node_.graph().remove_node(*added_.back());
  for (ir::Value* value : constants_) node_.graph().remove_initializer(*value);
}

Term Term::number(double number) const { return decomposition->number(number, type); }

namespace {

Term call(const char* op, const std::vector<Term>& inputs) { return inputs[0].decomposition->add(op, inputs); }

Term test(const char* op, const std::vector<Term>& inputs) {
  return inputs[0].decomposition->add(op, inputs, {}, ElementType::boolean);
}

}  // namespace

Term operator+(Term a, Term b) { return call("Add", {a, b}); }
Term operator-(Term a, Term b) { return call("Sub", {a, b}); }
Term operator*(Term a, Term b) { return call("Mul", {a, b}); }
Term operator/(Term a, Term b) { return call("Div", {a, b}); }
Term operator-(Term a) { return call("Neg", {a}); }
Term max(Term a, Term b) { return call("Max", {a, b}); }
Term min(Term a, Term b) { return call("Min", {a, b}); }
Term abs(Term x) { return call("Abs", {x}); }
Term exp(Term x) { return call("Exp", {x}); }
Term log(Term x) { return call("Log", {x}); }
Term sqrt(Term x) { return call("Sqrt", {x}); }
Term tanh(Term x) { return call("Tanh", {x}); }
Term sigmoid(Term x) { return call("Sigmoid", {x}); }

Term equal(Term a, Term b) { return test("Equal", {a, b}); }
Term less(Term a, Term b) { return test("Less", {a, b}); }
Term greater(Term a, Term b) { return test("Greater", {a, b}); }
Term negation(Term a) { return test("Not", {a}); }
Term both(Term a, Term b) { return test("And", {a, b}); }
Term either(Term a, Term b) { return test("Or", {a, b}); }

Term where(Term condition, Term yes, Term no) {
  return yes.decomposition->add("Where", {condition, yes, no}, {}, yes.type);
}

Term cast(Term x, ElementType type) {
  return x.type == type ? x : x.decomposition->add("Cast", {x}, {{"to", type}}, type);
}

Term reduce(std::string op, Term x, Term axes, bool keep) {
  return x.decomposition->add(std::move(op), {x, axes}, {{"keepdims", keep ? 1 : 0}});
}

Term shape_of(Term x) { return x.decomposition->add("Shape", {x}, {}, ElementType::int64); }

Term shape_of(Term x, int64_t start) {
  return x.decomposition->add("Shape", {x}, {{"start", start}}, ElementType::int64);
}

Term size_of(Term x, int64_t axis) {
  if (axis == -1) return shape_of(x, axis);
  return x.decomposition->add("Shape", {x}, {{"start", axis}, {"end", axis + 1}}, ElementType::int64);
}

Term reshape(Term x, Term shape) { return x.decomposition->add("Reshape", {x, shape}, {{"allowzero", 1}}); }

Term unsqueeze(Term x, const std::vector<int64_t>& axes) { return call("Unsqueeze", {x, x.decomposition->ints(axes)}); }

Term transpose(Term x, const std::vector<int64_t>& order) {
  return x.decomposition->add("Transpose", {x}, {{"perm", order}});
}

Term expand(Term x, Term shape) { return call("Expand", {x, shape}); }

Term concat(const std::vector<Term>& parts, int64_t axis) {
  return parts[0].decomposition->add("Concat", parts, {{"axis", axis}});
}

Term gather(Term x, Term indices, int64_t axis) {
  return x.decomposition->add("Gather", {x, indices}, {{"axis", axis}});
}

Term slice(Term x, Term begin, Term end, int64_t axis, int64_t step) {
  Decomposition& d = *x.decomposition;
  return d.add("Slice", {x, begin, end, d.ints({axis}), d.ints({step})});
}

ElementType wide(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16 ? ElementType::float32 : type;
}

std::string decompose(ir::Node& node) {
  const Operator* op = operators().find(node.domain, node.op_type);
  if (!op || !op->decomposition) return "it has no decomposition";
  Decomposition decomposition(node);
  try {
    op->decomposition(decomposition);
  } catch (const GivenUp& why) {
    decomposition.undo();
    return why.reason;
  }
  decomposition.finish();
  return {};
}

}  // namespace tenon::ops
