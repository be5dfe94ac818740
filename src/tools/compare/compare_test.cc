#include "tenon/tools/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model_builder.h"
#include "tools/blocked_image.h"
#include "tools/compare/align.h"
#include "tools/compare/tensor_store.h"
#include "tools/patterns.h"
#include "tools/value_names.h"

namespace tenon::tools {
namespace {

Tensor floats(std::initializer_list<float> numbers) {
  return Tensor({static_cast<int64_t>(numbers.size())}, std::span(numbers.begin(), numbers.size()));
}

TEST(ErrorStatistics, SayHowFarNumbersAreOff) {
  const ErrorVerdict verdict = judge(floats({1, 2, 4.5f, 0.25f}), floats({1, 2, 4, 0}), {});
  const ErrorStatistics& s = verdict.statistics;
  EXPECT_EQ(s.max_absolute, 0.5);
  EXPECT_EQ(s.max_relative, 0.125);
  EXPECT_EQ(s.mean_absolute, 0.75 / 4);
  EXPECT_EQ(s.largest, 4);
  EXPECT_EQ(s.worst, 2);
  EXPECT_NEAR(s.sqnr, 10 * std::log10(21 / 0.3125), 1e-9);
  EXPECT_NEAR(s.cosine, 23 / std::sqrt(21 * 25.3125), 1e-9);
  EXPECT_FALSE(verdict.within);
}

TEST(ErrorStatistics, CountStepsOfTheType) {
  const float next = std::nextafter(1.0f, 2.0f), tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(judge(floats({next}), floats({1}), {}).statistics.max_ulps, 1);
  EXPECT_EQ(judge(floats({tiny}), floats({-tiny}), {}).statistics.max_ulps, 2);
  EXPECT_EQ(judge(floats({2}), floats({1}), {}).statistics.max_ulps, 1 << 23);
  Tensor a(ElementType::float16, Shape{1}), b(ElementType::float16, Shape{1});
  a.mutable_data<float16>()[0] = static_cast<float16>(1.0f);
  b.mutable_data<float16>()[0] = static_cast<float16>(1.0f + 3.0f / 1024);
  EXPECT_EQ(judge(a, b, {}).statistics.max_ulps, 3);
}

TEST(ErrorStatistics, TakeNaNAndInfinityForWhatTheyAre) {
  const float nan = NAN, inf = INFINITY;
  EXPECT_TRUE(judge(floats({nan, inf, -inf}), floats({nan, inf, -inf}), {}).within);
  const ErrorVerdict verdict = judge(floats({nan, 1, inf}), floats({1, 1, -inf}), {});
  EXPECT_FALSE(verdict.within);
  EXPECT_EQ(verdict.statistics.unlike, 2);
  EXPECT_EQ(verdict.statistics.nans, 1);
  EXPECT_EQ(verdict.statistics.infinities, 1);
  EXPECT_EQ(verdict.statistics.expected_infinities, 1);
  EXPECT_EQ(verdict.statistics.worst, 0);
}

TEST(ErrorStatistics, AreMeasuredAsAsked) {
  const Tensor expected = floats({10, 0, 0, 0, 0, 0, 0, 0, 0, 0}), actual = floats({11, 0, 0, 0, 0, 0, 0, 0, 0, 0.1f});
  const auto error = [&](ErrorMeasure measure, double quantile = 0.95) {
    return judge(actual, expected, {measure, quantile, {0, 0.5}}).error;
  };
  EXPECT_NEAR(error(ErrorMeasure::max), 1, 1e-6);
  EXPECT_NEAR(error(ErrorMeasure::mean), 0.11, 1e-6);
  EXPECT_EQ(error(ErrorMeasure::median), 0);
  EXPECT_NEAR(error(ErrorMeasure::quantile, 0.9), 0.1, 1e-6);
  EXPECT_NEAR(error(ErrorMeasure::quantile, 1), 1, 1e-6);
  // 0.1 is more than 0.05 of 0 and 0.01, but not more than 0.05 of 10.
  EXPECT_FALSE(judge(actual, expected, {ErrorMeasure::elementwise, 0, {0.11, 0.01}}).within);
  EXPECT_TRUE(judge(actual, expected, {ErrorMeasure::max, 0, {0.11, 0.01}}).within);
  EXPECT_TRUE(judge(actual, expected, {ErrorMeasure::elementwise, 0, {0.11, 0.1001}}).within);
}

TEST(ErrorStatistics, MeasuresHaveNames) {
  EXPECT_EQ(error_measure("median"), ErrorMeasure::median);
  EXPECT_EQ(name_of(ErrorMeasure::quantile), "quantile");
  EXPECT_THROW(error_measure("medium"), Error);
}

TEST(Patterns, HaveStars) {
  EXPECT_TRUE(fits_pattern("/layer.3/attn/MatMul", "*attn*"));
  EXPECT_TRUE(fits_pattern("abcabd", "a*abd"));
  EXPECT_TRUE(fits_pattern("abc", "abc*"));
  EXPECT_TRUE(fits_pattern("", "*"));
  EXPECT_FALSE(fits_pattern("abc", "ab"));
  EXPECT_FALSE(fits_pattern("abc", "*b"));
}

TEST(TensorStore, GivesBackWhatItTook) {
  TensorStore store;
  const size_t first = store.add(floats({1, 2, 3})), empty = store.add(Tensor(ElementType::int8, Shape{0, 4}));
  const size_t last = store.add(floats({4}));
  EXPECT_EQ(store.read(first).data<float>()[2], 3);
  EXPECT_EQ(store.read(empty).shape(), (Shape{0, 4}));
  EXPECT_EQ(store.read(last).data<float>()[0], 4);
  EXPECT_EQ(store.bytes(), 16);
}

TEST(ValueNames, FollowRewrites) {
  const std::vector<Rewrite> rewrites = {{"one", {}, {}, {{"a", "b"}}, {}},
                                         {"two", {}, {}, {{"b", "c"}, {"x", "y"}}, {}},
                                         {"three", {}, {}, {{"z", "c"}}, {}},
                                         {"four", {}, {}, {{"y", "plain"}}, {{"y", "blocked", 3}}},
                                         {"five", {}, {}, {{"blocked", "fused"}}, {}}};
  const ValueNames names(rewrites);
  using Names = std::vector<std::string>;
  EXPECT_EQ(names.now("a"), Names{"c"});
  EXPECT_EQ(names.now("b"), Names{"c"});
  EXPECT_EQ(names.now("z"), Names{"c"});
  EXPECT_EQ(names.now("other"), Names{"other"});
  EXPECT_EQ(names.before("c"), (Names{"a", "b", "z"}));
  EXPECT_EQ(names.now("x"), (Names{"plain", "fused"}));
  EXPECT_EQ(names.before("plain"), (Names{"x", "y"}));
  EXPECT_EQ(names.before("fused"), (Names{"x", "y", "blocked"}));
  EXPECT_EQ(names.channels_in_blocks("fused"), 3);
  EXPECT_EQ(names.channels_in_blocks("plain"), 0);
}

TEST(BlockedImage, BlocksAreUndone) {
  Tensor plain(ElementType::float32, Shape{1, 3, 1, 2}), blocked(ElementType::float32, Shape{1, 2, 1, 2, 2});
  for (size_t i = 0; i < 6; ++i) plain.mutable_data<float>()[i] = static_cast<float>(i);
  const float in_blocks[] = {0, 2, 1, 3, 4, -1, 5, -1};
  std::ranges::copy(in_blocks, blocked.mutable_data<float>().begin());
  const Tensor result = without_blocks(blocked, 3);
  EXPECT_EQ(result.shape(), plain.shape());
  EXPECT_TRUE(std::ranges::equal(result.data<float>(), plain.data<float>()));
  Tensor last(ElementType::float32, Shape{1, 1, 2, 3});
  const float side_by_side[] = {0, 2, 4, 1, 3, 5};
  std::ranges::copy(side_by_side, last.mutable_data<float>().begin());
  const Tensor first = without_blocks(last, 3);
  EXPECT_EQ(first.shape(), plain.shape());
  EXPECT_TRUE(std::ranges::equal(first.data<float>(), plain.data<float>()));
}

TEST(Align, GoesByContentThenByPosition) {
  const auto of = [](std::initializer_list<float> numbers, const char* op) { return fingerprint(floats(numbers), op); };
  const std::vector<Fingerprint> a = {of({1, 2}, "Add"), of({5, 9}, "Relu"), of({-3, 8}, "Mul"), of({0, 1}, "Exp")};
  const std::vector<Fingerprint> b = {of({1, 2}, "Sum"), of({-3, 8}, "Mul"), of({7, 70}, "Exp")};
  EXPECT_EQ(align(a, b), (std::vector<std::pair<size_t, size_t>>{{0, 0}, {2, 1}, {3, 2}}));
}

// y = relu(x * 2 + offset), and what is between.
OnnxModel model_of(float offset, const std::string& prefix = "") {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{4});
  b.initializer("two", Tensor::scalar(2.0f)).initializer("offset", Tensor::scalar(offset));
  b.node("Mul", {"x", "two"}, {prefix + "scaled"}, "scale");
  b.node("Add", {prefix + "scaled", "offset"}, {prefix + "shifted"}, "shift");
  b.node("Relu", {prefix + "shifted"}, {"y"}, "relu");
  b.output("y");
  const std::string bytes = b.bytes();
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

CompareSide side(OnnxModel model, OptimizationLevel level = OptimizationLevel::none) {
  SessionOptions options;
  options.level = level;
  return CompareSide::of(std::move(model), options, std::string(name_of(level)));
}

TEST(Compare, FindsTheFirstTensorThatDiffers) {
  const Comparison comparison = compare(side(model_of(1)), side(model_of(1.5f)));
  ASSERT_FALSE(comparison.ok());
  EXPECT_EQ(comparison.tensors[static_cast<size_t>(comparison.first)].name, "shifted");
  EXPECT_EQ(comparison.tensors[static_cast<size_t>(comparison.first)].node, "Add 'shift' (node 1)");
  EXPECT_TRUE(comparison.tensors[0].ok());
  EXPECT_EQ(comparison.random, std::vector<std::string>{"x"});
}

TEST(Compare, MatchesByPositionWhereNamesDiffer) {
  const Comparison comparison = compare(side(model_of(1)), side(model_of(1, "other_")));
  EXPECT_TRUE(comparison.ok());
  ASSERT_EQ(comparison.tensors.size(), 3u);
  EXPECT_EQ(comparison.tensors[0].match, ComparedTensor::Match::position);
  EXPECT_EQ(comparison.tensors[0].expected_name, "scaled");
  EXPECT_EQ(comparison.tensors[0].actual_name, "other_scaled");
  EXPECT_EQ(comparison.tensors[2].match, ComparedTensor::Match::name);
  EXPECT_TRUE(comparison.only_expected.empty());
}

TEST(Compare, HasTolerancesForTensors) {
  CompareOptions options;
  options.tolerances = {{"*", {10, 10}}, {"y", {0, 1e-9}}};
  const Comparison comparison = compare(side(model_of(1)), side(model_of(1.5f)), options);
  ASSERT_FALSE(comparison.ok());
  EXPECT_EQ(comparison.tensors[static_cast<size_t>(comparison.first)].name, "y");
  options.only = {"sca*"};
  EXPECT_TRUE(compare(side(model_of(1)), side(model_of(1.5f)), options).ok());
}

TEST(Compare, TakesSavedTensors) {
  CompareSide saved;
  saved.label = "saved";
  saved.saved = {{"y", floats({3, 5, 7, 0})}, {"scaled", floats({2, 4, 6, 8})}};
  CompareOptions options;
  options.inputs.values = {{"x", floats({1, 2, 3, 4})}};
  const Comparison comparison = compare(saved, side(model_of(1)), options);
  ASSERT_EQ(comparison.tensors.size(), 2u);
  EXPECT_TRUE(comparison.tensors[0].ok());
  EXPECT_FALSE(comparison.tensors[1].ok());
  EXPECT_EQ(comparison.tensors[1].verdict.statistics.worst, 3);
}

TEST(Compare, FindsTensorsOfBlockedConvolutions) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{1, 16, 32, 32});
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    Tensor weights(ElementType::float32, Shape{16, 16, 3, 3});
    for (float& w : weights.mutable_data<float>()) w = 0.01f;
    b.initializer("w" + n, weights);
    b.node("Conv", {i ? "c" + std::to_string(i - 1) : "x", "w" + n}, {"c" + n}, "conv " + n)
        .set_attribute({"pads", std::vector<int64_t>{1, 1, 1, 1}});
  }
  b.output("c2");
  const std::string bytes = b.bytes();
  const OnnxModel model = OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
  const Comparison comparison = compare(side(model), side(model, OptimizationLevel::all));
  std::vector<std::string> names;
  for (const ComparedTensor& tensor : comparison.tensors) names.push_back(tensor.name);
  EXPECT_TRUE(comparison.ok());
  EXPECT_NE(std::ranges::find(names, "c0"), names.end());
  EXPECT_NE(std::ranges::find(names, "c1"), names.end());
  EXPECT_NE(std::ranges::find(names, "c2"), names.end());
}

}  // namespace
}  // namespace tenon::tools
