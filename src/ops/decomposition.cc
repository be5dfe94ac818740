#include "ops/decomposition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/fail.h"
#include "ir/copy_nodes.h"
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

int Decomposition::known_rank(size_t i) const {
  const ir::Value* value = node_.input(i);
  return value && value->type.shape ? static_cast<int>(value->type.shape->size()) : -1;
}

int Decomposition::rank(size_t i) const {
  if (known_rank(i) < 0) give_up(fmt::format("the rank of input {} is not known", i));
  return known_rank(i);
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
  ir::Node& added = graph_->add_node(std::move(op), "", before_);
  if (graph_ == &node_.graph()) added_.push_back(&added);
  added.name = node_.name;
  added.origin = node_.origin;
  for (ir::Value* value : inputs) added.add_input(value);
  return added;
}

ir::Value* Decomposition::add_output(ir::Node& added) {
  ir::Value& value = graph_->add_value(node_.name + "/" + added.op_type, /*fresh=*/true);
  added.add_output(&value);
  return &value;
}

void Decomposition::add_graph(ir::Node& added, const char* name, FunctionRef<void(ir::Graph&)> write) {
  auto graph = std::make_unique<ir::Graph>();
  graph->name = name;
  ir::Graph* outer = std::exchange(graph_, graph.get());
  ir::Node* before = std::exchange(before_, nullptr);
  added.set_attribute({name, std::move(graph)});
  write(*graph_);
  graph_ = outer;
  before_ = before;
}

ir::Value* Decomposition::add_graph_input(const char* name, ir::Type type) {
  ir::Value& value = graph_->add_value(node_.name + "/" + name, /*fresh=*/true);
  value.type = std::move(type);
  graph_->add_input(value);
  return &value;
}

std::vector<ir::Value*> Decomposition::add_nodes_of(const ir::Graph& graph, const std::vector<ir::Value*>& inputs) {
  if (graph.inputs().size() != inputs.size())
    give_up(fmt::format("graph '{}' has {} inputs instead of {}", graph.name, graph.inputs().size(), inputs.size()));
  ir::Twins twins;
  for (size_t i = 0; i < inputs.size(); ++i) twins[graph.inputs()[i]] = inputs[i];
  for (const ir::Value& value : graph.values()) {
    if (twins.count(&value)) continue;
    ir::Value& twin = graph_->add_value(value.name, /*fresh=*/true);
    twin.type = value.type;
    if (value.constant()) graph_->set_initializer(twin, value.constant());
    if (value.sparse_constant()) graph_->set_initializer(twin, value.sparse_constant());
    if (value.is_initializer() && graph_ == &node_.graph()) constants_.push_back(&twin);
    twins[&value] = &twin;
  }
  for (const ir::Node& node : graph.nodes()) copy_node(node, add_node(node.op_type, {}), twins);
  std::vector<ir::Value*> outputs;
  for (ir::Value* value : graph.outputs()) outputs.push_back(twin_of(twins, value));
  return outputs;
}

Decomposition::Step Decomposition::scan(Term state, const std::vector<Term>& sequences, int64_t axis,
                                        FunctionRef<Step(Term, const std::vector<Term>&)> step) {
  std::vector<ir::Value*> inputs{state.value};
  for (const Term& sequence : sequences) inputs.push_back(sequence.value);
  ir::Node& added = add_node("Scan", inputs);
  added.set_attribute({"num_scan_inputs", static_cast<int64_t>(sequences.size())});
  added.set_attribute({"scan_input_axes", std::vector<int64_t>(sequences.size(), axis)});
  added.set_attribute({"scan_output_axes", std::vector<int64_t>{axis}});
  Step last;
  add_graph(added, "body", [&](ir::Graph& body) {
    auto input = [&](const char* name, ElementType type) {
      return Term{this, add_graph_input(name, ir::Type::tensor(type)), type};
    };
    Term before = input("state", state.type);
    std::vector<Term> slices;
    for (const Term& sequence : sequences) slices.push_back(input("slice", sequence.type));
    last = step(before, slices);
    body.add_output(*last.state.value);
    body.add_output(*last.result.value);
  });
  last.state.value = add_output(added);
  last.result.value = add_output(added);
  return last;
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
  ir::Value& value = graph_->add_constant(std::move(tensor), node_.name + "/constant");
  if (graph_ == &node_.graph()) constants_.push_back(&value);
  return {this, &value, type};
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
  const bool known = known_rank(i) >= 0;
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
  // The node's outputs stay, with their names: the nodes that were added make them, or an Identity of what they made.
  std::vector<std::pair<ir::Node*, ir::Value*>> outputs;
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!wants_output(i)) continue;
    TENON_CHECK(results_[i]);
    ir::Node* maker = results_[i]->producer();
    const bool is_free = maker && maker->output_count() == 1 && std::ranges::count(results_, results_[i]) == 1 &&
                         std::ranges::find(added_, maker) != added_.end();
    outputs.emplace_back(is_free ? maker : &add_node("Identity", {results_[i]}), node_.output(i));
  }
  for (const ir::Attribute& attribute : node_.attributes) attribute.for_each_graph(detach);
  node_.remove_trailing_outputs(0);
  graph.remove_node(node_);
  for (auto& [maker, old] : outputs) {
    ir::Value* made = maker->output(0);
    if (made) maker->remove_trailing_outputs(0);
    maker->add_output(old);
    if (made) graph.replace_uses(*made, *old);
  }
}

void Decomposition::undo() {
  for (; !added_.empty(); added_.pop_back()) {
    for (const ir::Attribute& attribute : added_.back()->attributes) attribute.for_each_graph(detach);
    node_.graph().remove_node(*added_.back());
  }
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

Term counted_from_front(Term indices) { return where(less(indices, 0), -INFINITY, indices); }

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

Term outer_shape_of(Term x) { return x.decomposition->add("Shape", {x}, {{"end", -1}}, ElementType::int64); }

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
  const Operator* op = operator_of(node);
  if (!op || !op->decomposition) return "it has no decomposition";
  return write_as(node, op->decomposition);
}

std::string write_as(ir::Node& node, FunctionRef<void(Decomposition&)> writer) {
  Decomposition decomposition(node);
  try {
    writer(decomposition);
  } catch (const GivenUp& why) {
    decomposition.undo();
    return why.reason;
  }
  decomposition.finish();
  return {};
}

}  // namespace tenon::ops
