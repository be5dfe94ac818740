#include <cstring>

#include "base/fail.h"
#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

class ConstantOfShape final : public Kernel {
 public:
  explicit ConstantOfShape(const NodeInfo& info) {
    const Tensor* value = info.node().tensor_attribute("value");
    value_ = value ? *value : Tensor::scalar(0.0f);
  }

  void run(KernelRun& run) const override {
    const std::vector<int64_t> sizes = run.ints(0);
    for (int64_t size : sizes) {
      if (size < 0) fail(ErrorCode::invalid_value, "the shape has size {}", size);
    }
    Tensor& y = run.output(0, value_.type(), Shape(std::span<const int64_t>(sizes)));
    if (y.elements() == 0) return;
    const auto* bytes = static_cast<const unsigned char*>(value_.raw());
    bool is_one_byte = true;
    for (int64_t i = 1; i < value_.bytes(); ++i) is_one_byte &= bytes[i] == bytes[0];
    if (is_one_byte) return queue_of(run).fill(y.mutable_raw(), bytes[0], y.bytes());
    const auto& loop = run.per_plan<CudaLoop>([&] {
      int64_t bits[2] = {};
      std::memcpy(bits, bytes, static_cast<size_t>(value_.bytes()));
      const bool is_wide = value_.bytes() == 16;
      // 16 bytes are two numbers; the value is repeated in them otherwise.
      const std::string_view type = is_wide ? "u64" : moved_type_text(y.type());
      return CudaLoop(run, is_wide ? 2 * y.elements() : y.elements(), fmt::format("{}* y", type),
                      fmt::format("y[i] = ({})v[{}];", type, is_wide ? "i % 2" : "0"), {bits[0], bits[1]});
    });
    loop.run(run, {y.raw()});
  }

 private:
  Tensor value_;
};

void run_eye_like(KernelRun& run) {
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] {
    return CudaLoop(run, y.elements(), pointer_to(y) + "y",
                    fmt::format("y[i] = narrow<{}>(i % v[0] - i / v[0] == v[1] ? 1 : 0);", cuda::type_text(y.type())),
                    {y.dim(1), run.node().int_attribute("k", 0)});
  });
  loop.run(run, {y.raw()});
}

}  // namespace

void cuda_constant_of_shape(CudaKernels& list) {
  list.add("ConstantOfShape", [](const NodeInfo& info) { return std::make_unique<ConstantOfShape>(info); },
           {.types = cuda_movable, .host_inputs = {0}});
  list.add_simple("EyeLike", run_eye_like, {.types = types::numbers | types::bools});
}

}  // namespace tenon::ops
