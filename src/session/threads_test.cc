#include <gtest/gtest.h>

#include <cstring>

#include "model_builder.h"

namespace tenon {
namespace {

Tensor waves(Shape shape) {
  Tensor tensor(ElementType::float32, std::move(shape));
  int i = 0;
  for (float& element : tensor.mutable_data<float>()) element = static_cast<float>(++i * 7919 % 1009) / 1009.0f - 0.5f;
  return tensor;
}

void expect_same_bits(const ModelBuilder& b, const NamedValues& inputs, const std::string& output) {
  SessionOptions options;
  options.threads = 1;
  const Tensor expected = b.session(options).run(inputs)[output].tensor();
  for (int threads : {2, 3, 5, 8}) {
    options.threads = threads;
    const Tensor actual = b.session(options).run(inputs)[output].tensor();
    EXPECT_TRUE(identical(actual, expected)) << threads << " threads";
  }
}

TEST(Threads, RecurrentBatchesGiveTheSameBits) {
  ModelBuilder b;
  b.input("x", ElementType::float32);
  b.initializer("w", waves({1, 4 * 40, 24})).initializer("r", waves({1, 4 * 40, 40}));
  b.node("LSTM", {"x", "w", "r"}, {"y"}).set_attribute(ir::Attribute("hidden_size", int64_t{40}));
  b.output("y");
  for (int64_t batch : {1, 7, 9, 50}) expect_same_bits(b, {{"x", waves({6, batch, 24})}}, "y");
}

TEST(Threads, SumsAndProductsGiveTheSameBits) {
  ModelBuilder b;
  b.input("x", ElementType::float32);
  b.initializer("w", waves({300, 200})).initializer("axes", Tensor(Shape{2}, {int64_t{0}, int64_t{1}}));
  b.node("MatMul", {"x", "w"}, {"product"});
  b.node("Softmax", {"product"}, {"softmax"});
  b.node("ReduceSum", {"softmax", "axes"}, {"sums"});
  b.node("ReduceL2", {"x"}, {"norm"});
  b.node("Mul", {"sums", "norm"}, {"y"});
  b.output("y");
  for (int64_t rows : {1, 5, 64, 777}) expect_same_bits(b, {{"x", waves({rows, 300})}}, "y");
}

// Workers compute as the session wants it, not as they were started.
TEST(Threads, DenormalsAreFlushedOnEveryThread) {
  ModelBuilder b;
  b.input("x", ElementType::float32);
  b.initializer("tiny", Tensor::scalar(1e-20f));
  b.node("Mul", {"x", "tiny"}, {"y"});
  b.output("y");
  Tensor x(ElementType::float32, {1 << 20});
  for (float& element : x.mutable_data<float>()) element = 1e-20f;
  for (bool flush : {false, true, false}) {
    SessionOptions options;
    options.threads = 4;
    options.flush_denormals = flush;
    Session session = b.session(options);
    for (int run = 0; run < 3; ++run) {
      const Tensor y = session.run({{"x", x}})["y"].tensor();
      for (float element : y.data<float>()) ASSERT_EQ(element == 0, flush);
    }
    volatile float denormal = 1e-40f;
    EXPECT_NE(denormal * 1.0f, 0.0f) << "the caller's own mode was changed";
  }
}

TEST(Threads, WorkWithoutSpinning) {
  ModelBuilder b;
  b.input("x", ElementType::float32);
  b.node("Neg", {"x"}, {"y"});
  b.output("y");
  SessionOptions options;
  options.threads = 3;
  options.spin_microseconds = 0;
  Session session = b.session(options);
  for (int run = 0; run < 50; ++run) EXPECT_EQ(session.run({{"x", waves({100000})}})["y"].tensor().elements(), 100000);
}

}  // namespace
}  // namespace tenon
