// What the GPU takes for a node by itself, on the stand-in for NVIDIA's libraries (tests/cuda).
#include <gtest/gtest.h>

#include "cuda/gpu.h"
#include "model_builder.h"
#include "tenon/session.h"

namespace tenon {
namespace {

// Exp may be written over what it reads, which repeating it must not show; Unique runs on the CPU.
Session session() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{Dim(3)});
  b.node("Neg", {"x"}, {"a"});
  b.node("Exp", {"a"}, {"b"});
  b.node("Exp", {"b"}, {"c"});
  b.node("Unique", {"c"}, {"y"});
  b.output("y");
  SessionOptions options;
  options.providers = {"cuda", "cpu"};
  options.level = OptimizationLevel::none;
  return b.session(options);
}

TEST(DeviceTimes, AreMeasuredWithoutChangingTheRun) {
  const Session measured = session();
  const Tensor x(Shape{3}, {0.5f, 1.0f, 2.0f});
  const Tensor expected = measured.run({{"x", x}}).at("y").tensor();
  const auto gpu = cuda::Gpu::open();
  std::vector<StepProfile> steps;
  RunOptions options;
  options.profile = &steps;
  options.device_repeats = 7;
  const int64_t replays = gpu->counts().replays;
  const Tensor y = measured.run({{"x", x}}, options).at("y").tensor();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(y.data<float>()[i], expected.data<float>()[i]) << i;
  int timed = 0;
  for (const StepProfile& step : steps) {
    EXPECT_EQ(step.device_ns > 0, step.provider == "cuda") << step.node;
    timed += step.device_ns > 0 ? 1 : 0;
  }
  EXPECT_EQ(timed, 3);
  EXPECT_GE(gpu->counts().replays, replays + 2 * timed) << "all repetitions are given in one go";
}

}  // namespace
}  // namespace tenon
