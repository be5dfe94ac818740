#include "base/fail.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

void make(KernelRun& run) {
  Optional optional;
  if (run.has_input(0)) optional.item = std::make_shared<const Value>(run.value(0));
  run.set_output(0, std::move(optional));
}

void has_element(KernelRun& run) {
  bool there =
      run.has_input(0) && run.value(0).defined() && (!run.value(0).is_optional() || run.value(0).optional().item);
  run.output(0, ElementType::boolean, Shape{}).mutable_data<bool>()[0] = there;
}

void get_element(KernelRun& run) {
  const Value& value = run.value(0);
  if (!value.is_optional()) return run.set_output(0, value);
  if (!value.optional().item) fail(ErrorCode::invalid_value, "the optional is empty");
  run.set_output(0, *value.optional().item);
}

}  // namespace

void cpu_optional(CpuKernels& list) {
  list.add_simple("Optional", make);
  list.add_simple("OptionalHasElement", has_element);
  list.add_simple("OptionalGetElement", get_element);
}

}  // namespace tenon::ops
