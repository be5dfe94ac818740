#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_reverse_sequence(Inference& i) {
  i.require_rank_at_least(0, 2);
  i.require_rank(1, 1);
  int64_t batch = i.node().int_attribute("batch_axis", 1), time = i.node().int_attribute("time_axis", 0);
  if (batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("batch_axis is {} and time_axis {}; one must be 0, the other 1", batch, time));
  }
  if (i.has_shape(0) && i.has_shape(1))
    i.equal(i.shape(0)[static_cast<size_t>(batch)], i.shape(1)[0], "the batch and the number of lengths");
  i.same_as_input(0);
}

}  // namespace

void define_reverse_sequence(OperatorList& list) {
  list.add("ReverseSequence", {10, 28})
      .input("input", "T")
      .input("sequence_lens", TypeSet{ElementType::int64})
      .output("Y", "T")
      .types("T", types::movable)
      .attribute("batch_axis", AttributeKind::int_)
      .attribute("time_axis", AttributeKind::int_)
      .infer(infer_reverse_sequence);
}

}  // namespace tenon::ops
