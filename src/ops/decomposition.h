#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace tenon::ops {

// An attribute of a node to be written: {"axis", 1}.
struct Setting {
  Setting(const char* attribute, int number) : name(attribute), value(static_cast<int64_t>(number)) {}
  Setting(const char* attribute, int64_t number) : name(attribute), value(number) {}
  Setting(const char* attribute, float number) : name(attribute), value(number) {}
  Setting(const char* attribute, const char* text) : name(attribute), value(std::string(text)) {}
  Setting(const char* attribute, std::string text) : name(attribute), value(std::move(text)) {}
  Setting(const char* attribute, std::vector<int64_t> numbers) : name(attribute), value(std::move(numbers)) {}
  Setting(const char* attribute, ElementType type) : name(attribute), value(static_cast<int64_t>(type)) {}

  const char* name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

// Writes a node as nodes of smaller operators that compute the same. An operator has one like this:
//
//   void decompose_swish(Decomposition& d) {
//     auto x = d.input(0), scaled = d.add("Mul", {x, d.number(d.node().float_attribute("alpha", 1), d.element(0))});
//     d.output(0, d.add("Mul", {x, d.add("Sigmoid", {scaled})}));
//   }
//
// Types and shapes are inferred as far as they can be without running. What the nodes read is the node's inputs and
// what `add` and the constants return; attributes are the node's own.
class Decomposition {
 public:
  explicit Decomposition(ir::Node& node) : node_(node), results_(node.output_count()) {}

  const ir::Node& node() const { return node_; }
  // Null for an optional one that is left out.
  ir::Value* input(size_t i) const { return node_.input(i); }
  bool wants_output(size_t i) const { return node_.output(i) != nullptr; }
  const ir::Type& type(size_t i) const { return node_.input(i)->type; }
  // Of an input; these give up when it is not known.
  ElementType element(size_t i) const;
  int rank(size_t i) const;

  // A node of ai.onnx with one output, which is returned.
  ir::Value* add(std::string op, const std::vector<ir::Value*>& inputs, std::initializer_list<Setting> attributes = {});
  std::vector<ir::Value*> add_with_outputs(std::string op, const std::vector<ir::Value*>& inputs, size_t outputs,
                                           std::initializer_list<Setting> attributes = {});
  // Constants: a list of int64, a scalar of any numeric type.
  ir::Value* ints(const std::vector<int64_t>& numbers);
  ir::Value* number(double value, ElementType type);
  // What takes the place of output i.
  void output(size_t i, ir::Value* value) { results_.at(i) = value; }

  // Leaves the node as it is, with the reason why it cannot be written in other operators.
  [[noreturn]] void give_up(std::string reason) const;

  // Puts the results in the node's place and removes it; or removes what was added.
  void finish();
  void undo();

 private:
  ir::Node& node_;
  std::vector<ir::Node*> added_;
  std::vector<ir::Value*> results_;
};

// Writes the node as its operator's decomposition and removes it. Else says why not and changes nothing.
std::string decompose(ir::Node& node);

}  // namespace tenon::ops
