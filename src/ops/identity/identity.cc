#include "ops/inference.h"
#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {

void define_identity(OperatorList& list) {
  list.add("Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25})
      .input("input", "V")
      .output("output", "V")
      .types("V", types::all, Kinds::any)
      .infer([](Inference& i) { i.output(0, i.fact(0)); })
      .views(whole_input);
}

}  // namespace tenon::ops
