#include "ops/inference.h"
#include "ops/operator.h"

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

}  // namespace

void define_window_function(OperatorList& list) {
  for (const char* name : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    list.add(name, {17})
        .input("size", types::index)
        .output("output", types::numbers)
        .attribute("output_datatype", AttributeKind::int_)
        .attribute("periodic", AttributeKind::int_)
        .infer(infer_window);
  }
}

}  // namespace tenon::ops
