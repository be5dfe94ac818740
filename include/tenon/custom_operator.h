// Operators of your own: what a node of them looks like, what it makes, and how the CPU computes it.
//
//   CustomOperator clamp = CustomOperator("com.example", "Clamp", /*since=*/1)
//       .input("x", "T").output("y", "T").types("T", {ElementType::float32, ElementType::float64})
//       .attribute("limit", 1.0f)
//       .infer([](CustomInference& i) { i.set_output(0, i.input_type(0), i.input_shape(0)); })
//       .cpu([](CustomRun& run) { … run.input(0) … run.output(0) … });
//   options.custom_operators.push_back(clamp);
//
// docs/recipes/add-your-own-operator.md is the way from here to a shared library.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/dim.h"
#include "tenon/tensor.h"
#include "tenon/version.h"

namespace tenon {

// What an attribute holds: one of these kinds, as the operator declares it.
using AttributeValue = std::variant<float, int64_t, std::string, std::vector<float>, std::vector<int64_t>,
                                    std::vector<std::string>, Tensor>;

// A node of a custom operator. What the operator declares has been checked: the counts and types of inputs, the names
// and kinds of attributes.
class CustomNode {
 public:
  virtual ~CustomNode() = default;
  virtual size_t input_count() const = 0;
  // False for an optional input that the node leaves out.
  virtual bool has_input(size_t i) const = 0;
  // ElementType::undefined while nothing is known of it.
  virtual ElementType input_type(size_t i) const = 0;
  virtual size_t output_count() const = 0;
  // False for an output that the node leaves out, which any node may do.
  virtual bool wants_output(size_t i) const = 0;
  // What the model gives the attribute, or its default; nullopt when there is neither.
  virtual std::optional<AttributeValue> find_attribute(std::string_view name) const = 0;

  // The same as the T that was declared. Throws ErrorCode::custom_operator when there is none.
  template <typename T>
  T attribute(std::string_view name) const {
    std::optional<AttributeValue> value = find_attribute(name);
    if (value && std::holds_alternative<T>(*value)) return std::get<T>(std::move(*value));
    throw Error(ErrorCode::custom_operator, "its code asks for attribute '" + std::string(name) + "', which " +
                                                (value ? "is declared with another type" : "has no value"));
  }
};

// What an inference rule sees and fills in. The rule runs when a model is loaded, on sizes that may be symbols and on
// shapes that may be unknown, and again on the real ones of a run; it may be called from several threads at once.
class CustomInference : public CustomNode {
 public:
  // nullopt: not even the rank is known. Sizes may be numbers, names or expressions of them; pass them on as they are.
  virtual const std::optional<SymbolicShape>& input_shape(size_t i) const = 0;
  // The content where it is known: that of weights, and of small inputs of a run that decide a shape. Else null.
  virtual const Tensor* constant(size_t i) const = 0;
  // The content of a short list of integers, such as a shape, where each may be a symbol.
  virtual std::optional<SymbolicValues> input_values(size_t i) const = 0;

  // An output whose shape is given as numbers has its memory before the kernel runs. One without a shape is for the
  // kernel to size. ElementType::undefined stands for the type that the declaration implies.
  virtual void set_output(size_t i, ElementType type, std::optional<SymbolicShape> shape = std::nullopt) = 0;

  // The common size of two that must be equal; `what` names them in the error.
  virtual Dim equal(const Dim& a, const Dim& b, std::string_view what) const = 0;
  // Throws ErrorCode::shape_mismatch with the node and what its inputs are.
  [[noreturn]] virtual void fail(const std::string& message) const = 0;
};

// What a kernel is made from.
class CustomKernelInfo : public CustomNode {
 public:
  // The content of an input that no run can change, to be packed once. Else null.
  virtual const Tensor* constant(size_t i) const = 0;
};

// One execution of a node.
class CustomRun : public CustomNode {
 public:
  virtual const Tensor& input(size_t i) const = 0;
  // The output's memory, in the inferred type and shape. Its content is undefined until it is written.
  virtual Tensor& output(size_t i) = 0;
  // The same where only the kernel knows the shape. Throws ErrorCode::custom_operator if inference found another one.
  virtual Tensor& output(size_t i, const Shape& shape) = 0;
  // Gives a tensor out as it is, such as an input under another shape; it is copied only where it must be.
  virtual void set_output(size_t i, Tensor tensor) = 0;

