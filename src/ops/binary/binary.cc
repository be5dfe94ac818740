#include "ops/adapters.h"
#include "ops/decomposition.h"
#include "ops/elementwise.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Whether it is evident that a is at least b.
bool is_at_least(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return a.value() >= b.value();
  if (b.is(INT64_MIN)) return true;
  return (a - b).least().value_or(-1) >= 0;
}
bool is_above(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return a.value() > b.value();
  if (b.is(INT64_MIN)) return false;
  return (a - b).least().value_or(0) >= 1;
}

bool is_size(const Dim& dim) { return is_at_least(dim, 0); }

// Rounded towards zero, as ONNX divides integers.
Dim truncating_div(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) {
    if (b.value() == 0 || b.value() == -1) return b.value() == 0 ? Dim::unknown() : Dim(0) - a;
    return Dim(a.value() / b.value());
  }
  // Where an expression is not negative both roundings agree; sizes that models compute are not.
  return b.is_known() && b.value() > 0 ? floor_div(a, b) : is_size(a) && is_size(b) ? floor_div(a, b) : Dim::unknown();
}

Dim add(std::span<const Dim> v) { return v[0] + v[1]; }
Dim sub(std::span<const Dim> v) { return v[0] - v[1]; }
Dim mul(std::span<const Dim> v) { return v[0] * v[1]; }
Dim div(std::span<const Dim> v) { return truncating_div(v[0], v[1]); }

Dim floor_mod(std::span<const Dim> v) {
  if (!v[1].is_known() || v[1].value() <= 0) return Dim::unknown();
  return v[0] - floor_div(v[0], v[1]) * v[1];
}

Dim equal(std::span<const Dim> v) {
  if (v[0] == v[1]) return 1;
  return is_above(v[0], v[1]) || is_above(v[1], v[0]) ? Dim(0) : Dim::unknown();
}

Dim less(const Dim& a, const Dim& b) {
  if (is_above(b, a)) return 1;
  return is_at_least(a, b) ? Dim(0) : Dim::unknown();
}
Dim not_less(const Dim& a, const Dim& b) {
  const Dim is_less = less(a, b);
  return is_less.is_known() ? Dim(1 - is_less.value()) : is_less;
}
Dim less(std::span<const Dim> v) { return less(v[0], v[1]); }
Dim less_or_equal(std::span<const Dim> v) { return not_less(v[1], v[0]); }
Dim greater(std::span<const Dim> v) { return less(v[1], v[0]); }
Dim greater_or_equal(std::span<const Dim> v) { return not_less(v[0], v[1]); }

// Of flags that are known.
template <typename Function>
Dim logical(std::span<const Dim> v) {
  if (!v[0].is_known() || !v[1].is_known()) return Dim::unknown();
  return Dim(Function()(v[0].value(), v[1].value()));
}

struct Row {
  const char* name;
  std::vector<int> versions;
  TypeSet types;
  ValueFunction values = nullptr;
  void (*decompose)(Decomposition&) = nullptr;
};

void decompose_less_or_equal(Decomposition& d) {
  Term a = d.input(0), b = d.input(1);
  d.output(0, either(less(a, b), equal(a, b)));
}

void decompose_greater_or_equal(Decomposition& d) {
  Term a = d.input(0), b = d.input(1);
  d.output(0, either(greater(a, b), equal(a, b)));
}

void decompose_prelu(Decomposition& d) {
  Term x = d.input(0);
  d.output(0, where(less(x, 0), x * d.input(1), x));
}

void infer_arithmetic(Inference& i, ValueFunction values) {
  infer_broadcast(i, i.element(0));
  if (values) infer_values(i, values);
}

void infer_predicate(Inference& i, ValueFunction values) {
  infer_broadcast(i, ElementType::boolean);
  if (values) infer_values(i, values);
}

void lift_broadcast_to_7(Operator& op) {
  if (op.versions.front() == 1) op.lift(1, 7, lift_limited_broadcast).lower(7, 6, limit_broadcast);
}

