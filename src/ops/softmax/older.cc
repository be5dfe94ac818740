#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Before version 13 it took all axes from the given one on: the last one is the only one that it takes alone.
void along_last_axis(Decomposition& d) {
  const int64_t rank = d.rank(0), given = d.node().int_attribute("axis", -1), axis = given < 0 ? given + rank : given;
  if (rank == 0 || axis == rank - 1) d.give_up("it is along the last axis already");
  std::vector<int64_t> order = numbers_up_to(rank);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  Term last = d.add(d.node().op_type, {transpose(d.input(0), order)}, {{"axis", -1}});
  d.output(0, transpose(last, order));
}

}  // namespace

void older_softmax(OlderForms& forms) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) forms.add(op, 13, along_last_axis);
}

}  // namespace tenon::ops
