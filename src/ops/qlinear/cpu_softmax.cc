#include "ops/qlinear/cpu_softmax.h"
#include "kernels/quantize/softmax_codes.h"
#include "kernels/scratch.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/operator.h"
#include "ops/qlinear/cpu_parameters.h"

namespace tenon::ops {
namespace {

template <typename T>
void compute(KernelRun& run) {
  const Tensor& x = run.input(0);
  const T* from = x.data<T>().data();
  T* to = run.output(0).mutable_data<T>().data();
  const int64_t n = x.dim(x.rank() - 1);
  const kernels::SoftmaxOfCodes softmax(scale_of(run, 1));
  const float y_scale = scale_of(run, 3);
  const auto zero = static_cast<T>(zero_of<T>(run, 4));
  run.threads().parallel_for(x.elements() / n, 1 + cheap_grain / n, [&](int64_t begin, int64_t end) {
    const kernels::Scratch numbers(static_cast<size_t>(n) * sizeof(float));
    for (int64_t row = begin; row < end; ++row)
      softmax.row(from + row * n, n, y_scale, zero, to + row * n, numbers.as<float>());
  });
}

void softmax(KernelRun& run) {
  if (run.output(0).elements() == 0) return;
  dispatch<int8_t, uint8_t>(run.input(0).type(), [&]<typename T>() { compute<T>(run); });
}

class QLinearSoftmax final : public Kernel {
 public:
  void run(KernelRun& run) const override { softmax(run); }
};

std::string decline(const ir::Node& node) {
  const int64_t axis = node.int_attribute("axis", -1);
  const auto& shape = node.input(0)->type.shape;
  return axis == -1 || (shape && axis == std::ssize(*shape) - 1) ? "" : "the axis is not the last";
}

}  // namespace

void cpu_softmax_of_codes(CpuKernels& list) {
  list.add(
      "QLinearSoftmax", [](const NodeInfo&) { return std::make_unique<QLinearSoftmax>(); }, decline, microsoft);
}

}  // namespace tenon::ops
