#include <limits>

#include "op_test.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// One node that sends x <= 0.5 to leaf 1 and others to leaf 2.
OpTest stump(const char* op, int64_t version, const char* mode = "BRANCH_LEQ") {
  OpTest test(op, version, "ai.onnx.ml");
  test.attribute("nodes_treeids", Ints{0, 0, 0})
      .attribute("nodes_nodeids", Ints{0, 1, 2})
      .attribute("nodes_featureids", Ints{0, 0, 0})
      .attribute("nodes_values", Floats{0.5f, 0, 0})
      .attribute("nodes_modes", Strings{mode, "LEAF", "LEAF"})
      .attribute("nodes_truenodeids", Ints{1, 0, 0})
      .attribute("nodes_falsenodeids", Ints{2, 0, 0});
  return test;
}

OpTest regressor(const char* mode = "BRANCH_LEQ", int64_t version = 3) {
  OpTest test = stump("TreeEnsembleRegressor", version, mode);
  test.attribute("target_treeids", Ints{0, 0})
      .attribute("target_nodeids", Ints{1, 2})
      .attribute("target_ids", Ints{0, 0})
      .attribute("target_weights", Floats{10, 20})
      .attribute("n_targets", 1);
  return test;
}

TEST(TreeEnsembleRegressor, Modes) {
  auto test = [](const char* mode, std::initializer_list<float> expected) {
    regressor(mode).input<float>({4, 1}, {0.25f, 0.5f, 0.75f, nan}).expect<float>({4, 1}, expected).run();
  };
  test("BRANCH_LEQ", {10, 10, 20, 20});
  test("BRANCH_LT", {10, 20, 20, 20});
  test("BRANCH_GTE", {20, 10, 10, 20});
  test("BRANCH_GT", {20, 20, 10, 20});
  test("BRANCH_EQ", {20, 10, 20, 20});
  test("BRANCH_NEQ", {10, 20, 10, 10});
}

TEST(TreeEnsembleRegressor, TypesAndVersions) {
  regressor("BRANCH_LEQ", 1).input<int64_t>({2, 1}, {0, 1}).expect<float>({2, 1}, {10, 20}).run();
  regressor("BRANCH_LEQ", 5).input<int32_t>({1}, {1}).expect<float>({1, 1}, {20}).run();
  regressor().input<float>({0, 1}, {}).expect<float>({0, 1}, {}).run();
  // Between 0.5 and the next double.
  regressor().input<double>({2, 1}, {0.5, 0.5000000000000001}).expect<float>({2, 1}, {10, 20}).run();
}

TEST(TreeEnsembleRegressor, MissingValuesAndBase) {
  regressor()
      .attribute("nodes_missing_value_tracks_true", Ints{1, 0, 0})
      .attribute("base_values", Floats{100})
      .input<float>({2, 1}, {nan, 1})
      .expect<float>({2, 1}, {110, 120})
      .run();
  stump("TreeEnsembleRegressor", 3)
      .attribute("target_treeids", Ints{0, 0})
      .attribute("target_nodeids", Ints{1, 2})
      .attribute("target_ids", Ints{0, 1})
      .attribute("target_weights_as_tensor", Tensor(Shape{2}, {0.25, 0.5}))
      .attribute("base_values_as_tensor", Tensor(Shape{2}, {1.0, 2.0}))
      .attribute("n_targets", 2)
      .input<double>({2, 1}, {0, 1})
      .expect<float>({2, 2}, {1.25f, 2, 1, 2.5f})
      .run();
}

