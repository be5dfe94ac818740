#include "ops/older_forms.h"
#include "ops/older_support.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void repeat_one_element(Decomposition& d) {
  const int64_t rank = d.known_size(0, 0);
  if (rank < 0) d.give_up("the rank of its output is not known");
  const Tensor* value = d.node().tensor_attribute("value");
  Term one = d.add("Constant", {}, {{"value", value ? *value : Tensor::scalar(0.0f)}},
                   value ? value->type() : ElementType::float32);
  one = d.add("Reshape", {one, d.ints(std::vector<int64_t>(static_cast<size_t>(rank), 1))});
  d.output(0, rank == 0 ? one : d.add("Tile", {one, d.input(0)}));
}

}  // namespace

void older_constant_of_shape(OlderForms& forms) { forms.add("ConstantOfShape", 9, repeat_one_element); }

}  // namespace tenon::ops
