#include "ops/feature_rows.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

constexpr TypeSet numbers{ElementType::float32, ElementType::float64, ElementType::int64, ElementType::int32};

// Lists in attributes have one number, or one for each feature: each element of the last axis.
void require_per_feature(const Inference& i, std::string_view attribute) {
  const int64_t given = list_length(i.node(), attribute);
  const Dim features = feature_count(i);
  if (given <= 1 || !features.is_known() || features.value() == given) return;
  i.fail_with(ErrorCode::invalid_attribute,
              fmt::format("{} has {} numbers for {} features", attribute, given, features.value()));
}

void infer_scaler(Inference& i) {
  require_per_feature(i, "offset");
  require_per_feature(i, "scale");
  i.output(0, ElementType::float32, i.type(0).shape);
}

void infer_normalizer(Inference& i) {
  require_one_of(i, "norm", {"MAX", "L1", "L2"});
  row_count(i);
  i.output(0, ElementType::float32, i.type(0).shape);
}

void infer_imputer(Inference& i) {
  const char* attribute = is_floating(i.element(0)) ? "imputed_value_floats" : "imputed_value_int64s";
  if (i.type(0).known() && list_length(i.node(), attribute) == 0) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("an input of {} needs the attribute {}", name_of(i.element(0)), attribute));
  }
  require_per_feature(i, attribute);
  i.same_as_input(0);
}

// Elements of the last axis. A vector counts as one row.
void infer_array_feature_extractor(Inference& i) {
  i.require_rank_at_least(0, 1);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  SymbolicShape shape = i.shape(0);
  if (shape.size() == 1) shape.insert(shape.begin(), Dim(1));
  shape.back() = i.has_shape(1) ? element_count(i.shape(1)) : Dim::unknown();
  i.output(0, i.element(0), std::move(shape));
}

// [N, F1], [N, F2], … side by side; `inputdimensions` has the width that each takes.
void infer_feature_vectorizer(Inference& i) {
  const std::vector<int64_t> widths = i.node().ints_attribute("inputdimensions");
  if (!widths.empty() && widths.size() != i.input_count()) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("inputdimensions has {} entries for {} inputs", widths.size(), i.input_count()));
  }
  Dim rows = Dim::unknown(), columns = 0;
  for (size_t k = 0; k < i.input_count(); ++k) {
    i.require_rank_at_least(k, 1);
    Dim width = Dim::unknown();
    if (i.has_shape(k)) {
      const bool is_row = i.rank(k) == 1;
      rows = i.equal(rows, is_row ? Dim(1) : i.shape(k)[0], fmt::format("the rows of the inputs up to {}", k));
      width = Dim(1);
      for (size_t axis = is_row ? 0 : 1; axis < i.shape(k).size(); ++axis) width = width * i.shape(k)[axis];
    }
    if (!widths.empty()) {
      if (widths[k] < 0) i.fail_with(ErrorCode::invalid_attribute, fmt::format("inputdimensions holds {}", widths[k]));
      width = Dim(widths[k]);
    }
    columns = columns + width;
  }
  i.output(0, ElementType::float32, SymbolicShape{rows, columns});
}

}  // namespace

void define_ml_features(OperatorList& list) {
  list.add("ArrayFeatureExtractor", {1}, ai_onnx_ml)
      .input("X", "T")
      .input("Y", TypeSet{ElementType::int64})
      .output("Z", "T")
      .types("T", numbers | types::strings)
      .infer(infer_array_feature_extractor);
  list.add("Binarizer", {1}, ai_onnx_ml)
      .input("X", "T")
      .output("Y", "T")
      .types("T", numbers)
      .attribute("threshold", AttributeKind::float_)
      .infer([](Inference& i) { i.same_as_input(0); });
  list.add("FeatureVectorizer", {1}, ai_onnx_ml)
      .variadic_input("X", "T1")
      .output("Y", TypeSet{ElementType::float32})
      .types("T1", numbers)
      .attribute("inputdimensions", AttributeKind::ints)
      .infer(infer_feature_vectorizer);
  list.add("Imputer", {1}, ai_onnx_ml)
      .input("X", "T")
      .output("Y", "T")
      .types("T", numbers)
      .attribute("imputed_value_floats", AttributeKind::floats)
      .attribute("imputed_value_int64s", AttributeKind::ints)
      .attribute("replaced_value_float", AttributeKind::float_)
      .attribute("replaced_value_int64", AttributeKind::int_)
      .infer(infer_imputer);
  list.add("Normalizer", {1}, ai_onnx_ml)
      .input("X", numbers)
      .output("Y", TypeSet{ElementType::float32})
      .attribute("norm", AttributeKind::string)
      .infer(infer_normalizer);
  list.add("Scaler", {1}, ai_onnx_ml)
      .input("X", numbers)
      .output("Y", TypeSet{ElementType::float32})
      .attribute("offset", AttributeKind::floats)
      .attribute("scale", AttributeKind::floats)
      .infer(infer_scaler);
}

}  // namespace tenon::ops
