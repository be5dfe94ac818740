#include <algorithm>
#include <cstring>

#include "ops/cpu_support/strided_copy.h"
#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class ConstantOfShape final : public Kernel {
 public:
  explicit ConstantOfShape(const NodeInfo& info) {
    const Tensor* value = info.node().tensor_attribute("value");
    value_ = value ? *value : Tensor::scalar(0.0f);
  }
  void run(KernelRun& run) const override {
    std::vector<int64_t> sizes = run.ints(0);
    for (int64_t size : sizes) {
      if (size < 0) fail(ErrorCode::invalid_value, "the shape has size {}", size);
    }
    fill(run.threads(), value_, run.output(0, value_.type(), Shape(std::span<const int64_t>(sizes))));
  }

 private:
  Tensor value_;
};

class EyeLike final : public Kernel {
 public:
  explicit EyeLike(const NodeInfo& info) : diagonal_(info.node().int_attribute("k", 0)) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    std::memset(y.mutable_raw(), 0, static_cast<size_t>(y.bytes()));
    int64_t rows = y.dim(0), columns = y.dim(1);
    if (diagonal_ >= columns || diagonal_ <= -rows) return;
    int64_t first = std::max<int64_t>(0, -diagonal_), end = std::min(rows, columns - diagonal_);
    dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             bool>(y.type(), [&]<typename T>() {
      auto out = y.mutable_data<T>();
      for (int64_t row = first; row < end; ++row) out[static_cast<size_t>(row * columns + row + diagonal_)] = T(1.0f);
    });
  }

 private:
  int64_t diagonal_;
};

}  // namespace

void cpu_constant_of_shape(CpuKernels& list) {
  list.add("ConstantOfShape", [](const NodeInfo& info) { return std::make_unique<ConstantOfShape>(info); });
  list.add("EyeLike", [](const NodeInfo& info) { return std::make_unique<EyeLike>(info); });
}

}  // namespace tenon::ops
