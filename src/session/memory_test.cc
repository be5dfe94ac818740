#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "model_builder.h"

namespace tenon {
namespace {

// Bytes of this process that are in memory.
int64_t resident_bytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096;
}

// Sanitizers keep what was freed, to find uses of it; there, leaks are found when the tests end.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool counts_memory = false;
#else
constexpr bool counts_memory = true;
#endif

Tensor ramp(Shape shape, float step) {
  Tensor tensor(ElementType::float32, std::move(shape));
  float value = 0;
  for (float& element : tensor.mutable_data<float>()) element = value += step;
  return tensor;
}

// y = Relu(x [batch, k] * w [k, columns]), Concat with x
ModelBuilder product(int64_t k, int64_t columns) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("batch"), k});
  b.initializer("w", ramp({k, columns}, 1e-3f));
  b.node("MatMul", {"x", "w"}, {"product"});
  b.node("Relu", {"product"}, {"relu"});
  b.node("Concat", {"relu", "x"}, {"y"}).set_attribute(ir::Attribute("axis", int64_t{1}));
  b.output("y");
  return b;
}

TEST(Memory, ManyShapesReachAPlateau) {
  const Session session = product(16, 64).session();
  std::mt19937 random(3);
  int64_t after_some = 0;
  for (int run = 0; run < 10000; ++run) {
    session.run({{"x", ramp({1 + static_cast<int64_t>(random() % 512), 16}, 0.5f)}});
    if (run == 1000) after_some = resident_bytes();
  }
  // Never more than what a plan of the largest shape needs, for each plan that is kept.
  EXPECT_LE(session.memory().peak, 33 * 512 * (16 + 64 + 80) * 4);
  if (counts_memory) {
    EXPECT_LE(resident_bytes() - after_some, 4 << 20);
  }
}

TEST(Memory, LoadingAndUnloadingLeavesNothing) {
  const std::string bytes = product(64, 256).bytes();
  int64_t after_some = 0;
  for (int i = 0; i < 1000; ++i) {
    Session session = Session::from_bytes(std::as_bytes(std::span(bytes)));
    session.run({{"x", ramp({4, 64}, 0.5f)}});
    if (i == 100) after_some = resident_bytes();
  }
  if (counts_memory) {
    EXPECT_LE(resident_bytes() - after_some, 2 << 20);
  }
}

TEST(Memory, PackedConstantsAreKeptOnce) {
  const int64_t k = 512, columns = 600, bytes = k * columns * 4;
  const Session session = product(k, columns).session();
  EXPECT_GE(session.memory().weights, bytes);
  EXPECT_LE(session.memory().weights, bytes + bytes / 10);
}

TEST(Memory, NodesShareWhatTheyMakeOfAConstant) {
  ModelBuilder b = product(512, 512);
  b.node("MatMul", {"x", "w"}, {"again"});
  b.node("MatMul", {"again", "w"}, {"z"});
  b.output("z");
  const Session session = b.session();
  EXPECT_LE(session.memory().weights, 512 * 512 * 4 * 11 / 10);
  NamedValues outputs = session.run({{"x", ramp({1, 512}, 1e-3f)}});
  EXPECT_GT(outputs["z"].tensor().data<float>()[511], 0);
}

TEST(Memory, AConstantThatIsAnOutputStays) {
  ModelBuilder b = product(16, 8);
  b.output("w");
  const Session session = b.session();
  NamedValues outputs = session.run({{"x", ramp({1, 16}, 1)}});
  EXPECT_FLOAT_EQ(outputs["w"].tensor().data<float>()[1], 2e-3f);
}

}  // namespace
}  // namespace tenon
