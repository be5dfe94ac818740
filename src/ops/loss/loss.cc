#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Scores [N, C, d1, …] against classes [N, d1, …], with a weight for each of the C classes.
void infer_loss(Inference& i) {
  std::string reduction = i.node().string_attribute("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("reduction is '{}'; it may be 'none', 'sum' or 'mean'", reduction));
  }
  i.require_rank_at_least(0, 2);
  if (i.has_input(2)) i.require_rank(2, 1);
  if (i.has_shape(0) && i.has_shape(2)) i.equal(i.shape(0)[1], i.shape(2)[0], "axis 1 of the scores and the weights");
  if (i.has_shape(0) && i.has_shape(1)) {
    i.require_rank(1, i.rank(0) - 1);
    for (size_t axis = 0; axis < i.shape(1).size(); ++axis) {
      i.equal(i.shape(0)[axis == 0 ? 0 : axis + 1], i.shape(1)[axis],
              fmt::format("the scores and axis {} of the classes", axis));
    }
  }
  i.output(0, i.element(0), reduction == "none" ? i.type(1).shape : SymbolicShape{});
  i.output(1, i.type(0));
}

// The loss of each position, from the logarithms of the classes' probabilities.
void decompose_losses(Decomposition& d, Term scores) {
  if (d.known_size(0, 1) == 0) d.give_up("there are no classes to choose from");
  Term classes = cast(d.input(1), ElementType::int64), counted;
  if (d.node().attribute("ignore_index")) {
    counted = negation(equal(classes, d.ints({d.node().int_attribute("ignore_index", 0)})));
    classes = where(counted, classes, 0);
  }
  classes = counted_from_front(classes);
  auto only_counted = [&](Term x) { return counted ? where(counted, x, 0) : x; };
  Term chosen = d.add("GatherElements", {scores, unsqueeze(classes, {1})}, {{"axis", 1}});
  Term losses = -d.add("Squeeze", {chosen, d.ints({1})}), weights;
  if (d.has_input(2)) weights = gather(cast(d.input(2), scores.type), classes, 0);
  losses = only_counted(weights ? losses * weights : losses);
  std::string reduction = d.node().string_attribute("reduction", "mean");
  if (reduction == "none") return d.output(0, losses);
  Term sum = reduce("ReduceSum", losses, {}, /*keep=*/false);
  if (reduction == "sum") return d.output(0, sum);
  // The mean leaves out what is ignored and counts a class as often as it weighs.
  if (!weights && !counted) return d.output(0, reduce("ReduceMean", losses, {}, /*keep=*/false));
  Term counts = weights ? only_counted(weights) : cast(counted, losses.type);
  d.output(0, sum / reduce("ReduceSum", counts, {}, /*keep=*/false));
}

void decompose_negative_log_likelihood(Decomposition& d) { decompose_losses(d, d.wide_input(0)); }

void decompose_softmax_cross_entropy(Decomposition& d) {
  Term scores = d.add("LogSoftmax", {d.wide_input(0)}, {{"axis", 1}});
  decompose_losses(d, scores);
  d.output(1, scores);
}

}  // namespace

void define_loss(OperatorList& list) {
  list.add("NegativeLogLikelihoodLoss", {12, 13, 22})
      .input("input", "T")
      .input("target", types::index)
      .optional_input("weight", "T")
      .output("loss", "T")
      .types("T", types::floats)
      .attribute("ignore_index", AttributeKind::int_)
      .attribute("reduction", AttributeKind::string)
      .infer(infer_loss)
      .decompose(decompose_negative_log_likelihood);
  list.add("SoftmaxCrossEntropyLoss", {12, 13})
      .input("scores", "T")
      .input("labels", types::index)
      .optional_input("weights", "T")
      .output("output", "T")
      .optional_output("log_prob", "T")
      .types("T", types::floats)
      .attribute("ignore_index", AttributeKind::int_)
      .attribute("reduction", AttributeKind::string)
      .infer(infer_loss)
      .decompose(decompose_softmax_cross_entropy);
}

}  // namespace tenon::ops
