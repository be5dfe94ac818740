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
      .infer(infer_loss);
  list.add("SoftmaxCrossEntropyLoss", {12, 13})
      .input("scores", "T")
      .input("labels", types::index)
      .optional_input("weights", "T")
      .output("output", "T")
      .optional_output("log_prob", "T")
      .types("T", types::floats)
      .attribute("ignore_index", AttributeKind::int_)
      .attribute("reduction", AttributeKind::string)
      .infer(infer_loss);
}

}  // namespace tenon::ops
