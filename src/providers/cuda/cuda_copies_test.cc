// Copies between host and GPU, on the stand-in for NVIDIA's libraries (tests/cuda), which does its work at once or as
// late as it may.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <thread>

#include "cuda/gpu.h"
#include "model_builder.h"
#include "random_floats.h"
#include "tenon/device.h"
#include "tenon/session.h"

namespace tenon {
namespace {

// When the stand-in does its work.
class InOrder {
 public:
  explicit InOrder(const char* order) { setenv("TENON_EMULATED_ORDER", order, 1); }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;
  ~InOrder() { unsetenv("TENON_EMULATED_ORDER"); }
};
constexpr const char* orders[] = {"at once", "late", "late-kernels"};

Tensor random_tensor(Shape shape, unsigned seed) {
  Tensor tensor(ElementType::float32, shape);
  std::ranges::copy(random_floats(shape.elements(), seed), tensor.mutable_data<float>().begin());
  return tensor;
}

// Every node stays one, so that z is read in the middle.
Session on_cuda(const ModelBuilder& b) {
  SessionOptions options;
  options.providers = {"cuda", "cpu"};
  options.level = OptimizationLevel::none;
  return b.session(options);
}

// y = |z - relu(x)|, negative = z - relu(x).
ModelBuilder two_inputs() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.input("z", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.node("Relu", {"x"}, {"a"});
  b.node("Neg", {"a"}, {"b"});
  b.node("Add", {"b", "z"}, {"negative"});
  b.node("Abs", {"negative"}, {"y"});
  b.output("y").output("negative");
  return b;
}

void expect_right(const NamedValues& results, const Tensor& x, const Tensor& z) {
  const auto y = results.at("y").tensor().data<float>(), negative = results.at("negative").tensor().data<float>();
  for (size_t i = 0; i < y.size(); ++i) {
    const float sum = z.data<float>()[i] - std::max(x.data<float>()[i], 0.0f);
    if (y[i] == std::abs(sum) && negative[i] == sum) continue;
    FAIL() << "element " << i << " of " << y.size() << ": " << y[i] << ", " << negative[i] << ", expected " << sum;
  }
}

constexpr int64_t small = 100, large = 100'000, in_pieces = 1'000'000, more_than_the_ring = 10'000'000;

TEST(CudaCopies, AreInTimeWheneverTheGpuWorks) {
  for (const char* order : orders) {
    const InOrder in_order(order);
    const Session session = on_cuda(two_inputs());
    unsigned seed = 1;
    for (const int64_t n : {small, large, in_pieces, more_than_the_ring, large}) {
      for (int run = 0; run < (n == more_than_the_ring ? 2 : 4); ++run) {
        const Tensor x = random_tensor(Shape{n}, ++seed), z = random_tensor(Shape{n}, ++seed);
        SCOPED_TRACE(fmt::format("{}, {} elements, run {}", order, n, run));
        expect_right(session.run({{"x", x}, {"z", z}}), x, z);
      }
    }
  }
}

TEST(CudaCopies, CostNoAllocationAndNoWaitButOneForEachOutput) {
  for (const int64_t n : {small, large}) {
    const Session session = on_cuda(two_inputs());
    const Tensor x = random_tensor(Shape{n}, 1), z = random_tensor(Shape{n}, 2);
    const auto gpu = cuda::Gpu::open();
    for (int i = 0; i < 2; ++i) session.run({{"x", x}, {"z", z}});
    const cuda::CallCounts before = gpu->counts();
    for (int i = 0; i < 5; ++i) session.run({{"x", x}, {"z", z}});
    const cuda::CallCounts after = gpu->counts();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.compilations, before.compilations);
    EXPECT_EQ(after.launches, before.launches);
    EXPECT_EQ(after.replays, before.replays + 5);
    EXPECT_EQ(after.uploads, before.uploads + 10);
    EXPECT_EQ(after.downloads, before.downloads + 10);
    EXPECT_EQ(after.waits, before.waits + 10);
    EXPECT_EQ(after.beside, before.beside + (n == large ? 20 : 0)) << "small ones are not worth a stream";
  }
}

// Memory of the host that the GPU reaches, as other libraries give it.
Tensor pinned_tensor(const Tensor& content) {
  const auto gpu = cuda::Gpu::open();
  void* memory = nullptr;
  gpu->check(gpu->api().cuMemHostAlloc(&memory, static_cast<size_t>(content.bytes()), 0), "cuMemHostAlloc");
  std::shared_ptr<void> owner(memory, [gpu](void* block) { gpu->api().cuMemFreeHost(block); });
  Tensor tensor = Tensor::over(content.type(), content.shape(), memory, owner);
  std::ranges::copy(content.data<float>(), tensor.mutable_data<float>().begin());
  return tensor;
}

// How many blocks of memory a session's first run takes.
int64_t allocations(const Tensor& x, const Tensor& z, const RunOptions& options) {
  const Session session = on_cuda(two_inputs());
  const auto gpu = cuda::Gpu::open();
  const cuda::CallCounts before = gpu->counts();
  expect_right(session.run({{"x", x}, {"z", z}}, options), x, z);
  const int64_t taken = gpu->counts().allocations - before.allocations;
  for (int run = 0; run < 3; ++run) expect_right(session.run({{"x", x}, {"z", z}}, options), x, z);
  return taken;
}

TEST(CudaCopies, NeedNoOtherMemoryThanTheCallersIfThatIsPinned) {
  const Tensor x = random_tensor(Shape{in_pieces}, 1), z = random_tensor(Shape{in_pieces}, 2);
  for (const char* order : orders) {
    const InOrder in_order(order);
    RunOptions options;
    options.destinations = {{"y", pinned_tensor(x)}, {"negative", pinned_tensor(x)}};
    const int64_t without = allocations(pinned_tensor(x), pinned_tensor(z), options);
    EXPECT_EQ(allocations(x, z, {}), without + 4) << "for two inputs and two outputs";
  }
}

TEST(CudaCopies, DoWithoutPinnedMemoryWhereThereIsNone) {
  setenv("TENON_EMULATED_NO_PINNED", "1", 1);
  const Tensor x = random_tensor(Shape{in_pieces}, 1), z = random_tensor(Shape{in_pieces}, 2);
  for (const char* order : orders) {
    const InOrder in_order(order);
    const Session session = on_cuda(two_inputs());
    for (int run = 0; run < 3; ++run) expect_right(session.run({{"x", x}, {"z", z}}), x, z);
  }
  unsetenv("TENON_EMULATED_NO_PINNED");
}

TEST(CudaCopies, OfManyThreadsDoNotWaitForTheWrongOne) {
  const Session session = on_cuda(two_inputs());
  for (const char* order : orders) {
    const InOrder in_order(order);
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&session, thread] {
        for (unsigned run = 0; run < 20; ++run) {
          const Tensor x = random_tensor(Shape{large}, 100 * thread + run), z = random_tensor(Shape{large}, run);
          expect_right(session.run({{"x", x}, {"z", z}}), x, z);
        }
      });
    }
  }
}