// Two trees that are only leaves.
TEST(TreeEnsembleRegressor, Aggregation) {
  auto test = [](const char* function, float expected) {
    OpTest("TreeEnsembleRegressor", 3, "ai.onnx.ml")
        .attribute("aggregate_function", function)
        .attribute("nodes_treeids", Ints{0, 1})
        .attribute("nodes_nodeids", Ints{0, 0})
        .attribute("nodes_featureids", Ints{0, 0})
        .attribute("nodes_values", Floats{0, 0})
        .attribute("nodes_modes", Strings{"LEAF", "LEAF"})
        .attribute("nodes_truenodeids", Ints{0, 0})
        .attribute("nodes_falsenodeids", Ints{0, 0})
        .attribute("target_treeids", Ints{0, 1})
        .attribute("target_nodeids", Ints{0, 0})
        .attribute("target_ids", Ints{0, 0})
        .attribute("target_weights", Floats{1, 4})
        .attribute("n_targets", 1)
        .input<float>({1, 1}, {0})
        .expect<float>({1, 1}, {expected})
        .run();
  };
  test("SUM", 5);
  test("AVERAGE", 2.5f);
  test("MIN", 1);
  test("MAX", 4);
}

OpTest classifier(Ints ids, Floats weights, const char* transform = "NONE") {
  OpTest test = stump("TreeEnsembleClassifier", 3);
  test.attribute("class_treeids", Ints{0, 0})
      .attribute("class_nodeids", Ints{1, 2})
      .attribute("class_ids", std::move(ids))
      .attribute("class_weights", std::move(weights))
      .attribute("post_transform", transform)
      .input<float>({2, 1}, {0, 1});
  return test;
}

TEST(TreeEnsembleClassifier, OneScoreForTwoClasses) {
  classifier({0, 0}, {0.25f, 0.75f})
      .attribute("classlabels_int64s", Ints{5, 6})
      .expect<int64_t>({2}, {5, 6})
      .expect<float>({2, 2}, {0.75f, 0.25f, 0.25f, 0.75f})
      .run();
  classifier({0, 0}, {-1, 0.25f})
      .attribute("classlabels_strings", Strings{"no", "yes"})
      .expect<std::string>({2}, {"no", "yes"})
      .expect<float>({2, 2}, {1, -1, -0.25f, 0.25f})
      .run();
  classifier({0, 0}, {-1, 0}, "LOGISTIC")
      .attribute("classlabels_int64s", Ints{5, 6})
      .attribute("base_values", Floats{1})
      .expect<int64_t>({2}, {5, 6})
      .expect<float>({2, 2}, {0.5f, 0.5f, 0.26894143f, 0.7310586f})
      .run();
  classifier({1, 1}, {0.25f, 0.75f})
      .attribute("classlabels_int64s", Ints{5, 6})
      .expect<int64_t>({2}, {5, 6})
      .expect<float>({2, 2}, {0, 0.25f, 0, 0.75f})
      .run();
}

TEST(TreeEnsembleClassifier, OneOrManyClasses) {
  classifier({0, 0}, {-1, 0.25f})
      .attribute("classlabels_int64s", Ints{7})
      .expect<int64_t>({2}, {0, 1})
      .expect<float>({2, 1}, {-1, 0.25f})
      .run();
  classifier({0, 1}, {0.5f, 0.25f})
      .attribute("classlabels_int64s", Ints{5, 6})
      .expect<int64_t>({2}, {5, 6})
      .expect<float>({2, 2}, {0.5f, 0, 0, 0.25f})
      .run();
  // The best of those that have a score, though 0 is more.
  classifier({0, 2}, {-1, -2})
      .attribute("classlabels_strings", Strings{"a", "b", "c"})
      .expect<std::string>({2}, {"a", "c"})
      .run();
  classifier({0, 2}, {1, 1}, "SOFTMAX")
      .attribute("classlabels_int64s", Ints{1, 2, 3})
      .attribute("base_values", Floats{0, 3, 1})
      .expect<int64_t>({2}, {2, 2})
      .expect<float>({2, 3}, {0.1065070f, 0.7869860f, 0.1065070f, 0.0351190f, 0.7053845f, 0.2594965f})
      .run();
}

