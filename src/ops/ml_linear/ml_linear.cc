#include "base/checked.h"
#include "ops/feature_rows.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

constexpr TypeSet features{ElementType::float32, ElementType::float64, ElementType::int64, ElementType::int32};

// A row of `coefficients` for each score, as long as the rows of input 0.
void require_coefficients(const Inference& i, int64_t scores) {
  const int64_t given = list_length(i.node(), "coefficients");
  const Dim count = feature_count(i);
  if (count.is_known() && checked_mul(count.value(), scores) != given) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("there are {} coefficients for {} scores of {} features", given, scores, count.value()));
  }
}

void infer_classifier_scores(Inference& i) {
  require_post_transform(i);
  const ir::Node& node = i.node();
  const int64_t labels = label_count(node, "classlabels_ints", "classlabels_strings");
  const int64_t intercepts = list_length(node, "intercepts");
  const int64_t scores = intercepts > 0 ? intercepts : std::max<int64_t>(labels, 1);
  if (scores > 1 && scores != labels) {
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("there are {} labels for {} scores", labels, scores));
  }
  require_coefficients(i, scores);
  infer_classifier(i, "classlabels_strings", Dim(scores == 1 && labels == 2 ? 2 : scores));
}

void infer_regressor(Inference& i) {
  require_post_transform(i);
  const int64_t targets = i.node().int_attribute("targets", 1);
  const int64_t intercepts = list_length(i.node(), "intercepts");
  if (targets < 1 || (intercepts != 0 && intercepts != targets)) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("there are {} targets, with {} intercepts", targets, intercepts));
  }
  require_coefficients(i, targets);
  i.output(0, ElementType::float32, SymbolicShape{row_count(i), Dim(targets)});
}

}  // namespace

void define_ml_linear(OperatorList& list) {
  list.add("LinearClassifier", {1}, ai_onnx_ml)
      .input("X", features)
      .output("Y", types::strings | TypeSet{ElementType::int64})
      .output("Z", TypeSet{ElementType::float32})
      .attribute("classlabels_ints", AttributeKind::ints)
      .attribute("classlabels_strings", AttributeKind::strings)
      .required_attribute("coefficients", AttributeKind::floats)
      .attribute("intercepts", AttributeKind::floats)
      .attribute("multi_class", AttributeKind::int_)
      .attribute("post_transform", AttributeKind::string)
      .infer(infer_classifier_scores);
  list.add("LinearRegressor", {1}, ai_onnx_ml)
      .input("X", features)
      .output("Y", TypeSet{ElementType::float32})
      .attribute("coefficients", AttributeKind::floats)
      .attribute("intercepts", AttributeKind::floats)
      .attribute("post_transform", AttributeKind::string)
      .attribute("targets", AttributeKind::int_)
      .infer(infer_regressor);
}

}  // namespace tenon::ops
