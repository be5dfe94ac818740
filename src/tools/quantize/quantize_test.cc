#include "tenon/tools/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/graph.h"
#include "model_builder.h"
#include "tools/quantize/blocks.h"
#include "tools/quantize/codes.h"
#include "tools/quantize/division.h"
#include "tools/quantize/histogram.h"

namespace tenon::tools {
namespace {

std::vector<float> normal(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(0, scale);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = distribution(random);
  return numbers;
}

Tensor random_tensor(Shape shape, uint32_t seed, float scale = 1) {
  const std::vector<float> numbers = normal(static_cast<size_t>(shape.elements()), seed, scale);
  return Tensor(std::move(shape), std::span<const float>(numbers));
}

TEST(Histogram, StaysSmallAndExactAtItsEnds) {
  Histogram histogram;
  float largest = 0, smallest = 0;
  int64_t count = 0;
  for (uint32_t i = 0; i < 40; ++i) {
    // Ever larger numbers: bins become wider.
    const std::vector<float> numbers = normal(1000, i, std::exp2(static_cast<float>(i) / 2));
    histogram.add(numbers);
    for (float x : numbers) largest = std::max(largest, x), smallest = std::min(smallest, x);
    count += 1000;
  }
  EXPECT_LE(histogram.bins().size(), static_cast<size_t>(Histogram::most_bins + 2));
  EXPECT_EQ(histogram.count(), count);
  EXPECT_EQ(histogram.max(), static_cast<double>(largest));
  EXPECT_EQ(histogram.min(), static_cast<double>(smallest));
  int64_t in_bins = 0;
  for (int64_t bin : histogram.bins()) in_bins += bin;
  EXPECT_EQ(in_bins, count);
}

TEST(Histogram, Quantiles) {
  Histogram histogram;
  std::vector<float> numbers(10001);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) / 10000;
  histogram.add(numbers);
  EXPECT_NEAR(histogram.quantile(0.5), 0.5, 1e-3);
  EXPECT_NEAR(histogram.quantile(0.99), 0.99, 1e-3);
  EXPECT_NEAR(histogram.mean(), 0.5, 1e-6);
  EXPECT_NEAR(histogram.deviation(), std::sqrt(1 / 12.0), 1e-3);
  EXPECT_NEAR(histogram.share_outside(0.1, 0.9), 0.2, 1e-3);
  EXPECT_EQ(histogram.share_outside(0, 1), 0);
}

TEST(Histogram, IgnoresWhatIsNotFinite) {
  Histogram histogram;
  const float numbers[] = {1, INFINITY, -NAN, 2, -INFINITY};
  histogram.add(numbers);
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_EQ(histogram.max(), 2);
}

TEST(Ranges, OutliersAreCutWhereThatPays) {
  Histogram histogram;
  std::vector<float> numbers = normal(100000, 1);
  numbers.push_back(100);
  histogram.add(numbers);
  const auto highest = [&](RangeMethod method, int levels) {
    return choose_range(histogram, method, 99.99, levels, false).high;
  };
  EXPECT_EQ(highest(RangeMethod::minmax, 256), 100);
  // One number of 100 in 100,000 is worth a little of the range of 256 codes, and nothing of that of 16.
  EXPECT_LT(highest(RangeMethod::mse, 256), 100);
  EXPECT_GT(highest(RangeMethod::mse, 256), 50);
  EXPECT_LT(highest(RangeMethod::mse, 16), 20);
  EXPECT_LT(highest(RangeMethod::entropy, 256), 50);
  EXPECT_NEAR(highest(RangeMethod::percentile, 256), 3.7, 0.3);
}

TEST(Ranges, NumbersWithoutOutliersKeepTheirRange) {
  Histogram histogram;
  std::vector<float> numbers(100000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 1000) / 999;
  histogram.add(numbers);
  EXPECT_GT(choose_range(histogram, RangeMethod::mse, 99.99, 256, false).high, 0.98);
  EXPECT_GT(choose_range(histogram, RangeMethod::entropy, 99.99, 256, false).high, 0.9);
}

TEST(Codes, ZeroIsExact) {
  for (ElementType type : {ElementType::uint8, ElementType::int8, ElementType::uint16, ElementType::int16}) {
    const CodeMeaning meaning = meaning_of({-0.3, 1.7}, type, false);
    EXPECT_NEAR(meaning.low(), -0.3, static_cast<double>(meaning.scale));
    EXPECT_NEAR(meaning.high(), 1.7, static_cast<double>(meaning.scale));
    const CodeMeaning symmetric = meaning_of({-0.3, 1.7}, type, true);
    EXPECT_NEAR(symmetric.high(), 1.7, 1e-6);
    EXPECT_LE(symmetric.low(), -1.7);
  }
  EXPECT_EQ(meaning_of({0, 0}, ElementType::uint8, false).scale, 1);
  EXPECT_EQ(meaning_of({2, 3}, ElementType::uint8, false).zero, 0);  // 0 belongs to every range
}

TEST(Codes, EachChannelHasItsScale) {
  const Tensor weight(Shape{2, 3}, {1.0f, -0.5f, 0.25f, 100.0f, -127.0f, 0.0f});
  const CodedWeight rows = code_weight(weight, {ElementType::int8, true, 0, {}});
  EXPECT_FLOAT_EQ(rows.scales.data<float>()[0], 1.0f / 127);
  EXPECT_FLOAT_EQ(rows.scales.data<float>()[1], 1.0f);
  EXPECT_EQ(rows.codes.data<int8_t>()[3], 100);
  EXPECT_FALSE(rows.zeros);
  const CodedWeight whole = code_weight(weight, {ElementType::uint8, false, -1, {}});
  EXPECT_EQ(whole.scales.rank(), 0);
  ASSERT_TRUE(whole.zeros);
  EXPECT_EQ(whole.zeros->data<uint8_t>()[0], whole.codes.data<uint8_t>()[5]);
}

// What a matrix is off by, weighed by what it is multiplied with.
double weighed_error(const std::vector<float>& matrix, const BlockedCodes& coded, const std::vector<float>& inputs) {
  const auto k = static_cast<size_t>(coded.inputs), n = static_cast<size_t>(coded.outputs);
  double error = 0;
  for (size_t row = 0; row < inputs.size() / k; ++row) {
    for (size_t o = 0; o < n; ++o) {
      double off = 0;
      for (size_t i = 0; i < k; ++i) {
        const size_t block = i / static_cast<size_t>(coded.block) * n + o;
        const float number = static_cast<float>(coded.codes[i * n + o] - coded.zeros[block]) * coded.scales[block];
        off += static_cast<double>(inputs[row * k + i] * (matrix[i * n + o] - number));
      }
      error += off * off;
    }
  }
  return error;
}

TEST(Blocks, GptqMakesUpForRounding) {
  constexpr int64_t k = 40, n = 24, rows = 200;
  const std::vector<float> matrix = normal(k * n, 1);
  // Channels that have much in common.
  std::vector<float> inputs = normal(rows * k, 2, 0.3f);
  const std::vector<float> common = normal(rows, 3);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] += common[i / k];
  ChannelProducts products;
  products.add(Tensor(Shape{rows, k}, std::span<const float>(inputs)));
  for (int64_t block : {16, 0}) {
    const BlockedCodes rounded = code_blocks(matrix, k, n, ElementType::int4, true, block, nullptr);
    const BlockedCodes gptq = code_blocks(matrix, k, n, ElementType::int4, true, block, &products);
    EXPECT_EQ(rounded.blocks, block == 0 ? 1 : 3);
    EXPECT_LT(weighed_error(matrix, gptq, inputs), 0.5 * weighed_error(matrix, rounded, inputs));
  }
}