  // Calls body(begin, end) on ranges that cover [0, count), on the session's threads; each is at least `grain` long
  // except the last. An exception of a range is rethrown here.
  virtual void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) const = 0;
  // Memory for the time that the returned owner is kept, counted against the session's limit.
  virtual std::shared_ptr<void> scratch(int64_t bytes) const = 0;
};

// A kernel with state: made once per node, run many times, from several threads at once.
class CustomKernel {
 public:
  virtual ~CustomKernel() = default;
  virtual void run(CustomRun& run) const = 0;
};

// An operator. A session takes copies of it, so it may be used for any number of them.
class CustomOperator {
 public:
  struct Parameter {
    enum class Count : uint8_t { one, optional, any_number };
    std::string name;
    std::string variable;  // parameters with the same type variable have one type
    std::vector<ElementType> types;
    Count count = Count::one;
    int at_least = 1;  // of any_number
  };
  struct Attribute {
    std::string name;
    AttributeValue otherwise;  // the default, or any value of its type
    bool has_default = false, is_required = false;
  };

  // `since`: the first version of the domain's operator set with this meaning. Of several definitions of one operator a
  // node gets the newest that the model's import of the domain allows.
  CustomOperator(std::string domain, std::string name, int since = 1)
      : domain(std::move(domain)), name(std::move(name)), since(since) {}

  std::string domain, name;
  int since;
  std::vector<Parameter> inputs, outputs;
  std::vector<Attribute> attributes;
  std::function<void(CustomInference&)> inference;
  std::function<void(CustomRun&)> run;
  std::function<std::unique_ptr<CustomKernel>(const CustomKernelInfo&)> make_kernel;
  bool is_random = false;

  // Tensors of the types that are listed, or of a type variable, which `types` explains. Optional ones come after the
  // others, a variadic one, which stands for any number, is the last.
  CustomOperator& input(std::string parameter, std::vector<ElementType> types) {
    return add(inputs, {std::move(parameter), "", std::move(types), Parameter::Count::one});
  }
  CustomOperator& input(std::string parameter, std::string variable) {
    return add(inputs, {std::move(parameter), std::move(variable), {}, Parameter::Count::one});
  }
  CustomOperator& optional_input(std::string parameter, std::vector<ElementType> types) {
    return add(inputs, {std::move(parameter), "", std::move(types), Parameter::Count::optional});
  }
  CustomOperator& optional_input(std::string parameter, std::string variable) {
    return add(inputs, {std::move(parameter), std::move(variable), {}, Parameter::Count::optional});
  }
  CustomOperator& variadic_input(std::string parameter, std::vector<ElementType> types, int at_least = 1) {
    return add(inputs, {std::move(parameter), "", std::move(types), Parameter::Count::any_number, at_least});
  }
  CustomOperator& variadic_input(std::string parameter, std::string variable, int at_least = 1) {
    return add(inputs, {std::move(parameter), std::move(variable), {}, Parameter::Count::any_number, at_least});
  }
  CustomOperator& output(std::string parameter, std::vector<ElementType> types) {
    return add(outputs, {std::move(parameter), "", std::move(types), Parameter::Count::one});
  }
  CustomOperator& output(std::string parameter, std::string variable) {
    return add(outputs, {std::move(parameter), std::move(variable), {}, Parameter::Count::one});
  }
  CustomOperator& variadic_output(std::string parameter, std::vector<ElementType> types) {
    return add(outputs, {std::move(parameter), "", std::move(types), Parameter::Count::any_number});
  }
  CustomOperator& variadic_output(std::string parameter, std::string variable) {
    return add(outputs, {std::move(parameter), std::move(variable), {}, Parameter::Count::any_number});
  }
  // The types that a variable of the parameters so far stands for.
  CustomOperator& types(std::string_view variable, const std::vector<ElementType>& allowed) {
    for (auto* list : {&inputs, &outputs}) {
      for (Parameter& parameter : *list) {
        if (parameter.variable == variable) parameter.types = allowed;
      }
    }
    return *this;
  }

