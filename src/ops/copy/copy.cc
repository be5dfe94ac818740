#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {

// From the host's memory to a device's or back: `to` is "device" or "host".
void define_copy(OperatorList& list) {
  list.add("Copy", {1}, tenon_domain)
      .input("input", "T")
      .output("output", "T")
      .types("T", types::all - types::strings)
      .attribute("to", ir::AttributeKind::string)
      .infer([](Inference& i) { i.output(0, i.fact(0)); });
}

}  // namespace tenon::ops