// An old slope is one number, or one per channel: axis 1.
void lift_prelu(ir::Node& node) {
  drop_consumed_inputs(node);
  line_up_with_axis(node, 1, 1);
}

}  // namespace

void define_binary(OperatorList& list) {
  const std::vector<int> basic{1, 6, 7, 13, 14}, comparing{1, 7, 9, 13};
  for (const Row& row : {Row{"Add", basic, types::numbers, add}, Row{"Sub", basic, types::numbers, sub},
                         Row{"Mul", basic, types::numbers, mul}, Row{"Div", basic, types::numbers, div},
                         Row{"BitwiseAnd", {18}, types::ints}, Row{"BitwiseOr", {18}, types::ints},
                         Row{"BitwiseXor", {18}, types::ints}}) {
    Operator& op =
        list.add(row.name, row.versions).input("A", "T").input("B", "T").output("C", "T").types("T", row.types);
    op.infer([values = row.values](Inference& i) { infer_arithmetic(i, values); });
    lift_broadcast_to_7(op);
  }
  for (const Row& row : {Row{"Equal", {1, 7, 11, 13, 19}, types::numbers | types::bools | types::strings, equal},
                         Row{"Less", comparing, types::numbers, less},
                         Row{"LessOrEqual", {12, 16}, types::numbers, less_or_equal, decompose_less_or_equal},
                         Row{"Greater", comparing, types::numbers, greater},
                         Row{"GreaterOrEqual", {12, 16}, types::numbers, greater_or_equal, decompose_greater_or_equal},
                         Row{"And", {1, 7}, types::bools, logical<std::logical_and<>>},
                         Row{"Or", {1, 7}, types::bools, logical<std::logical_or<>>},
                         Row{"Xor", {1, 7}, types::bools, logical<std::not_equal_to<>>}}) {
    Operator& op = list.add(row.name, row.versions)
                       .input("A", "T")
                       .input("B", "T")
                       .output("C", types::bools)
                       .types("T", row.types);
    op.infer([values = row.values](Inference& i) { infer_predicate(i, values); });
    if (row.decompose) op.decompose(row.decompose);
    lift_broadcast_to_7(op);
  }
  Operator& pow = list.add("Pow", {1, 7, 12, 13, 15})
                      .input("X", "T")
                      .input("Y", "T1")
                      .output("Z", "T")
                      .types("T", types::floats | types::index)
                      .types("T1", types::numbers)
                      .infer([](Inference& i) { infer_arithmetic(i, nullptr); });
  lift_broadcast_to_7(pow);
  list.add("Mod", {10, 13, 28})
      .input("A", "T")
      .input("B", "T")
      .output("C", "T")
      .types("T", types::numbers)
      .attribute("fmod", AttributeKind::int_)
      .infer([](Inference& i) { infer_arithmetic(i, i.node().int_attribute("fmod", 0) == 0 ? floor_mod : nullptr); });
  list.add("BitShift", {11, 28})
      .input("X", "T")
      .input("Y", "T")
      .output("Z", "T")
      .types("T", types::ints)
      .required_attribute("direction", AttributeKind::string)
      .infer([](Inference& i) { infer_arithmetic(i, nullptr); });
  list.add("PRelu", {1, 6, 7, 9, 16})
      .input("X", "T")
      .input("slope", "T")
      .output("Y", "T")
      .types("T",
             types::floats | TypeSet{ElementType::int32, ElementType::int64, ElementType::uint32, ElementType::uint64})
      .infer([](Inference& i) {
        if (i.has_shape(0) && i.has_shape(1) && i.broadcast(i.shape(0), i.shape(1)).size() > i.shape(0).size()) {
          i.fail("the slope has more axes than X");
        }
        i.same_as_input(0);
      })
      .decompose(decompose_prelu)
      .lift(1, 7, lift_prelu);
}

}  // namespace tenon::ops
