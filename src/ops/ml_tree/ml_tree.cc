#include "ops/feature_rows.h"
#include "ops/ml_tree/become_regressor.h"
#include "ops/ml_tree/ensemble_targets.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

constexpr TypeSet features{ElementType::float32, ElementType::float64, ElementType::int64, ElementType::int32};

int64_t require_targets(const Inference& i, int64_t targets) {
  if (targets < 1) i.fail_with(ErrorCode::invalid_attribute, fmt::format("n_targets is {}", targets));
  return targets;
}

void infer_ensemble(Inference& i) {
  i.output(0, i.element(0), SymbolicShape{row_count(i), Dim(require_targets(i, ensemble_targets(i.node())))});
}

void infer_tree_regressor(Inference& i) {
  require_post_transform(i);
  require_one_of(i, "aggregate_function", {"SUM", "AVERAGE", "MIN", "MAX"});
  i.output(0, ElementType::float32,
           SymbolicShape{row_count(i), Dim(require_targets(i, i.node().int_attribute("n_targets", 1)))});
}

void infer_tree_classifier(Inference& i) {
  require_post_transform(i);
  const int64_t labels = label_count(i.node(), "classlabels_int64s", "classlabels_strings");
  if (labels == 0) {
    i.fail_with(ErrorCode::invalid_attribute,
                "one of classlabels_int64s and classlabels_strings must name the classes");
  }
  infer_classifier(i, "classlabels_strings", Dim(labels));
}

// The attributes of both older operators; version 3 added tensors that may hold doubles.
Operator& with_node_attributes(Operator& op) {
  for (const char* name : {"nodes_falsenodeids", "nodes_featureids", "nodes_missing_value_tracks_true", "nodes_nodeids",
                           "nodes_treeids", "nodes_truenodeids"}) {
    op.attribute(name, AttributeKind::ints);
  }
  for (const char* name : {"base_values", "nodes_hitrates", "nodes_values"}) op.attribute(name, AttributeKind::floats);
  for (const char* name : {"base_values_as_tensor", "nodes_hitrates_as_tensor", "nodes_values_as_tensor"}) {
    op.attribute(name, AttributeKind::tensor);
  }
  return op.attribute("nodes_modes", AttributeKind::strings)
      .attribute("post_transform", AttributeKind::string)
      .lower(3, 1, tensors_to_lists);
}

}  // namespace

void define_ml_tree(OperatorList& list) {
  Operator& ensemble = list.add("TreeEnsemble", {5}, ai_onnx_ml).input("X", "T").output("Y", "T").infer(infer_ensemble);
  ensemble.types("T", TypeSet{ElementType::float32, ElementType::float64, ElementType::float16})
      .attribute("aggregate_function", AttributeKind::int_)
      .attribute("membership_values", AttributeKind::tensor)
      .attribute("n_targets", AttributeKind::int_)
      .attribute("nodes_hitrates", AttributeKind::tensor)
      .attribute("nodes_missing_value_tracks_true", AttributeKind::ints)
      .attribute("post_transform", AttributeKind::int_)
      .lower(5, 1, become_regressor);
  for (const char* name : {"leaf_weights", "nodes_modes", "nodes_splits"}) {
    ensemble.required_attribute(name, AttributeKind::tensor);
  }
  for (const char* name : {"leaf_targetids", "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids",
                           "nodes_trueleafs", "nodes_truenodeids", "tree_roots"}) {
    ensemble.required_attribute(name, AttributeKind::ints);
  }

  with_node_attributes(list.add("TreeEnsembleClassifier", {1, 3, 5}, ai_onnx_ml))
      .input("X", features)
      .output("Y", types::strings | TypeSet{ElementType::int64})
      .output("Z", TypeSet{ElementType::float32})
      .attribute("class_ids", AttributeKind::ints)
      .attribute("class_nodeids", AttributeKind::ints)
      .attribute("class_treeids", AttributeKind::ints)
      .attribute("class_weights", AttributeKind::floats)
      .attribute("class_weights_as_tensor", AttributeKind::tensor)
      .attribute("classlabels_int64s", AttributeKind::ints)
      .attribute("classlabels_strings", AttributeKind::strings)
      .infer(infer_tree_classifier);
  with_node_attributes(list.add("TreeEnsembleRegressor", {1, 3, 5}, ai_onnx_ml))
      .input("X", features)
      .output("Y", TypeSet{ElementType::float32})
      .attribute("aggregate_function", AttributeKind::string)
      .attribute("n_targets", AttributeKind::int_)
      .attribute("target_ids", AttributeKind::ints)
      .attribute("target_nodeids", AttributeKind::ints)
      .attribute("target_treeids", AttributeKind::ints)
      .attribute("target_weights", AttributeKind::floats)
      .attribute("target_weights_as_tensor", AttributeKind::tensor)
      .infer(infer_tree_regressor);
}

}  // namespace tenon::ops
