#include <map>

#include "model_builder.h"
#include "op_test.h"

namespace tenon {
namespace {

constexpr int64_t count = 100000;

// What one node gives for one input.
Tensor draw(const std::string& op, std::vector<ir::Attribute> attributes, Tensor input = {}, int threads = 1,
            std::vector<std::string> decompose = {}) {
  ModelBuilder b;
  if (input.defined()) b.input("x", input.type(), symbolic(input.shape()));
  ir::Node& node = b.node(op, input.defined() ? std::vector<std::string>{"x"} : std::vector<std::string>{}, {"y"});
  for (ir::Attribute& attribute : attributes) node.set_attribute(std::move(attribute));
  b.output("y");
  SessionOptions options;
  options.threads = threads;
  options.decompose = std::move(decompose);
  return b.session(options).run(input.defined() ? NamedValues{{"x", input}} : NamedValues{}).at("y").tensor();
}

std::vector<ir::Attribute> settings(std::initializer_list<std::pair<const char*, float>> numbers,
                                    ElementType type = ElementType::undefined, bool with_shape = false) {
  std::vector<ir::Attribute> result;
  for (const auto& [name, number] : numbers) result.emplace_back(name, number);
  if (type != ElementType::undefined) result.emplace_back("dtype", static_cast<int64_t>(type));
  if (with_shape) result.emplace_back("shape", std::vector<int64_t>{10, count / 10});
  return result;
}

template <typename T>
void expect_mean_and_variance(const Tensor& tensor, double mean, double variance, double tolerance = 0.02) {
  double sum = 0, squares = 0;
  auto data = tensor.data<T>();
  for (T element : data) {
    const auto value = static_cast<double>(static_cast<float>(element));
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(data.size());
  EXPECT_NEAR(sum / n, mean, tolerance * std::sqrt(variance));
  EXPECT_NEAR(squares / n - sum / n * sum / n, variance, tolerance * variance);
}

TEST(Random, Uniform) {
  Tensor y = draw("RandomUniform", settings({{"low", -1}, {"high", 3}, {"seed", 1}}, ElementType::undefined, true));
  EXPECT_EQ(y.shape(), (Shape{10, count / 10}));
  expect_mean_and_variance<float>(y, 1, 16.0 / 12);
  for (float value : y.data<float>()) ASSERT_TRUE(value >= -1 && value < 3);
  expect_mean_and_variance<double>(draw("RandomUniform", settings({{"seed", 2}}, ElementType::float64, true)), 0.5,
                                   1.0 / 12);
  expect_mean_and_variance<float16>(draw("RandomUniform", settings({{"seed", 3}}, ElementType::float16, true)), 0.5,
                                    1.0 / 12);
}

TEST(Random, Normal) {
  expect_mean_and_variance<float>(
      draw("RandomNormal", settings({{"mean", 5}, {"scale", 3}, {"seed", 1}}, ElementType::undefined, true)), 5, 9);
  expect_mean_and_variance<bfloat16>(draw("RandomNormal", settings({{"seed", 2}}, ElementType::bfloat16, true)), 0, 1);
  expect_mean_and_variance<double>(draw("RandomNormal", settings({{"seed", 3}}, ElementType::float64, true)), 0, 1);
}

TEST(Random, Like) {
  Tensor x(ElementType::float64, Shape{count});
  std::ranges::fill(x.mutable_data<double>(), 0.0);
  expect_mean_and_variance<double>(draw("RandomNormalLike", settings({{"seed", 1}}), x), 0, 1);
  expect_mean_and_variance<float>(draw("RandomUniformLike", settings({{"seed", 1}}, ElementType::float32), x), 0.5,
                                  1.0 / 12);
  std::string text = OpTest("RandomUniformLike").input<int32_t>({1}, {1}).error();
  EXPECT_NE(text.find("the output would be of type int32; it may be"), std::string::npos) << text;
  text = OpTest("RandomNormal").attribute("shape", {-1}).error();
  EXPECT_NE(text.find("shape has a negative size, -1"), std::string::npos) << text;
}

TEST(Random, SeedsAndThreads) {
  Tensor x(ElementType::float32, Shape{count});
  std::ranges::fill(x.mutable_data<float>(), 0.5f);
  for (const char* op : {"RandomNormalLike", "RandomUniformLike", "Bernoulli"}) {
    EXPECT_TRUE(identical(draw(op, settings({{"seed", 1}}), x, 1), draw(op, settings({{"seed", 1}}), x, 4))) << op;
    EXPECT_FALSE(identical(draw(op, settings({{"seed", 1}}), x), draw(op, settings({{"seed", 2}}), x))) << op;
    EXPECT_FALSE(identical(draw(op, {}, x), draw(op, {}, x))) << op;
  }
}

TEST(Random, Bernoulli) {
  Tensor x(ElementType::float32, Shape{count});
  std::ranges::fill(x.mutable_data<float>(), 0.25f);
  expect_mean_and_variance<float>(draw("Bernoulli", settings({{"seed", 1}}), x), 0.25, 0.1875);
  expect_mean_and_variance<int64_t>(draw("Bernoulli", settings({{"seed", 1}}, ElementType::int64), x), 0.25, 0.1875);
  OpTest("Bernoulli")
      .attribute("dtype", static_cast<int64_t>(ElementType::boolean))
      .input<double>({3}, {1, 0, 1})
      .expect<bool>({3}, {true, false, true})
      .run();
  OpTest("Bernoulli", 15)
      .input<float16>({2}, {float16(1), float16(0)})
      .expect<float16>({2}, {float16(1), float16(0)})
      .run();
}

// Each share of ones, and of neighbours that are ones both, is within five standard errors of its probability.
TEST(Random, BernoulliKeepsEachProbability) {
  const std::vector<double> probabilities{0, 0.001, 0.3, 0.5, 0.9, 1};
  Tensor x(ElementType::float64, Shape{static_cast<int64_t>(probabilities.size()), count});
  for (int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data<double>()[static_cast<size_t>(i)] = probabilities[static_cast<size_t>(i / count)];
  Tensor y = draw("Bernoulli", settings({{"seed", 7}}, ElementType::uint8), x);
  for (size_t row = 0; row < probabilities.size(); ++row) {
    auto outcomes = y.data<uint8_t>().subspan(row * count, count);
    int64_t ones = 0, pairs = 0;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      ASSERT_LE(outcomes[i], 1);
      ones += outcomes[i];
      if (i % 2 == 1) pairs += outcomes[i] * outcomes[i - 1];
    }
    auto expect_share = [](int64_t found, double p, int64_t of) {
      const auto n = static_cast<double>(of);
      EXPECT_NEAR(static_cast<double>(found) / n, p, 5 * std::sqrt(p * (1 - p) / n));
    };
    const double p = probabilities[row];
    expect_share(ones, p, count);
    expect_share(pairs, p * p, count / 2);
  }
}

// A seed draws the same numbers in both.
TEST(Random, BernoulliAsSmallerOperators) {
  for (ElementType type : {ElementType::float32, ElementType::float64, ElementType::float16, ElementType::bfloat16}) {
    std::vector<ir::Attribute> uniform = settings({{"seed", 3}}, type, /*with_shape=*/true);
    Tensor x = draw("RandomUniform", std::move(uniform));
    for (ElementType to : {ElementType::undefined, ElementType::boolean, ElementType::int64}) {
      Tensor whole = draw("Bernoulli", settings({{"seed", 1}}, to), x);
      EXPECT_TRUE(identical(draw("Bernoulli", settings({{"seed", 1}}, to), x, 1, {"Bernoulli"}), whole));
      EXPECT_FALSE(identical(draw("Bernoulli", settings({}, to), x, 1, {"Bernoulli"}), whole));
    }
  }
}

TEST(Random, Multinomial) {
  std::vector<ir::Attribute> attributes = settings({{"seed", 1}}, ElementType::int64);
  attributes.emplace_back("sample_size", count);
  Tensor y =
      draw("Multinomial", std::move(attributes), Tensor(Shape{1, 3}, {std::log(1.0f), std::log(3.0f), -INFINITY}));
  EXPECT_EQ(y.shape(), (Shape{1, count}));
  std::map<int64_t, double> shares;
  for (int64_t chosen : y.data<int64_t>()) shares[chosen] += 1.0 / count;
  EXPECT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares[1], 0.75, 5 * std::sqrt(0.25 * 0.75 / count));
  OpTest("Multinomial", 7)
      .attribute("sample_size", 2)
      .input<float16>({2, 2}, {float16(0), float16(-INFINITY), float16(-INFINITY), float16(5)})
      .expect<int32_t>({2, 2}, {0, 0, 1, 1})
      .run();
  std::string text = OpTest("Multinomial").input<float>({1, 1}, {-INFINITY}).error();
  EXPECT_NE(text.find("row 0 gives no class a probability between 0 and 1"), std::string::npos) << text;
  text = OpTest("Multinomial").attribute("sample_size", 0).input<float>({1, 1}, {1}).error();
  EXPECT_NE(text.find("sample_size is 0; it must be at least 1"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon
