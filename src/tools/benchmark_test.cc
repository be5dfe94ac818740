#include "tenon/tools/benchmark.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "model_builder.h"

namespace tenon::tools {
namespace {

TEST(Percentile, LiesBetweenTheNearestTwo) {
  const double values[] = {10, 20, 40, 80};
  struct Case {
    double fraction, expected;
  } cases[] = {{0, 10}, {1.0 / 3, 20}, {0.5, 30}, {0.9, 68}, {1, 80}};
  for (const Case& c : cases) EXPECT_DOUBLE_EQ(percentile(values, c.fraction), c.expected) << c.fraction;
  EXPECT_EQ(percentile(std::span(values, 1), 0.99), 10);
}

TEST(Percentile, OfManyRuns) {
  std::vector<double> seconds(101);
  std::iota(seconds.begin(), seconds.end(), 0.0);
  std::ranges::reverse(seconds);
  seconds[0] = 1000;  // in the place of 100
  const Latency latency = latency_of(seconds);
  EXPECT_EQ(latency.runs, 101);
  EXPECT_EQ(latency.min, 0);
  EXPECT_DOUBLE_EQ(latency.mean, (4950.0 + 1000) / 101);
  EXPECT_DOUBLE_EQ(latency.p50, 50);
  EXPECT_DOUBLE_EQ(latency.p90, 90);
  EXPECT_DOUBLE_EQ(latency.p95, 95);
  EXPECT_DOUBLE_EQ(latency.p99, 99);
  EXPECT_EQ(latency.max, 1000);
  EXPECT_EQ(latency_of({}).runs, 0);
  EXPECT_EQ(latency_of({2.5}).p99, 2.5);
}

Session relu() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  return b.session();
}

const NamedValues inputs = {{"x", Tensor({4}, {-1.0f, 0.0f, 1.0f, 2.0f})}};

BenchOptions runs(int64_t count, int concurrency) {
  BenchOptions options;
  options.runs = count;
  options.seconds = 0;
  options.concurrency = concurrency;
  return options;
}

TEST(Bench, DoesAsManyRunsAsWereAskedFor) {
  const Session session = relu();
  for (int concurrency : {1, 2, 5}) {
    for (int64_t count : {1, 3, 100}) {
      const BenchResult result = bench(session, inputs, runs(count, concurrency));
      EXPECT_EQ(result.latency.runs, count);
      EXPECT_GT(result.latency.min, 0);
      EXPECT_LE(result.latency.max, result.seconds);
      EXPECT_DOUBLE_EQ(result.throughput, static_cast<double>(count) / result.seconds);
      EXPECT_GT(result.first_run, 0);
    }
  }
}

TEST(Bench, EndsInTime) {
  BenchOptions options;
  options.seconds = 1e-9;
  options.warmup = 0;
  EXPECT_EQ(bench(relu(), inputs, options).latency.runs, 1);
  options.seconds = 0.3;
  std::vector<double> told;
  const std::thread::id caller = std::this_thread::get_id();
  options.concurrency = 2;
  options.progress = [&](double done) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    told.push_back(done);
  };
  const BenchResult result = bench(relu(), inputs, options);
  EXPECT_GE(result.seconds, 0.3);
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_GT(told.front(), 0);
  EXPECT_LE(told.back(), 1);
}

TEST(Bench, FailsAsARunDoes) {
  const Session session = relu();
  for (int concurrency : {1, 3}) {
    EXPECT_EQ(error_of([&] {
                bench(session, {{"x", Tensor::scalar(1.0f)}}, runs(10, concurrency));
              }),
              "shape-mismatch, tensor 'x': the model takes rank 1 [n], got rank 0 []");
  }
  BenchOptions nothing = runs(0, 1), nobody = runs(1, 0);
  EXPECT_EQ(error_of([&] { bench(session, inputs, nothing); }),
            "invalid-argument: a benchmark needs a number of runs or of seconds");
  EXPECT_EQ(error_of([&] { bench(session, inputs, nobody); }), "invalid-argument: a benchmark needs a thread at least");
}

}  // namespace
}  // namespace tenon::tools
