#include <numbers>

#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"
#include "ops/window_function/coefficients.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_window(Inference& i) {
  ElementType type = i.element_attribute("output_datatype", ElementType::float32);
  if (!types::numbers.contains(type)) {
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("output_datatype {} is no type of numbers", name_of(type)));
  }
  Dim size = Dim::unknown();
  if (auto values = i.values(0)) {
    if (values->size() != 1) i.fail("size must be one number, it has {}", values->size());
    size = (*values)[0];
    if (size.is_known() && size.value() < 0) {
      i.fail_with(ErrorCode::invalid_value, fmt::format("a window cannot have size {}", size.value()));
    }
  }
  i.output(0, type, SymbolicShape{std::move(size)});
}

void decompose_window(Decomposition& d, const WindowCoefficients& c) {
  constexpr double pi = std::numbers::pi;
  Term size = cast(d.input(0), ElementType::int64);
  Term steps = cast(d.node().int_attribute("periodic", 1) != 0 ? size : size - 1, ElementType::float64);
  // A symmetric window of one element is its middle.
  Term t = where(equal(steps, 0), pi, cast(d.indices(size), ElementType::float64) * (2 * pi) / steps);
  Term window = c.constant - c.first * d.add("Cos", {t});
  if (c.second != 0) window = window + c.second * d.add("Cos", {2 * t});
  // Integers are what is left of a float, in which a sum that is a hair below 1 is 1.
  bool doubles = d.node().output(0)->type.element == ElementType::float64;
  d.output(0, doubles ? window : cast(window, ElementType::float32));
}

}  // namespace

void define_window_function(OperatorList& list) {
  for (const WindowCoefficients& window : windows) {
    list.add(window.op, {17})
        .input("size", types::index)
        .output("output", types::numbers)
        .attribute("output_datatype", AttributeKind::int_)
        .attribute("periodic", AttributeKind::int_)
        .infer(infer_window)
        .decompose([&window](Decomposition& d) { decompose_window(d, window); });
  }
}

}  // namespace tenon::ops