// Node 0 asks whether feature 0 is 1 or 3, node 1 whether feature 1 is below its split.
OpTest ensemble(Tensor splits, Tensor weights, Tensor members) {
  OpTest test("TreeEnsemble", 5, "ai.onnx.ml");
  test.attribute("nodes_featureids", Ints{0, 1})
      .attribute("nodes_splits", std::move(splits))
      .attribute("nodes_modes", Tensor(Shape{2}, {uint8_t{6}, uint8_t{1}}))
      .attribute("nodes_truenodeids", Ints{0, 1})
      .attribute("nodes_falsenodeids", Ints{1, 2})
      .attribute("nodes_trueleafs", Ints{1, 1})
      .attribute("nodes_falseleafs", Ints{0, 1})
      .attribute("membership_values", std::move(members))
      .attribute("leaf_targetids", Ints{0, 1, 1})
      .attribute("leaf_weights", std::move(weights))
      .attribute("n_targets", 2)
      .attribute("tree_roots", Ints{0});
  return test;
}

TEST(TreeEnsemble, MembersAndTypes) {
  ensemble(Tensor(Shape{2}, {0.0f, 5.0f}), Tensor(Shape{3}, {1.0f, 2.0f, 3.0f}), Tensor(Shape{3}, {3.0f, 1.0f, nan}))
      .input<float>({5, 2}, {1, 0, 3, 0, 2, 4, 2, 5, nan, 4})
      .expect<float>({5, 2}, {1, 0, 1, 0, 0, 2, 0, 3, 0, 2})
      .run();
  ensemble(Tensor(Shape{2}, {0.0, 5.0}), Tensor(Shape{3}, {1.0, 2.0, 0.1}), Tensor(Shape{2}, {3.0, 1.0}))
      .tolerance(1e-15, 0)
      .input<double>({1, 2}, {2, 5})
      .expect<double>({1, 2}, {0, 0.1})
      .run();
  auto half = [](float x) { return float16(x); };
  ensemble(Tensor(Shape{2}, {half(0), half(5)}), Tensor(Shape{3}, {half(1), half(2), half(3)}),
           Tensor(Shape{1}, {half(3)}))
      .attribute("post_transform", 2)
      .attribute("aggregate_function", 3)
      .input<float16>({1, 2}, {half(3), half(0)})
      .expect<float16>({1, 2}, {half(0.7310586f), half(0.5f)})
      .run();
}

TEST(MlTree, Errors) {
  auto has = [](OpTest& test, const char* text) {
    std::string error = test.error();
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  auto with_input = [](OpTest test) {
    test.input<float>({1, 1}, {0});
    return test;
  };
  has(with_input(regressor()).attribute("target_ids", Ints{0, 1}),
      "target_ids holds 1, which is not one of the 1 positions");
  has(with_input(regressor()).attribute("nodes_modes", Strings{"LEAF"}),
      "nodes_modes has 1 entries, nodes_treeids has 3");
  has(with_input(regressor()).attribute("nodes_modes", Strings{"BRANCH", "LEAF", "LEAF"}),
      "nodes_modes holds 'BRANCH'");
  has(with_input(regressor()).attribute("nodes_truenodeids", Ints{7, 0, 0}),
      "leads to node 7, which the tree does not have");
  has(with_input(regressor()).attribute("nodes_truenodeids", Ints{0, 0, 0}), "the nodes of tree 0 form a cycle");
  has(with_input(regressor()).attribute("nodes_nodeids", Ints{0, 1, 1}), "tree 0 has node 1 twice");
  has(with_input(regressor()).attribute("nodes_featureids", Ints{3, 0, 0}), "look at feature 3, the rows have 1");
  has(with_input(regressor()).attribute("base_values", Floats{1, 2}), "2 base_values for 1 targets");
  has(with_input(regressor()).attribute("aggregate_function", "MEAN"), "aggregate_function is 'MEAN'");
  has(classifier({0, 0}, {1, 1}).attribute("post_transform", "NONE"), "must name the classes");
  OpTest cyclic =
      ensemble(Tensor(Shape{2}, {0.0f, 5.0f}), Tensor(Shape{3}, {1.0f, 2.0f, 3.0f}), Tensor(Shape{1}, {3.0f}));
  cyclic.attribute("nodes_falseleafs", Ints{0, 0})
      .attribute("nodes_falsenodeids", Ints{1, 0})
      .input<float>({1, 2}, {0, 0});
  has(cyclic, "form a cycle through node 0");
}

}  // namespace
}  // namespace tenon
