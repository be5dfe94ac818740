#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Statistics of the batch, which the running ones are moved towards.
void train_step_by_step(Decomposition& d) {
  if (d.node().int_attribute("training_mode", 0) == 0) d.give_up("it is a BatchNormalization already");
  const int rank = d.rank(0);
  const double momentum = d.node().float_attribute("momentum", 0.9f),
               epsilon = d.node().float_attribute("epsilon", 1e-5f);
  std::vector<int64_t> others{0}, behind;
  for (int axis = 2; axis < rank; ++axis) {
    others.push_back(axis);
    behind.push_back(axis - 1);
  }
  Term x = d.wide_input(0);
  auto lined_up = [&](Term term) { return behind.empty() ? term : unsqueeze(term, behind); };
  auto channels = [&](size_t i) { return cast(d.input(i), x.type); };
  Term mean = reduce("ReduceMean", x, d.ints(others), false), centered = x - lined_up(mean);
  Term variance = reduce("ReduceMean", centered * centered, d.ints(others), false);
  d.output(0, centered / sqrt(lined_up(variance) + epsilon) * lined_up(channels(1)) + lined_up(channels(2)));
  d.output(1, channels(3) * momentum + mean * (1 - momentum));
  d.output(2, channels(4) * momentum + variance * (1 - momentum));
}

}  // namespace

void older_batch_norm(OlderForms& forms) { forms.add("BatchNormalization", 14, train_step_by_step); }

}  // namespace tenon::ops
