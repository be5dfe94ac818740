#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Outside of training nothing is dropped, whatever the ratio.
void drop_nothing(Decomposition& d) {
  if (d.has_input(2)) {
    const ir::Value& training = *d.node().input(2);
    if (!training.is_fixed() || training.constant()->tensor.data<bool>()[0])
      d.give_up("what it drops in training is random");
  }
  Term x = d.input(0);
  d.output(0, x);
  if (d.wants_output(1)) d.output(1, expand(d.number(1, ElementType::int64), shape_of(x)));
}

}  // namespace

void older_dropout(OlderForms& forms) { forms.add("Dropout", 12, drop_nothing); }

}  // namespace tenon::ops