// Two products with what is usual between them.
ModelBuilder two_layers(float first_scale = 1) {
  ModelBuilder b(17);
  b.input("x", ElementType::float32, SymbolicShape{Dim(4), Dim(32)});
  b.initializer("w1", random_tensor(Shape{32, 64}, 1, first_scale)).initializer("b1", random_tensor(Shape{64}, 2));
  b.initializer("w2", random_tensor(Shape{64, 16}, 3));
  b.node("MatMul", {"x", "w1"}, {"p"}, "first");
  b.node("Add", {"p", "b1"}, {"s"}, "bias");
  b.node("Relu", {"s"}, {"r"}, "positive");
  b.node("MatMul", {"r", "w2"}, {"y"}, "second");
  b.output("y", ir::Type::tensor(ElementType::float32));
  return b;
}

OnnxModel model_of(const ModelBuilder& builder) {
  const std::string bytes = builder.bytes();
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

std::vector<NamedValues> some_samples(float scale = 1) {
  std::vector<NamedValues> samples;
  for (uint32_t i = 0; i < 6; ++i) samples.push_back({{"x", random_tensor(Shape{4, 32}, 10 + i, scale)}});
  return samples;
}

QuantizeOptions plain_options() {
  QuantizeOptions options;
  options.measure = false;
  return options;
}

QuantizeReport quantized(const ModelBuilder& builder, const QuantizeOptions& options, float scale = 1) {
  const auto samples = samples_of(some_samples(scale));
  return quantize(model_of(builder), options, {samples.get(), nullptr, {}});
}

TEST(Quantize, EveryModeIsCloseAndSmaller) {
  for (QuantizeMode mode : {QuantizeMode::static_, QuantizeMode::dynamic, QuantizeMode::weight_only}) {
    QuantizeOptions options = plain_options();
    options.mode = mode;
    options.block_size = 0;
    const QuantizeReport report = quantized(two_layers(), options);
    EXPECT_EQ(report.quantized_nodes(), 2) << name_of(mode);
    EXPECT_GT(report.outputs.at(0).sqnr, 30) << name_of(mode);
    EXPECT_LT(static_cast<double>(report.bytes_after), 0.4 * static_cast<double>(report.bytes_before));
    std::set<std::string> names;
    for (const ir::Node& node : report.model.ir().graph->nodes())
      EXPECT_TRUE(names.insert(node.name).second) << node.name;
  }
}

TEST(Quantize, SmoothQuantChangesNothingButTheRanges) {
  QuantizeOptions options = plain_options();
  options.smooth = 0.5;
  options.keep = {"*"};  // all in float
  EXPECT_THROW(quantized(two_layers(), options), Error);
  options.keep = {"second"};
  const QuantizeReport report = quantized(two_layers(), options);
  EXPECT_GT(report.outputs.at(0).sqnr, 30);
}

TEST(Quantize, BudgetKeepsNodesFloat) {
  QuantizeOptions options = plain_options();
  options.loss.most = 1e-7;
  const QuantizeReport tight = quantized(two_layers(), options);
  EXPECT_LE(tight.loss, 1e-7);
  EXPECT_LT(tight.quantized_nodes(), 2);
  options.loss.most = std::nullopt;
  EXPECT_EQ(quantized(two_layers(), options).quantized_nodes(), 2);
}

// The second product costs too much of the budget. The first one is faster on codes, unless making codes takes longer
// than that saves.
TEST(Quantize, ChangingBetweenCodesAndFloatsCosts) {
  const OnnxModel model = model_of(two_layers());
  const std::unique_ptr<ir::Model> copy = model.ir().clone();
  const KnownTypes types = known_types(*copy);
  const QuantizeOptions options = plain_options();
  const Plan plan(*copy, types, options);
  const auto number = [&](const char* name) {
    const auto is_it = [&](const Plan::Entry& entry) { return entry.node->name == name; };
    return static_cast<size_t>(std::ranges::find_if(plan.entries(), is_it) - plan.entries().begin());
  };
  const auto costs = [&](size_t node) {
    if (node == number("first")) return NodeCosts{10e-6, 1e-6, 0};
    return node == number("second") ? NodeCosts{10e-6, 1e-6, 1} : NodeCosts{};
  };
  const auto elements = [](const ir::Value&) { return int64_t{100}; };
  EXPECT_EQ(cheapest_floats(plan, costs, 0, 0, elements), std::set<size_t>());
  EXPECT_EQ(cheapest_floats(plan, costs, 1, 0, elements), std::set<size_t>{number("second")});
  EXPECT_EQ(cheapest_floats(plan, costs, 1, 80e-9, elements), std::set<size_t>{number("second")});
  EXPECT_EQ(cheapest_floats(plan, costs, 1, 100e-9, elements), (std::set<size_t>{number("first"), number("second")}));
}

TEST(Quantize, MetricDecides) {
  QuantizeOptions options = plain_options();
  int calls = 0;
  // A model is good if it has no codes of the second weight.
  options.loss.metric = [&](const OnnxModel& model) {
    ++calls;
    return model.to_bytes().find("w2/codes") == std::string::npos ? 1.0 : 0.5;
  };
  const QuantizeReport report = quantized(two_layers(), options);
  EXPECT_EQ(report.metric_before, 1.0);
  EXPECT_EQ(report.metric_after, 1.0);
  EXPECT_EQ(report.quantized_nodes(), 1);
  EXPECT_GT(calls, 2);
}

TEST(Quantize, WeightsOfFloatProductsAreCodesWhereTheBudgetAllowsIt) {
  QuantizeOptions options = plain_options();
  // A model is good if both products compute in float, the second one with weights that are floats.
  const auto has = [](const OnnxModel& model, const char* name) {
    return model.to_bytes().find(name) != std::string::npos;
  };
  options.loss.metric = [&](const OnnxModel& model) {
    return has(model, "x/codes") || has(model, "r/codes") || has(model, "w2/codes") ? 0.5 : 1.0;
  };
  const QuantizeReport report = quantized(two_layers(), options);
  EXPECT_EQ(report.metric_after, 1.0);
  EXPECT_EQ(report.quantized_nodes(), 0);
  EXPECT_TRUE(has(report.model, "w1/codes"));
  const std::string stored = "its weights are stored as codes";
  ASSERT_EQ(report.nodes.size(), 2);
  EXPECT_NE(report.nodes[0].why_float.find(stored), std::string::npos) << report.nodes[0].why_float;
  EXPECT_EQ(report.nodes[1].why_float.find(stored), std::string::npos) << report.nodes[1].why_float;
}

TEST(Quantize, WhatStaysFloatMayBeHalf) {
  const auto types = [](const OnnxModel& model) {
    std::map<std::string, ElementType> result;
    for (const ir::Value* value : model.ir().graph->initializers())
      result[value->name] = value->constant()->tensor.type();
    return result;
  };
  QuantizeOptions options = plain_options();
  options.keep = {"second"};
  EXPECT_EQ(types(quantized(two_layers(), options).model).at("w2"), ElementType::float32);
  options.float_type = ElementType::float16;
  const QuantizeReport report = quantized(two_layers(), options);
  EXPECT_EQ(report.float_type, ElementType::float16);
  EXPECT_EQ(types(report.model).at("w2"), ElementType::float16);
  EXPECT_FALSE(types(report.model).contains("w1"));
  EXPECT_GT(report.outputs.at(0).sqnr, 30);
  EXPECT_EQ(report.model.open().outputs().at(0).type, "tensor(float)");
  options.mode = QuantizeMode::dynamic;
  EXPECT_NE(error_of([&] { quantized(two_layers(), options); }).find("static"), std::string::npos);
}

TEST(Quantize, WarnsOfDataUnlikeTheEvaluation) {
  const auto calibration = samples_of(some_samples(1)), evaluation = samples_of(some_samples(100));
  QuantizeOptions options = plain_options();
  options.loss.most = std::nullopt;
  const QuantizeReport report = quantize(model_of(two_layers()), options, {calibration.get(), evaluation.get(), {}});
  ASSERT_FALSE(report.warnings.empty());
  EXPECT_NE(report.warnings[0].find("unlike"), std::string::npos);
}

TEST(Quantize, SaysWhatDoesNotFit) {
  QuantizeOptions options = plain_options();
  options.weights = ElementType::int4;
  EXPECT_NE(error_of([&] { quantized(two_layers(), options); }).find("weight-only"), std::string::npos);
  options = plain_options();
  options.keep = {"firs"};
  EXPECT_NE(error_of([&] { quantized(two_layers(), options); }).find("first"), std::string::npos);
  EXPECT_NE(error_of([] { range_method("minmux"); }).find("minmax"), std::string::npos);
  ModelBuilder old(9);
  old.input("x", ElementType::float32, SymbolicShape{Dim(4), Dim(32)});
  old.node("Relu", {"x"}, {"y"}).name = "r";
  old.output("y");
  EXPECT_NE(error_of([&] { quantized(old, plain_options()); }).find("opset 9"), std::string::npos);
}

}  // namespace
}  // namespace tenon::tools
