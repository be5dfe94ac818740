#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {

void define_regex_full_match(OperatorList& list) {
  list.add("RegexFullMatch", {20})
      .input("X", types::strings)
      .output("Y", types::bools)
      .required_attribute("pattern", ir::AttributeKind::string)
      .infer([](Inference& i) { i.output(0, ElementType::boolean, i.type(0).shape); });
}

}  // namespace tenon::ops
