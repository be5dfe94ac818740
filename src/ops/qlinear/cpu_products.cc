#include "ops/qlinear/cpu_products.h"

#include "base/fail.h"
#include "kernels/quantize/requantize.h"
#include "ops/cpu_support/byte_product.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

// Y = A * B with its scales, plus the bias: sums become floats while they are in the cache.
class MatMulIntegerToFloat final : public Kernel {
 public:
  explicit MatMulIntegerToFloat(const NodeInfo& info) : product_(info, 1, 5) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const MatrixBatch batch(run.input(0).shape(), run.input(1).shape());
    const std::vector<float> scales = scales_of(run, batch);
    const bool by_matrix = std::ssize(scales) > batch.n;
    const float* bias = bias_of(run, batch);
    float* to = y.mutable_data<float>().data();
    product_.multiply(
        run, batch, LineParameters::of_rows(run, 4, batch, "a_zero_point"),
        LineParameters::of_columns(run, 5, 1, batch, "b_zero_point"), nullptr, [&](const kernels::SumsBlock& block) {
          const int64_t matrix = by_matrix ? batch.at(block.row / batch.m).second : 0;
          kernels::scale_rows({block.sums, block.ld, block.rows, block.columns},
                              {scales.data() + matrix * batch.n + block.column, 1},
                              bias ? bias + block.column : nullptr, to + block.row * batch.n + block.column, batch.n);
        });
  }

 private:
  // Those of A and B, for each column of B, be it of each matrix.
  static std::vector<float> scales_of(KernelRun& run, const MatrixBatch& batch) {
    if (run.input(2).elements() != 1)
      fail(ErrorCode::shape_mismatch, "a_scale has {} elements; it must have 1", run.input(2).elements());
    const float a_scale = run.data<float>(2)[0];
    const LineParameters b_scale = LineParameters::of_columns(run, 3, 1, batch, "b_scale");
    std::vector<float> scales = b_scale.values;
    if (scales.size() == 1) scales.assign(static_cast<size_t>(batch.n), scales[0]);
    for (float& scale : scales) scale *= a_scale;
    return scales;
  }

  static const float* bias_of(KernelRun& run, const MatrixBatch& batch) {
    if (!run.has_input(6)) return nullptr;
    if (run.input(6).elements() != batch.n)
      fail(ErrorCode::shape_mismatch, "bias has {} elements; it must have {}", run.input(6).elements(), batch.n);
    return run.data<float>(6).data();
  }

  ByteProduct product_;
};

std::string decline_half(const ir::Node& node) {
  return node.output(0)->type.element == ElementType::float32 ? "" : "scales are not float32";
}

}  // namespace

void cpu_products(CpuKernels& list) {
  list.add(
      "MatMulIntegerToFloat", [](const NodeInfo& info) { return std::make_unique<MatMulIntegerToFloat>(info); },
      decline_half, microsoft);
}

}  // namespace tenon::ops
