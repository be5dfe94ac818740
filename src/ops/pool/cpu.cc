#include <cmath>

#include "kernels/pool/pool.h"
#include "kernels/pool/window.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/pool_shape.h"
#include "ops/window.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::PoolShape;

class MaxPool final : public Kernel {
 public:
  explicit MaxPool(const NodeInfo& info)
      : window_(info.node()),
        order_(info.node().int_attribute("storage_order", 0) ? kernels::IndexOrder::column_major
                                                             : kernels::IndexOrder::row_major) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    int64_t* indices = run.wants_output(1) ? run.output(1).mutable_data<int64_t>().data() : nullptr;
    if (y.elements() == 0) return;
    PoolShape shape = pool_shape(window_, x.shape(), y.shape());
    if (x.type() == ElementType::int8 || x.type() == ElementType::uint8) {
      return dispatch<int8_t, uint8_t>(x.type(), [&]<typename T>() {
        pool(run.threads(), shape, x.data<T>().data(), y.mutable_data<T>().data(), indices);
      });
    }
    dispatch_compute(x.type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      pool(run.threads(), shape, arguments.in(0), arguments.out(0), indices);
      arguments.finish();
    });
  }

 private:
  template <typename T>
  void pool(ThreadPool& threads, const PoolShape& shape, const T* x, T* y, int64_t* indices) const {
    if (indices) return kernels::max_pool_with_indices(threads, shape, x, y, indices, order_);
    kernels::max_pool(threads, shape, x, y);
  }

  WindowAttributes window_;
  kernels::IndexOrder order_;
};

class AveragePool final : public Kernel {
 public:
  explicit AveragePool(const NodeInfo& info)
      : window_(info.node()), count_padding_(info.node().int_attribute("count_include_pad", 0) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    PoolShape shape = pool_shape(window_, x.shape(), y.shape());
    dispatch_compute(x.type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      kernels::average_pool(run.threads(), shape, arguments.in(0), arguments.out(0), count_padding_);
      arguments.finish();
    });
  }

 private:
  WindowAttributes window_;
  bool count_padding_;
};

// The root of the sum of powers of each window.
template <typename T>
void lp_pool(ThreadPool& pool, const PoolShape& s, const T* x, T* y, int64_t p) {
  kernels::each_output_row(pool, s, [&](int64_t plane, int64_t depth, int64_t height) {
    T* out = y + ((plane * s.output[0] + depth) * s.output[1] + height) * s.output[2];
    std::fill(out, out + s.output[2], T{});
    kernels::each_covered_row(s, x + plane * s.input_size(), depth, height, [&](const T* row, int64_t) {
      if (p == 1) return kernels::fold_row(s, row, out, [](T sum, T value) { return sum + std::fabs(value); });
      if (p == 2) return kernels::fold_row(s, row, out, [](T sum, T value) { return sum + value * value; });
      kernels::fold_row(s, row, out,
                        [p](T sum, T value) { return sum + std::pow(std::fabs(value), static_cast<T>(p)); });
    });
    if (p == 1) return;
    for (int64_t o = 0; o < s.output[2]; ++o)
      out[o] = p == 2 ? std::sqrt(out[o]) : std::pow(out[o], 1 / static_cast<T>(p));
  });
}

class LpPool final : public Kernel {
 public:
  explicit LpPool(const NodeInfo& info) : window_(info.node()), p_(info.node().int_attribute("p", 2)) {
    if (p_ < 1) fail(ErrorCode::invalid_attribute, "p is {}; it must be at least 1", p_);
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    PoolShape shape = pool_shape(window_, x.shape(), y.shape());
    dispatch_compute(x.type(), [&]<typename T>() {
      ComputeArguments<T> arguments(run);
      lp_pool(run.threads(), shape, arguments.in(0), arguments.out(0), p_);
      arguments.finish();
    });
  }

 private:
  WindowAttributes window_;
  int64_t p_;
};

}  // namespace

void cpu_pool(CpuKernels& list) {
  list.add("MaxPool", [](const NodeInfo& info) { return std::make_unique<MaxPool>(info); });
  list.add("AveragePool", [](const NodeInfo& info) { return std::make_unique<AveragePool>(info); });
  list.add("LpPool", [](const NodeInfo& info) { return std::make_unique<LpPool>(info); });
}

}  // namespace tenon::ops
