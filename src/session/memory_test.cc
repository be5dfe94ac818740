#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "model_builder.h"
#include "random_floats.h"

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

SessionOptions with(MemoryUse memory, OptimizationLevel level = OptimizationLevel::all) {
  SessionOptions options;
  options.memory = memory;
  options.level = level;
  return options;
}

// Both results; float sums may be in another order where a weight is not packed.
void expect_close(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  for (size_t i = 0; i < static_cast<size_t>(expected.elements()); ++i)
    ASSERT_NEAR(actual.data<float>()[i], expected.data<float>()[i], 1e-5f) << i;
}

// Rows of a table, and how much each of its rows is like x: the two ends of a language model.
ModelBuilder tied_embeddings(int64_t words, int64_t width) {
  ModelBuilder b;
  b.input("ids", ElementType::int64, SymbolicShape{Dim::symbol("n")});
  b.initializer("table", Tensor(Shape{words, width}, std::span<const float>(random_floats(words * width, 1))));
  b.node("Gather", {"table", "ids"}, {"rows"});
  b.node("Tanh", {"rows"}, {"x"});
  b.node("Transpose", {"table"}, {"turned"});
  b.node("MatMul", {"x", "turned"}, {"y"});
  b.output("y");
  return b;
}

TEST(LowMemory, NoWeightsAreHeldTwice) {
  const int64_t words = 3000, width = 96, bytes = words * width * 4;
  const ModelBuilder b = tied_embeddings(words, width);
  const NamedValues inputs = {{"ids", Tensor({3}, {int64_t{7}, int64_t{0}, int64_t{2999}})}};
  for (OptimizationLevel level : {OptimizationLevel::basic, OptimizationLevel::all}) {
    const Session normal = b.session(with(MemoryUse::normal, level)), low = b.session(with(MemoryUse::low, level));
    EXPECT_GE(normal.memory().weights, 2 * bytes);
    EXPECT_LE(low.memory().weights, bytes);
    expect_close(low.run(inputs).at("y").tensor(), normal.run(inputs).at("y").tensor());
  }
}

TEST(LowMemory, WeightsArePackedWhereAllReadersTakeThemSo) {
  struct Case {
    const char* what;
    std::function<void(ModelBuilder&)> add;
    int64_t most_normal, most_low;  // in percent of the weights
    int64_t least_normal = 0;
  };
  const Case cases[] = {
      {"one reader",
       [](ModelBuilder& b) {
         b.node("MatMul", {"x", "w"}, {"y"});
       },
       110, 110},
      {"two of one kind",
       [](ModelBuilder& b) {
         b.node("MatMul", {"x", "w"}, {"p"});
         b.node("MatMul", {"p", "w"}, {"y"});
       },
       110, 110},
      {"two that pack it in different ways",
       [](ModelBuilder& b) {
         b.node("MatMul", {"x", "w"}, {"p"});
         b.node("Gemm", {"p", "w"}, {"y"}).set_attribute(ir::Attribute("transB", int64_t{1}));
       },
       220, 100, 200},
      {"one that packs it, one that does not",
       [](ModelBuilder& b) {
         b.node("MatMul", {"x", "w"}, {"p"});
         b.node("Add", {"p", "w"}, {"y"});
       },
       220, 100, 200},
      {"a reader and the caller",
       [](ModelBuilder& b) {
         b.node("MatMul", {"x", "w"}, {"y"});
         b.output("w");
       },
       220, 100, 200},
  };
  for (const Case& c : cases) {
    ModelBuilder b;
    b.input("x", ElementType::float32, SymbolicShape{512, 512});
    b.initializer("w", Tensor(Shape{512, 512}, std::span<const float>(random_floats(512 * 512, 1))));
    c.add(b);
    b.output("y");
    const Session normal = b.session(with(MemoryUse::normal)), low = b.session(with(MemoryUse::low));
    const int64_t bytes = 512 * 512 * 4;
    EXPECT_LE(normal.memory().weights, bytes * c.most_normal / 100) << c.what;
    EXPECT_GE(normal.memory().weights, bytes * c.least_normal / 100) << c.what;
    EXPECT_LE(low.memory().weights, bytes * c.most_low / 100) << c.what;
    const NamedValues inputs = {{"x", ramp({512, 512}, 1e-8f)}};
    expect_close(low.run(inputs).at("y").tensor(), normal.run(inputs).at("y").tensor());
  }
}

