#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace tenon {
class Kernel;
class NodeInfo;
}  // namespace tenon

namespace tenon::ops {

class Decomposition;
class Inference;
struct CostTensor;
struct Layout;

// A set of element types.
class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<ElementType> types) {
    for (ElementType type : types) bits_ |= 1u << static_cast<int>(type);
  }
  constexpr bool contains(ElementType type) const { return bits_ >> static_cast<int>(type) & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr TypeSet operator|(TypeSet a, TypeSet b) { return TypeSet(a.bits_ | b.bits_); }
  friend constexpr TypeSet operator-(TypeSet a, TypeSet b) { return TypeSet(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(TypeSet, TypeSet) = default;
  // "float, double or int32"
  std::string to_string() const;

 private:
  explicit constexpr TypeSet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

// The sets that operators share.
namespace types {
using enum ElementType;
inline constexpr TypeSet floats{float16, float32, float64, bfloat16};
inline constexpr TypeSet signed_ints{ElementType::int8, int16, int32, int64};
inline constexpr TypeSet unsigned_ints{ElementType::uint8, uint16, uint32, uint64};
inline constexpr TypeSet ints = signed_ints | unsigned_ints;
inline constexpr TypeSet numbers = floats | ints;
inline constexpr TypeSet index{int32, int64};
inline constexpr TypeSet bools{boolean};
inline constexpr TypeSet strings{ElementType::string};
inline constexpr TypeSet complexes{complex64, complex128};
inline constexpr TypeSet float8s{float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz, float8e8m0};
inline constexpr TypeSet sub_bytes{uint4, int4, float4e2m1, uint2, int2, float6e2m3, float6e3m2};
// What every operator that only moves elements takes.
inline constexpr TypeSet movable = numbers | bools | strings | complexes;
inline constexpr TypeSet all = movable | float8s | sub_bytes;
}  // namespace types

// Which kinds of value a parameter takes.
enum class Kinds : uint8_t { tensor, sequence, optional, map, any };

// How much of their first input operators read: all of it, as much as they write, or nothing but its shape.
enum class Reads : uint8_t { all, picked, shape };

struct Parameter {
  enum class Count : uint8_t { one, optional, any_number };

  std::string name;
  std::string variable;  // parameters with the same type variable have the same type; "" is bound to nothing
  TypeSet types;         // allowed element types; empty: the type variable's
  Kinds kinds = Kinds::tensor;
  Count count = Count::one;
  int at_least = 1;        // of any_number
  bool same_types = true;  // of any_number: all have one type
};

struct AttributeRule {
  std::string name;
  ir::AttributeKind kind;
  bool required = false;
};

// Brings a node from the meaning it had since version `from` to the one it has since `to`. It may change attributes and
// inputs, add nodes before it or after it, or become another operator.
struct Adapter {
  int from, to;
  std::function<void(ir::Node&)> lift;
};

// The way back: brings a node from the meaning it has since version `from` to the one it had since `to`. Where that
// cannot be said it changes nothing and returns a sentence that says why.
struct Inverse {
  int from, to;
  std::function<std::string(ir::Node&)> lower;
};

// An attribute or an optional input that came with version `since`. Without it, or with the attribute at `otherwise`, a
// node means what it meant before.
struct Addition {
  int since;
  std::string attribute;
  int input = -1;
  std::variant<std::monostate, int64_t, std::string> otherwise;
};

// One operator in its newest version, and the way there from each older one. A folder in src/ops defines it like this:
//
//   list.add("Softmax", {1, 11, 13})
//       .input("input", "T").output("output", "T").types("T", types::floats)
//       .attribute("axis", AttributeKind::int_)
//       .infer([](Inference& i) { i.same_as_input(0); })
//       .lift(1, 13, flatten_to_two_dimensions);
class Operator {
 public:
  std::string name, domain;
  std::vector<int> versions;  // every version in which ONNX changed it, ascending
  std::vector<Parameter> inputs, outputs;
  std::vector<AttributeRule> attributes;
  std::function<void(Inference&)> infer_types;
  std::vector<Adapter> adapters;
  std::vector<Inverse> inverses;
  std::vector<Addition> additions;
  std::function<void(Decomposition&)> decomposition;  // see decomposition.h
  bool is_random = false;                             // two runs may give different outputs for the same inputs
  // Where an output begins in input 0, in elements, when it is a part of it; see layout.h.
  std::optional<int64_t> (*view_rule)(const Layout&, size_t output) = nullptr;
  // Where an input begins in output 0, in elements, when that is made of its inputs.
  std::optional<int64_t> (*part_rule)(const Layout&, size_t input) = nullptr;
  // Multiply-adds for each element of output 0; see cost.h.
  Dim (*multiply_adds_rule)(const ir::Node&, std::span<const CostTensor>) = nullptr;
  // Operations for each element of output 0, where it is not one.
  int64_t (*operations_rule)(const ir::Node&) = nullptr;
  Reads reads_first_input = Reads::all;
  // The CPU kernel of a custom operator. Tenon's own have theirs in src/ops/*/cpu.cc.
  std::function<std::unique_ptr<Kernel>(const NodeInfo&)> make_cpu_kernel;

  Operator& input(std::string parameter, std::string variable) {
    return add(inputs, std::move(parameter), std::move(variable), Parameter::Count::one);
  }
  Operator& input(std::string parameter, TypeSet types) {
    return add(inputs, std::move(parameter), types, Parameter::Count::one);
  }
  Operator& optional_input(std::string parameter, std::string variable) {
    return add(inputs, std::move(parameter), std::move(variable), Parameter::Count::optional);
  }
  Operator& optional_input(std::string parameter, TypeSet types) {
    return add(inputs, std::move(parameter), types, Parameter::Count::optional);
  }
  Operator& variadic_input(std::string parameter, std::string variable, int at_least = 1, bool same_types = true);
  Operator& output(std::string parameter, std::string variable) {
    return add(outputs, std::move(parameter), std::move(variable), Parameter::Count::one);
  }
  Operator& output(std::string parameter, TypeSet types) {
    return add(outputs, std::move(parameter), types, Parameter::Count::one);
  }
  Operator& optional_output(std::string parameter, std::string variable) {
    return add(outputs, std::move(parameter), std::move(variable), Parameter::Count::optional);
  }
  Operator& optional_output(std::string parameter, TypeSet types) {
    return add(outputs, std::move(parameter), types, Parameter::Count::optional);
  }
  Operator& variadic_output(std::string parameter, std::string variable, int at_least = 1, bool same_types = true);
  // What the type variable of the parameters so far allows.
  Operator& types(std::string_view variable, TypeSet allowed, Kinds kinds = Kinds::tensor);

  Operator& attribute(std::string attribute_name, ir::AttributeKind kind);
  Operator& required_attribute(std::string attribute_name, ir::AttributeKind kind);
  Operator& infer(std::function<void(Inference&)> rule);
  Operator& lift(int from, int to, std::function<void(ir::Node&)> adapter);
  Operator& lower(int from, int to, std::function<std::string(ir::Node&)> inverse);
  Operator& attribute_since(int version, std::string attribute_name,
                            std::variant<std::monostate, int64_t, std::string> otherwise = {});
  Operator& input_since(int version, int input_index);
  // How to say the same in smaller operators, for providers that have no kernel.
  Operator& decompose(std::function<void(Decomposition&)> writer);

  Operator& random() {
    is_random = true;
    return *this;
  }
  Operator& views(std::optional<int64_t> (*rule)(const Layout&, size_t output)) {
    view_rule = rule;
    return *this;
  }
  Operator& costs(Dim (*rule)(const ir::Node&, std::span<const CostTensor>)) {
    multiply_adds_rule = rule;
    return *this;
  }
  Operator& operations(int64_t (*rule)(const ir::Node&)) {
    operations_rule = rule;
    return *this;
  }
  Operator& reads(Reads amount) {
    reads_first_input = amount;
    return *this;
  }
  Operator& parts(std::optional<int64_t> (*rule)(const Layout&, size_t input)) {
    part_rule = rule;
    return *this;
  }

  int newest_version() const { return versions.back(); }
  // The version a node has in a model that imports `opset`; the oldest for one from before the operator existed.
  int version_at(int64_t opset) const;

 private:
  Operator& add(std::vector<Parameter>& list, std::string parameter, std::string variable, Parameter::Count count);
  Operator& add(std::vector<Parameter>& list, std::string parameter, TypeSet types, Parameter::Count count);
};

inline constexpr std::string_view ai_onnx = "";
inline constexpr std::string_view ai_onnx_ml = "ai.onnx.ml";
inline constexpr std::string_view ai_onnx_preview = "ai.onnx.preview";
inline constexpr std::string_view ai_onnx_training = "ai.onnx.preview.training";
// What onnxruntime and its tools add to ONNX.
inline constexpr std::string_view microsoft = "com.microsoft";
// What fusions write that has no standard form.
inline constexpr std::string_view tenon_domain = "tenon";

// The newest operator set version that Tenon knows of ai.onnx, and of any domain (0: it does not know the domain).
inline constexpr int64_t newest_opset = 28;
constexpr int64_t newest_opset_of(std::string_view domain) {
  if (domain == ai_onnx) return newest_opset;
  if (domain == ai_onnx_ml) return 5;
  const bool has_one =
      domain == ai_onnx_preview || domain == ai_onnx_training || domain == microsoft || domain == tenon_domain;
  return has_one ? 1 : 0;
}

class OperatorList {
 public:
  Operator& add(const std::string& name, std::vector<int> versions, std::string_view domain = ai_onnx);
  const Operator* find(std::string_view domain, std::string_view name) const;
  std::vector<const Operator*> all() const;
  bool knows_domain(std::string_view domain) const;

 private:
  std::unordered_map<std::string, std::unique_ptr<Operator>> operators_;  // by "domain:name"
};

// Every operator of Tenon, made on first use.
const OperatorList& operators();

// The operator of a lifted node: the user's own or one of Tenon's. Null if neither has it.
const Operator* operator_of(const ir::Node& node);

// A short sentence if the node breaks the operator's rules: count of inputs and outputs, attributes. "" if it does not.
std::string check_node(const Operator& op, const ir::Node& node);

}  // namespace tenon::ops
