// What tests of custom operators share.
#pragma once

#include <string>
#include <vector>

#include "model_builder.h"

namespace tenon {

// The inference rule of operators that keep type and shape.
inline void same_as_input(CustomInference& i) { i.set_output(0, i.input_type(0), i.input_shape(0)); }

// y = factor * x
inline CustomOperator scale(const std::string& name = "Scale", int since = 1) {
  return CustomOperator("my", name, since)
      .input("x", "T")
      .output("y", "T")
      .types("T", {ElementType::float32, ElementType::float64})
      .attribute("factor", 2.0f)
      .infer(same_as_input)
      .cpu([](CustomRun& run) {
        const float factor = run.attribute<float>("factor");
        auto compute = [&](auto x, auto y) {
          for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * factor;
        };
        if (run.input_type(0) == ElementType::float32)
          compute(run.input(0).data<float>(), run.output(0).mutable_data<float>());
        else
          compute(run.input(0).data<double>(), run.output(0).mutable_data<double>());
      });
}

// One node of an operator of domain "my" between the inputs "x", … and the outputs "y", ….
inline ModelBuilder one_node(const std::string& op, const std::vector<std::string>& inputs = {"x"},
                             const std::vector<std::string>& outputs = {"y"}, ElementType type = ElementType::float32) {
  ModelBuilder b;
  b.model().opset_imports.add("my", 1);
  for (const std::string& name : inputs) {
    if (!name.empty()) b.input(name, type, SymbolicShape{Dim::symbol("n")});
  }
  b.node(op, inputs, outputs, "mine", "my");
  for (const std::string& name : outputs) {
    if (!name.empty()) b.output(name);
  }
  return b;
}

inline SessionOptions with(std::vector<CustomOperator> operators, OptimizationLevel level = OptimizationLevel::all) {
  SessionOptions options;
  options.custom_operators = std::move(operators);
  options.level = level;
  return options;
}

inline Tensor floats(std::initializer_list<float> numbers) {
  return Tensor({static_cast<int64_t>(numbers.size())}, numbers);
}

inline Tensor run_y(const Session& session, const NamedValues& feeds) { return session.run(feeds).at("y").tensor(); }

inline std::string load_error(const ModelBuilder& b, const CustomOperator& op) {
  return error_of([&] { b.session(with({op})); });
}

}  // namespace tenon
