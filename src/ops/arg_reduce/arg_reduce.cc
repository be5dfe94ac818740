#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_arg_reduce(Inference& i) {
  if (!i.has_shape(0)) return i.output(0, ElementType::int64, std::nullopt);
  int64_t wanted = i.node().int_attribute("axis", 0);
  bool keep = i.node().int_attribute("keepdims", 1) != 0;
  SymbolicShape shape = i.shape(0);
  if (!shape.empty()) {
    int axis = i.axis(wanted, i.rank(0));
    Dim& dim = shape[static_cast<size_t>(axis)];
    if (dim.is(0)) i.fail("axis {} is empty, it has no largest or smallest element", axis);
    if (keep)
      dim = Dim(1);
    else
      shape.erase(&dim);
  } else if (wanted != 0 && wanted != -1) {
    i.axis(wanted, 1);
  }
  i.output(0, ElementType::int64, std::move(shape));
}

}  // namespace

void define_arg_reduce(OperatorList& list) {
  for (const char* name : {"ArgMax", "ArgMin"}) {
    list.add(name, {1, 11, 12, 13})
        .input("data", types::numbers)
        .output("reduced", TypeSet{ElementType::int64})
        .attribute("axis", AttributeKind::int_)
        .attribute("keepdims", AttributeKind::int_)
        .attribute("select_last_index", AttributeKind::int_)
        .infer(infer_arg_reduce)
        .lower(11, 1, axes_from_front)
        .attribute_since(12, "select_last_index", 0);
  }
}

}  // namespace tenon::ops
