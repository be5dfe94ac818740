// A table-like way to test one operator: inputs, attributes, expected outputs.
//
//   OpTest("Softmax").attribute("axis", 1).input<float>({2, 2}, {1, 2, 3, 4}).expect<float>({2, 2}, {…}).run();
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph.h"
#include "onnx/model_file.h"
#include "ops/operator.h"
#include "tenon/session.h"

namespace tenon {

class OpTest {
 public:
  explicit OpTest(std::string op, int64_t opset = ops::newest_opset, std::string domain = "")
      : op_(std::move(op)), domain_(std::move(domain)), opset_(opset) {}

  OpTest& attribute(std::string name, int64_t value) { return add(ir::Attribute(std::move(name), value)); }
  OpTest& attribute(std::string name, int value) {
    return add(ir::Attribute(std::move(name), static_cast<int64_t>(value)));
  }
  OpTest& attribute(std::string name, float value) { return add(ir::Attribute(std::move(name), value)); }
  OpTest& attribute(std::string name, const char* value) {
    return add(ir::Attribute(std::move(name), std::string(value)));
  }
  OpTest& attribute(std::string name, std::vector<int64_t> value) {
    return add(ir::Attribute(std::move(name), std::move(value)));
  }
  OpTest& attribute(std::string name, std::vector<float> value) {
    return add(ir::Attribute(std::move(name), std::move(value)));
  }
  OpTest& attribute(std::string name, std::initializer_list<int> value) {
    return add(ir::Attribute(std::move(name), std::vector<int64_t>(value.begin(), value.end())));
  }
  OpTest& attribute(std::string name, std::initializer_list<int64_t> value) {
    return add(ir::Attribute(std::move(name), std::vector<int64_t>(value)));
  }
  OpTest& attribute(std::string name, std::initializer_list<float> value) {
    return add(ir::Attribute(std::move(name), std::vector<float>(value)));
  }
  OpTest& attribute(std::string name, std::vector<std::string> value) {
    return add(ir::Attribute(std::move(name), std::move(value)));
  }
  OpTest& attribute(std::string name, Tensor value) { return add(ir::Attribute(std::move(name), std::move(value))); }
  OpTest& attribute(std::string name, std::unique_ptr<ir::Graph> value) {
    return add(ir::Attribute(std::move(name), std::move(value)));
  }

  template <typename T>
  OpTest& input(Shape shape, std::initializer_list<T> values) {
    return input(Tensor(std::move(shape), values));
  }
  OpTest& input(Value value);
  // An input that the model holds as an initializer, so that kernels may pack it.
  template <typename T>
  OpTest& constant(Shape shape, std::initializer_list<T> values) {
    return constant(Tensor(std::move(shape), values));
  }
  OpTest& constant(Tensor tensor);
  // An optional input that is left out.
  OpTest& no_input();
  template <typename T>
  OpTest& expect(Shape shape, std::initializer_list<T> values) {
    return expect(Tensor(std::move(shape), values));
  }
  OpTest& expect(Value value);
  OpTest& no_output();
  OpTest& tolerance(double relative, double absolute) {
    relative_ = relative;
    absolute_ = absolute;
    return *this;
  }

  // The operator's decomposition gives up on this node.
  OpTest& stays_whole() {
    stays_whole_ = true;
    return *this;
  }

  // What the model says of its inputs.
  enum class Declared { shapes, ranks, types };

  // Runs the operator; once more brought up one opset at a time if it is of an older one; and as its decomposition into
  // smaller operators if it has one: with shapes that are known, of which only the ranks are, and that are not known.
  void run();
  // The text of the error that loading or running must throw. The operator's decomposition must throw one too, whatever
  // is known of the shapes.
  std::string error();

 private:
  struct Input {
    Value value;
    bool is_constant = false;
  };
  OpTest& add(ir::Attribute attribute) {
    attributes_.push_back(std::move(attribute));
    return *this;
  }
  NamedValues outputs(const SessionOptions& options = {}, bool lift_steps = false,
                      Declared declared = Declared::shapes);
  std::string error_of(const SessionOptions& options, Declared declared = Declared::shapes);
  void compare(const SessionOptions& options, bool lift_steps = false, Declared declared = Declared::shapes);

  std::string op_, domain_;
  int64_t opset_;
  std::vector<ir::Attribute> attributes_;
  std::vector<Input> inputs_;
  std::vector<Value> expected_;
  bool stays_whole_ = false;
  double relative_ = 1e-5, absolute_ = 1e-6;
};

// Fails the test, with the first difference, unless both have one type and shape and nearly equal elements.
void expect_near(const Value& actual, const Value& expected, double relative, double absolute, const std::string& name);

}  // namespace tenon
