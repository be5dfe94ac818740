#include "ops/adapters.h"
#include "ops/decomposition.h"
#include "ops/elementwise.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

Dim negative(std::span<const Dim> v) { return Dim(0) - v[0]; }
Dim magnitude(std::span<const Dim> v) { return max(v[0], Dim(0) - v[0]); }
Dim negation(std::span<const Dim> v) { return v[0].is_known() ? Dim(v[0].value() == 0) : Dim::unknown(); }

struct Row {
  const char* name;
  std::vector<int> versions;
  TypeSet types;
  ValueFunction values = nullptr;
  void (*decompose)(Decomposition&) = nullptr;
};

void infer_predicate(Inference& i) {
  ir::Type type = i.type(0);
  type.element = ElementType::boolean;
  i.output(0, std::move(type));
}

Term softplus(Term x) { return max(x, 0) + log(1 + exp(-abs(x))); }

void decompose_relu(Decomposition& d) { d.output(0, max(d.input(0), 0)); }

void decompose_softplus(Decomposition& d) { d.output(0, softplus(d.wide_input(0))); }

void decompose_softsign(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, x / (1 + abs(x)));
}

void decompose_hard_swish(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, x * max(min(x / 6 + 0.5, 1), 0));
}

void decompose_mish(Decomposition& d) {
  Term x = d.wide_input(0);
  d.output(0, x * tanh(softplus(x)));
}

}  // namespace

void define_unary(OperatorList& list) {
  using types::floats;
  const std::vector<int> from_1{1, 6, 13}, from_7{7, 22}, from_9{9, 22};
  for (const Row& row : {Row{"Abs", from_1, types::numbers, magnitude},
                         Row{"Neg", from_1, floats | types::signed_ints, negative},
                         Row{"Sqrt", from_1, floats},
                         Row{"Exp", from_1, floats},
                         Row{"Log", from_1, floats},
                         Row{"Erf", {9, 13}, types::numbers},
                         Row{"Tanh", from_1, floats},
                         Row{"Sigmoid", from_1, floats},
                         Row{"Relu", {1, 6, 13, 14}, floats | types::signed_ints, nullptr, decompose_relu},
                         Row{"Floor", from_1, floats},
                         Row{"Ceil", from_1, floats},
                         Row{"Round", {11, 22}, floats},
                         Row{"Reciprocal", from_1, floats},
                         Row{"Sign", {9, 13}, types::numbers},
                         Row{"Not", {1}, types::bools, negation},
                         Row{"BitwiseNot", {18}, types::ints},
                         Row{"Sin", from_7, floats},
                         Row{"Cos", from_7, floats},
                         Row{"Tan", from_7, floats},
                         Row{"Asin", from_7, floats},
                         Row{"Acos", from_7, floats},
                         Row{"Atan", from_7, floats},
                         Row{"Sinh", from_9, floats},
                         Row{"Cosh", from_9, floats},
                         Row{"Asinh", from_9, floats},
                         Row{"Acosh", from_9, floats},
                         Row{"Atanh", from_9, floats},
                         Row{"Softplus", {1, 22}, floats, nullptr, decompose_softplus},
                         Row{"Softsign", {1, 22}, floats, nullptr, decompose_softsign},
                         Row{"HardSwish", {14, 22}, floats, nullptr, decompose_hard_swish},
                         Row{"Mish", {18, 22}, floats, nullptr, decompose_mish}}) {
    Operator& op = list.add(row.name, row.versions).input("X", "T").output("Y", "T").types("T", row.types);
    op.infer([values = row.values](Inference& i) {
      i.same_as_input(0);
      if (values) infer_values(i, values);
    });
    if (row.versions.front() == 1 && row.versions.size() > 2) op.lift(1, 6, drop_consumed_inputs);
    if (row.decompose) op.decompose(row.decompose);
  }
  constexpr TypeSet testable = floats | (types::float8s - TypeSet{ElementType::float8e8m0});
  list.add("IsNaN", {9, 13, 20}).input("X", testable).output("Y", types::bools).infer(infer_predicate);
  list.add("IsInf", {10, 20})
      .input("X", testable)
      .output("Y", types::bools)
      .attribute("detect_negative", ir::AttributeKind::int_)
      .attribute("detect_positive", ir::AttributeKind::int_)
      .infer(infer_predicate);
}

}  // namespace tenon::ops
