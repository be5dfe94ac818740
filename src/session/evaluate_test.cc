#include "session/evaluate.h"

#include <gtest/gtest.h>

#include "model_builder.h"
#include "providers/cpu/cpu_provider.h"

namespace tenon {
namespace {

TEST(Evaluate, AViewOfAConstantKeepsItsMemory) {
  Value result;
  {
    ModelBuilder b;
    b.initializer("x", Tensor({4}, {1.0f, 2.0f, 3.0f, 4.0f}));
    b.initializer("shape", Tensor({2}, {int64_t{2}, int64_t{2}}));
    ir::Node& node = b.node("Reshape", {"x", "shape"}, {"y"});
    const CpuProvider cpu;
    const Provider* providers[] = {&cpu};
    ThreadPool threads(1);
    result = evaluate(node, providers, threads, system_allocator())[0];
  }
  EXPECT_TRUE(result.tensor().owner());
  EXPECT_EQ(result.tensor().shape(), (Shape{2, 2}));
  EXPECT_EQ(result.tensor().data<float>()[3], 4.0f);
}

}  // namespace
}  // namespace tenon