// Two layers with recurrent weights in common: what is packed of both W and R is not shared, so neither is packed.
TEST(LowMemory, WhatIsMadeOfSeveralConstantsNeedsAllOfThem) {
  const int64_t hidden = 48;
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n"), 1, hidden});
  b.initializer("r",
                Tensor(Shape{1, 3 * hidden, hidden}, std::span<const float>(random_floats(3 * hidden * hidden, 1))));
  for (const std::string name : {"1", "2"}) {
    b.initializer("w" + name, Tensor(Shape{1, 3 * hidden, hidden},
                                     std::span<const float>(random_floats(3 * hidden * hidden, name == "1" ? 2 : 3))));
    b.node("GRU", {"x", "w" + name, "r"}, {"y" + name}).set_attribute(ir::Attribute("hidden_size", hidden));
    b.output("y" + name);
  }
  const int64_t bytes = 3 * 3 * hidden * hidden * 4;
  const Session normal = b.session(with(MemoryUse::normal)), low = b.session(with(MemoryUse::low));
  EXPECT_GT(normal.memory().weights, bytes);
  EXPECT_LE(low.memory().weights, bytes);
  const NamedValues inputs = {{"x", ramp({5, 1, hidden}, 1e-3f)}};
  for (const char* name : {"y1", "y2"})
    expect_close(low.run(inputs).at(name).tensor(), normal.run(inputs).at(name).tensor());
}

// What Winograd's algorithm multiplies by is larger than a convolution's weights, by at most 1.2 times all weights.
TEST(LowMemory, WeightsDoNotGrow) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{1, 64, 28, 28});
  int64_t bytes = 0;
  for (const char* name : {"a", "b", "c"}) {
    const Shape shape{64, 64, 3, 3};
    b.initializer(std::string("w_") + name, Tensor(shape, std::span<const float>(random_floats(shape.elements(), 1))));
    b.node("Conv",
           {name == std::string("a") ? "x" : std::string(1, static_cast<char>(name[0] - 1)), std::string("w_") + name},
           {name})
        .set_attribute(ir::Attribute("pads", std::vector<int64_t>(4, 1)));
    bytes += shape.elements() * 4;
  }
  b.output("c");
  const int64_t normal = b.session(with(MemoryUse::normal)).memory().weights;
  EXPECT_GT(normal, bytes * 3 / 2);
  EXPECT_LE(normal, bytes + bytes * 12 / 10);
  EXPECT_EQ(b.session(with(MemoryUse::low)).memory().weights, bytes);
}

TEST(LowMemory, NothingIsHeldBetweenRuns) {
  const Session normal = product(16, 64).session(with(MemoryUse::normal)),
                low = product(16, 64).session(with(MemoryUse::low));
  for (int64_t rows : {100, 100, 200, 100}) {
    const NamedValues inputs = {{"x", ramp({rows, 16}, 0.5f)}};
    NamedValues expected = normal.run(inputs), outputs = low.run(inputs);
    EXPECT_TRUE(identical(outputs["y"].tensor(), expected["y"].tensor()));
    EXPECT_GE(low.memory().in_use, rows * 80 * 4) << "the output is still held";
    outputs.clear();
    expected.clear();
    EXPECT_EQ(low.memory().in_use, 0);
    EXPECT_EQ(low.memory().cached, 0);
    EXPECT_GT(low.memory().peak, 100 * 80 * 4);
    EXPECT_GT(normal.memory().in_use + normal.memory().cached, 0);
  }
  // Nor when a run fails.
  RunOptions options;
  options.destinations = {{"y", Tensor(ElementType::float32, {1})}};
  EXPECT_NE(error_of([&] { low.run({{"x", ramp({100, 16}, 0.5f)}}, options); }), "");
  EXPECT_EQ(low.memory().in_use + low.memory().cached, 0);
}

TEST(LowMemory, RunsSideBySide) {
  const Session session = product(64, 64).session(with(MemoryUse::low));
  const Tensor expected = session.run({{"x", ramp({50, 64}, 1e-3f)}}).at("y").tensor();
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> users;
    for (int i = 0; i < 4; ++i) {
      users.emplace_back([&] {
        for (int run = 0; run < 50; ++run)
          right += identical(session.run({{"x", ramp({50, 64}, 1e-3f)}}).at("y").tensor(), expected);
      });
    }
  }
  EXPECT_EQ(right, 200);
  EXPECT_EQ(session.memory().cached, 0);
}

}  // namespace
}  // namespace tenon
