#include <numeric>

#include "base/checked.h"
#include "ops/feature_rows.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

constexpr TypeSet features{ElementType::float32, ElementType::float64, ElementType::int64, ElementType::int32};

void require_kernel(const Inference& i) {
  require_post_transform(i);
  require_one_of(i, "kernel_type", {"LINEAR", "POLY", "RBF", "SIGMOID"});
  const int64_t given = list_length(i.node(), "kernel_params");
  if (given != 0 && given != 3) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("kernel_params must be gamma, coef0 and degree; it has {} numbers", given));
  }
}

void require_count(const Inference& i, const char* attribute, int64_t at_least) {
  const int64_t given = list_length(i.node(), attribute);
  if (given < at_least) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("{} has {} numbers, {} are needed", attribute, given, at_least));
  }
}

// `attribute` holds `vectors` rows as long as those of input 0.
void require_vectors(const Inference& i, const char* attribute, int64_t vectors) {
  const Dim count = feature_count(i);
  if (count.is_known() && checked_mul(count.value(), vectors) != list_length(i.node(), attribute)) {
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("{} has {} numbers for {} vectors of {} features", attribute,
                                                          list_length(i.node(), attribute), vectors, count.value()));
  }
}

// Without support vectors there is a linear function for each class, else one for each pair of classes.
void infer_svm_classifier(Inference& i) {
  require_kernel(i);
  const int64_t classes = label_count(i.node(), "classlabels_ints", "classlabels_strings");
  if (classes == 0) {
    i.fail_with(ErrorCode::invalid_attribute, "one of classlabels_ints and classlabels_strings must name the classes");
  }
  const std::vector<int64_t> per_class = i.node().ints_attribute("vectors_per_class");
  int64_t vectors = 0;
  for (int64_t count : per_class) {
    if (count < 0) i.fail_with(ErrorCode::invalid_attribute, fmt::format("vectors_per_class holds {}", count));
    vectors = checked_add(vectors, count);
  }
  if (vectors == 0) {
    require_count(i, "rho", 1);
    require_vectors(i, "coefficients", classes);
    return infer_classifier(i, "classlabels_strings", Dim(classes));
  }
  if (classes < 2 || static_cast<int64_t>(per_class.size()) != classes) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("vectors_per_class has {} entries for {} classes", per_class.size(), classes));
  }
  const int64_t pairs = checked_mul(classes, classes - 1) / 2;
  const bool has_probabilities = list_length(i.node(), "prob_a") > 0;
  require_vectors(i, "support_vectors", vectors);
  require_count(i, "coefficients", checked_mul(classes - 1, vectors));
  require_count(i, "rho", pairs);
  if (has_probabilities) require_count(i, "prob_a", pairs), require_count(i, "prob_b", pairs);
  infer_classifier(i, "classlabels_strings", Dim(has_probabilities || classes == 2 ? classes : pairs));
}

void infer_svm_regressor(Inference& i) {
  require_kernel(i);
  const int64_t vectors = i.node().int_attribute("n_supports", 0);
  require_count(i, "rho", 1);
  if (vectors > 0) {
    require_vectors(i, "support_vectors", vectors);
    require_count(i, "coefficients", vectors);
  } else {
    require_vectors(i, "coefficients", 1);
  }
  i.output(0, ElementType::float32, SymbolicShape{row_count(i), Dim(1)});
}

}  // namespace

void define_ml_svm(OperatorList& list) {
  list.add("SVMClassifier", {1}, ai_onnx_ml)
      .input("X", features)
      .output("Y", types::strings | TypeSet{ElementType::int64})
      .output("Z", TypeSet{ElementType::float32})
      .attribute("classlabels_ints", AttributeKind::ints)
      .attribute("classlabels_strings", AttributeKind::strings)
      .attribute("coefficients", AttributeKind::floats)
      .attribute("kernel_params", AttributeKind::floats)
      .attribute("kernel_type", AttributeKind::string)
      .attribute("post_transform", AttributeKind::string)
      .attribute("prob_a", AttributeKind::floats)
      .attribute("prob_b", AttributeKind::floats)
      .attribute("rho", AttributeKind::floats)
      .attribute("support_vectors", AttributeKind::floats)
      .attribute("vectors_per_class", AttributeKind::ints)
      .infer(infer_svm_classifier);
  list.add("SVMRegressor", {1}, ai_onnx_ml)
      .input("X", features)
      .output("Y", TypeSet{ElementType::float32})
      .attribute("coefficients", AttributeKind::floats)
      .attribute("kernel_params", AttributeKind::floats)
      .attribute("kernel_type", AttributeKind::string)
      .attribute("n_supports", AttributeKind::int_)
      .attribute("one_class", AttributeKind::int_)
      .attribute("post_transform", AttributeKind::string)
      .attribute("rho", AttributeKind::floats)
      .attribute("support_vectors", AttributeKind::floats)
      .infer(infer_svm_regressor);
}

}  // namespace tenon::ops
