#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void require_type(const Inference& i, ElementType type, TypeSet allowed) {
  if (type == ElementType::undefined || allowed.contains(type)) return;
  i.fail_with(ErrorCode::invalid_attribute,
              fmt::format("the output would be of type {}; it may be {}", name_of(type), allowed.to_string()));
}

void infer_random(Inference& i) {
  ElementType type = i.element_attribute("dtype", ElementType::float32);
  require_type(i, type, types::floats);
  SymbolicShape shape;
  for (int64_t size : i.node().ints_attribute("shape")) {
    if (size < 0) i.fail_with(ErrorCode::invalid_attribute, fmt::format("shape has a negative size, {}", size));
    shape.push_back(size);
  }
  i.output(0, type, std::move(shape));
}

void infer_like(Inference& i, TypeSet allowed) {
  ElementType type = i.element_attribute("dtype", i.element(0));
  require_type(i, type, allowed);
  i.output(0, type, i.type(0).shape);
}

void infer_multinomial(Inference& i) {
  ElementType type = i.element_attribute("dtype", ElementType::int32);
  require_type(i, type, types::index);
  const int64_t samples = i.node().int_attribute("sample_size", 1);
  if (samples < 1)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("sample_size is {}; it must be at least 1", samples));
  i.require_rank(0, 2);
  i.output(0, type, SymbolicShape{i.has_shape(0) ? i.shape(0)[0] : Dim::unknown(), samples});
}

void decompose_bernoulli(Decomposition& d) {
  Term x = d.wide_input(0);
  Term drawn = d.add("RandomUniformLike", {x});
  if (d.node().attribute("seed")) drawn.value->producer()->set_attribute({"seed", d.node().float_attribute("seed", 0)});
  d.output(0, less(drawn, x));
}

}  // namespace

void define_random(OperatorList& list) {
  auto add = [&](const char* name, const char* first, const char* second, bool like) {
    Operator& op = list.add(name, {1, 22});
    if (like) {
      op.input("input", types::movable).infer([](Inference& i) { infer_like(i, types::floats); });
    } else {
      op.required_attribute("shape", AttributeKind::ints).infer(infer_random);
    }
    op.output("output", types::floats)
        .random()
        .attribute("dtype", AttributeKind::int_)
        .attribute("seed", AttributeKind::float_)
        .attribute(first, AttributeKind::float_)
        .attribute(second, AttributeKind::float_);
  };
  add("RandomNormal", "mean", "scale", false);
  add("RandomNormalLike", "mean", "scale", true);
  add("RandomUniform", "low", "high", false);
  add("RandomUniformLike", "low", "high", true);

  static constexpr TypeSet outcomes = types::numbers | types::bools;
  list.add("Bernoulli", {15, 22})
      .input("input", types::floats)
      .output("output", outcomes)
      .attribute("dtype", AttributeKind::int_)
      .attribute("seed", AttributeKind::float_)
      .infer([](Inference& i) { infer_like(i, outcomes); })
      .random()
      .decompose(decompose_bernoulli);
  list.add("Multinomial", {7, 22})
      .input("input", types::floats)
      .output("output", types::index)
      .attribute("dtype", AttributeKind::int_)
      .attribute("sample_size", AttributeKind::int_)
      .attribute("seed", AttributeKind::float_)
      .infer(infer_multinomial)
      .random();
}

}  // namespace tenon::ops