// What the CPU makes in between goes up after the GPU's work has begun, and down again before it ends.
TEST(CudaCopies, InTheMiddleOfARunKeepTheOrder) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.input("z", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.node("Relu", {"x"}, {"a"});
  b.node("Unique", {"a"}, {"unique"});
  b.node("Neg", {"unique"}, {"b"});
  b.node("Unique", {"b"}, {"sorted"});
  b.node("Abs", {"sorted"}, {"y"});
  b.node("Add", {"a", "z"}, {"sum"});
  b.output("y").output("sum");
  const Session expected = b.session(), session = on_cuda(b);
  for (const char* order : orders) {
    const InOrder in_order(order);
    for (unsigned run = 0; run < 4; ++run) {
      const NamedValues inputs{{"x", random_tensor(Shape{large}, run)}, {"z", random_tensor(Shape{large}, run + 9)}};
      const NamedValues right = expected.run(inputs), actual = session.run(inputs);
      for (const char* name : {"y", "sum"}) {
        ASSERT_EQ(actual.at(name).tensor().shape(), right.at(name).tensor().shape());
        EXPECT_TRUE(std::ranges::equal(actual.at(name).tensor().data<float>(), right.at(name).tensor().data<float>()))
            << order << ", run " << run << ", " << name;
      }
    }
  }
}

// Collects the outputs of every step.
class Collecting final : public RunWatcher {
 public:
  void after(const WatchedStep& step) override {
    for (const WatchedStep::Operand& output : step.outputs) {
      const auto data = output.value->tensor().data<float>();
      values.emplace(output.name, std::vector<float>(data.begin(), data.end()));
    }
  }
  std::map<std::string, std::vector<float>, std::less<>> values;
};

TEST(CudaCopies, AreDoneWhenSomebodyLooks) {
  const Session session = on_cuda(two_inputs()), expected = two_inputs().session();
  for (const char* order : orders) {
    const InOrder in_order(order);
    for (unsigned run = 0; run < 3; ++run) {
      const NamedValues inputs{{"x", random_tensor(Shape{large}, run)}, {"z", random_tensor(Shape{large}, run + 9)}};
      session.run(inputs);
      Collecting watcher;
      RunOptions options;
      options.watcher = &watcher;
      session.run(inputs, options);
      for (const auto& [name, value] : expected.run(inputs))
        EXPECT_TRUE(std::ranges::equal(watcher.values.at(name), value.tensor().data<float>())) << order << ", " << name;
      int seen = 0;
      for (const auto& [name, value] : inputs) {
        for (const auto& [watched, numbers] : watcher.values) {
          if (!watched.starts_with(name + "_on_device")) continue;
          ++seen;
          EXPECT_TRUE(std::ranges::equal(numbers, value.tensor().data<float>())) << order << ", " << watched;
        }
      }
      EXPECT_EQ(seen, 2);
    }
  }
}

class Refusing final : public RunWatcher {
 public:
  void after(const WatchedStep& step) override {
    if (step.op_type == "Neg") throw Error(ErrorCode::cancelled, "enough");
  }
};

TEST(CudaCopies, GoOnAfterARunThatFailed) {
  const Session session = on_cuda(two_inputs());
  for (const char* order : orders) {
    const InOrder in_order(order);
    for (unsigned run = 0; run < 3; ++run) {
      const Tensor x = random_tensor(Shape{large}, run), z = random_tensor(Shape{large}, run + 9);
      Refusing watcher;
      RunOptions options;
      options.watcher = &watcher;
      EXPECT_THROW(session.run({{"x", x}, {"z", z}}, options), Error);
      expect_right(session.run({{"x", x}, {"z", z}}), x, z);
    }
  }
}

}  // namespace
}  // namespace tenon
