#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "ir/graph.h"

namespace tenon::ops {

class Decomposition;

// An attribute of a node to be written: {"axis", 1}.
struct Setting {
  Setting(const char* attribute, int number) : name(attribute), value(static_cast<int64_t>(number)) {}
  Setting(const char* attribute, int64_t number) : name(attribute), value(number) {}
  Setting(const char* attribute, float number) : name(attribute), value(number) {}
  Setting(const char* attribute, std::string text) : name(attribute), value(std::move(text)) {}
  Setting(const char* attribute, std::vector<int64_t> numbers) : name(attribute), value(std::move(numbers)) {}
  Setting(const char* attribute, std::vector<float> numbers) : name(attribute), value(std::move(numbers)) {}
  Setting(const char* attribute, std::vector<std::string> texts) : name(attribute), value(std::move(texts)) {}
  Setting(const char* attribute, ElementType type) : name(attribute), value(static_cast<int64_t>(type)) {}
  Setting(const char* attribute, Tensor tensor) : name(attribute), value(std::move(tensor)) {}

  const char* name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>, Tensor>
      value;
};

// A tensor in a decomposition, and its element type. The functions below add the nodes that compute with it. One that
// holds nothing stands for an optional input that is left out.
struct Term {
  Decomposition* decomposition = nullptr;
  ir::Value* value = nullptr;
  ElementType type = ElementType::undefined;

  explicit operator bool() const { return value != nullptr; }
  // A scalar of the same type.
  Term number(double number) const;
};

// Writes a node as nodes of smaller operators that compute the same. An operator has one like this:
//
//   void decompose_swish(Decomposition& d) {
//     Term x = d.wide_input(0);
//     d.output(0, x * sigmoid(x * d.node().float_attribute("alpha", 1)));
//   }
//
// Types and shapes of the node's inputs are those that inference found, and what its rule checks of them has been
// checked: sizes that only a run knows have not. Of the terms in between only the element type is known.
class Decomposition {
 public:
  explicit Decomposition(ir::Node& node)
      : node_(node), graph_(&node.graph()), before_(&node), results_(node.output_count()) {}
  Decomposition(const Decomposition&) = delete;
  Decomposition& operator=(const Decomposition&) = delete;

  const ir::Node& node() const { return node_; }
  bool has_input(size_t i) const { return node_.input(i) != nullptr; }
  bool wants_output(size_t i) const { return node_.output(i) != nullptr; }
  Term input(size_t i);
  // The input with float16 and bfloat16 as float32, so that only the result is rounded to the shorter type.
  Term wide_input(size_t i);
  // These give up when it is not known.
  ElementType element(size_t i) const;
  int rank(size_t i) const;
  // -1 when only a run can tell.
  int known_rank(size_t i) const;
  int64_t known_size(size_t i, int axis) const;

  // A node of ai.onnx with one output, which is returned. Its element type is the first input's unless another is
  // given.
  Term add(std::string op, const std::vector<Term>& inputs, std::initializer_list<Setting> attributes = {},
           ElementType type = ElementType::undefined);
  // A node with neither outputs nor attributes yet.
  ir::Node& add_node(std::string op, const std::vector<ir::Value*>& inputs);
  ir::Value* add_output(ir::Node& added);

  // Runs `write`, during which everything is added to a new graph: the attribute `name` of `added`. What it adds may
  // use the terms outside, but not the other way round.
  void add_graph(ir::Node& added, const char* name, FunctionRef<void(ir::Graph&)> write);
  // An input of the graph that is being added.
  ir::Value* add_graph_input(const char* name, ir::Type type);
  // The nodes of a graph that the node holds, with these values as its inputs; returns what its outputs are.
  std::vector<ir::Value*> add_nodes_of(const ir::Graph& graph, const std::vector<ir::Value*>& inputs);
  // A Scan along one axis of `sequences`. `step` is given the state and the sequences' slices, without that axis, and
  // returns the next state and a result; the last state and the results, put together along the axis, are returned.
  struct Step {
    Term state, result;
  };
  Step scan(Term state, const std::vector<Term>& sequences, int64_t axis,
            FunctionRef<Step(Term, const std::vector<Term>&)> step);