  // An attribute with a default.
  CustomOperator& attribute(std::string attribute_name, AttributeValue otherwise) {
    attributes.push_back({std::move(attribute_name), std::move(otherwise), /*has_default=*/true, false});
    return *this;
  }
  template <std::floating_point T>
  CustomOperator& attribute(std::string attribute_name, T otherwise) {
    return attribute(std::move(attribute_name), AttributeValue(static_cast<float>(otherwise)));
  }
  // One that may be absent, and one that may not.
  template <typename T>
  CustomOperator& optional_attribute(std::string attribute_name) {
    attributes.push_back({std::move(attribute_name), T(), false, false});
    return *this;
  }
  template <typename T>
  CustomOperator& required_attribute(std::string attribute_name) {
    attributes.push_back({std::move(attribute_name), T(), false, /*is_required=*/true});
    return *this;
  }

  // Without a rule, outputs have the types that the declaration implies, and shapes that only the kernel knows.
  CustomOperator& infer(std::function<void(CustomInference&)> rule) {
    inference = std::move(rule);
    return *this;
  }
  // The kernel: a function, or something with state that `make` makes once per node.
  CustomOperator& cpu(std::function<void(CustomRun&)> kernel) {
    run = std::move(kernel);
    return *this;
  }
  CustomOperator& cpu_kernel(std::function<std::unique_ptr<CustomKernel>(const CustomKernelInfo&)> make) {
    make_kernel = std::move(make);
    return *this;
  }
  // Two runs may give different outputs for the same inputs: no node is computed ahead, or once for several.
  CustomOperator& random() {
    is_random = true;
    return *this;
  }

 private:
  CustomOperator& add(std::vector<Parameter>& list, Parameter parameter) {
    list.push_back(std::move(parameter));
    return *this;
  }
};

// The standard library that this is compiled with, as far as it decides the layout of its types. With internal linkage,
// as header_version.
#if defined(_LIBCPP_VERSION)
constexpr char standard_library[] = "libc++";
#elif defined(_GLIBCXX_DEBUG)
constexpr char standard_library[] = "libstdc++ in debug mode";
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
constexpr char standard_library[] = "libstdc++ without the C++11 ABI";
#elif defined(__GLIBCXX__)
constexpr char standard_library[] = "libstdc++";
#else
constexpr char standard_library[] = "another standard library";
#endif

// What a shared library exports as `tenon_custom_operators`. The two texts are compared before anything of it is
// called; they stay where they are in every version of Tenon.
struct CustomOperatorLibrary {
  const char* tenon_version;
  const char* standard_library;
  void (*list)(std::vector<CustomOperator>& operators);
};

}  // namespace tenon

// Written once in a shared library, which SessionOptions::custom_operator_libraries or --custom-operators then names:
//
//   TENON_CUSTOM_OPERATORS(operators) { operators.push_back(clamp()); }
#define TENON_CUSTOM_OPERATORS(operators)                                                                      \
  static void tenon_list_custom_operators(std::vector<tenon::CustomOperator>& operators);                      \
  extern "C" __attribute__((visibility("default"))) const tenon::CustomOperatorLibrary tenon_custom_operators; \
  extern "C" const tenon::CustomOperatorLibrary tenon_custom_operators = {                                     \
      tenon::header_version, tenon::standard_library, tenon_list_custom_operators};                            \
  static void tenon_list_custom_operators(std::vector<tenon::CustomOperator>& operators)