  // Constants: a scalar of a numeric type, into whose range it is brought, and a list of int64.
  Term number(double value, ElementType type);
  Term ints(const std::vector<int64_t>& numbers);
  // 0, 1, … count - 1 as int64; `count` is one int64.
  Term indices(Term count);
  // The axes from `first`, which may be negative, to the last of input i.
  Term axes_from(size_t i, int64_t first);

  // What takes the place of output i. It is rounded to that output's type.
  void output(size_t i, Term value);
  void output(size_t i, ir::Value* value) { results_.at(i) = value; }

  // Leaves the node as it is, with the reason why it cannot be written in other operators.
  [[noreturn]] void give_up(std::string reason) const;

 private:
  friend std::string write_as(ir::Node& node, FunctionRef<void(Decomposition&)> writer);
  Term constant(Tensor tensor);
  void finish();
  void undo();

  ir::Node& node_;
  ir::Graph* graph_;              // where nodes are added,
  ir::Node* before_;              // and before which one; at the end if null
  std::vector<ir::Node*> added_;  // to the node's own graph
  std::vector<ir::Value*> constants_, results_;
};

// Arithmetic, broadcasting as ONNX does. Numbers take the type of the term they are combined with.
Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator-(Term a);
inline Term operator+(Term a, double b) { return a + a.number(b); }
inline Term operator-(Term a, double b) { return a - a.number(b); }
inline Term operator*(Term a, double b) { return a * a.number(b); }
inline Term operator/(Term a, double b) { return a / a.number(b); }
inline Term operator+(double a, Term b) { return b.number(a) + b; }
inline Term operator-(double a, Term b) { return b.number(a) - b; }
inline Term operator*(double a, Term b) { return b.number(a) * b; }
inline Term operator/(double a, Term b) { return b.number(a) / b; }

Term max(Term a, Term b);
Term min(Term a, Term b);
inline Term max(Term a, double b) { return max(a, a.number(b)); }
inline Term min(Term a, double b) { return min(a, a.number(b)); }
Term abs(Term x);
Term exp(Term x);
Term log(Term x);
Term sqrt(Term x);
Term tanh(Term x);
Term sigmoid(Term x);

// Truth values.
Term equal(Term a, Term b);
Term less(Term a, Term b);
Term greater(Term a, Term b);
inline Term equal(Term a, double b) { return equal(a, a.number(b)); }
inline Term less(Term a, double b) { return less(a, a.number(b)); }
inline Term greater(Term a, double b) { return greater(a, a.number(b)); }
Term negation(Term a);
Term both(Term a, Term b);
Term either(Term a, Term b);
Term where(Term condition, Term yes, Term no);
inline Term where(Term condition, double yes, Term no) { return where(condition, no.number(yes), no); }
inline Term where(Term condition, Term yes, double no) { return where(condition, yes, yes.number(no)); }

// The indices as they are, but for those below 0, which Gather would count from the end: no axis has what becomes of
// them.
Term counted_from_front(Term indices);

// Adds no node where the type is that already.
Term cast(Term x, ElementType type);

// ReduceSum, ReduceMax, …; over all axes when `axes` holds nothing.
Term reduce(std::string op, Term x, Term axes = {}, bool keep = true);

// Shapes are lists of int64.
Term shape_of(Term x);
// From axis `start` on.
Term shape_of(Term x, int64_t start);
// Up to the last axis, which is left out.
Term outer_shape_of(Term x);
// The size of one axis, which may be negative, as a list of one.
Term size_of(Term x, int64_t axis);
// The sizes as they are: 0 is an empty axis.
Term reshape(Term x, Term shape);
Term unsqueeze(Term x, const std::vector<int64_t>& axes);
Term transpose(Term x, const std::vector<int64_t>& order);
Term expand(Term x, Term shape);
Term concat(const std::vector<Term>& parts, int64_t axis = 0);
Term gather(Term x, Term indices, int64_t axis);
// Every step-th element of an axis from begin to end, which are lists of one.
Term slice(Term x, Term begin, Term end, int64_t axis, int64_t step = 1);

// The type that wide_input gives an input of this type.
ElementType wide(ElementType type);

// Writes the node as `writer` says and removes it. Else says why not and changes nothing.
std::string write_as(ir::Node& node, FunctionRef<void(Decomposition&)> writer);
// The same with its operator's decomposition.
std::string decompose(ir::Node& node);

}  // namespace tenon::ops
