#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "base/fail.h"
#include "kernels/quantize/codes.h"
#include "kernels/quantize/requantize.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/operator.h"
#include "ops/qlinear/cpu_nhwc.h"
#include "ops/qlinear/cpu_parameters.h"
#include "ops/qlinear/cpu_products.h"
#include "ops/qlinear/cpu_softmax.h"

namespace tenon::ops {
namespace {

enum class Arithmetic { add, multiply };

template <Arithmetic arithmetic, typename T>
void compute(KernelRun& run) {
  const Tensor &a = run.input(0), &b = run.input(3);
  Tensor& y = run.output(0);
  const float a_scale = scale_of(run, 1), b_scale = scale_of(run, 4), scale = scale_of(run, 6);
  constexpr bool adds = arithmetic == Arithmetic::add;
  const kernels::CodeArithmetic by{zero_of<T>(run, 2), zero_of<T>(run, 5), zero_of<T>(run, 7),
                                   adds ? a_scale / scale : a_scale * b_scale / scale, b_scale / scale};
  const T *left = a.data<T>().data(), *right = b.data<T>().data();
  T* to = y.mutable_data<T>().data();
  const auto run_row = [&](kernels::Codes<T> first, kernels::Codes<T> second, T* out, int64_t n) {
    if constexpr (adds)
      kernels::add_codes(by, first, second, out, n);
    else
      kernels::multiply_codes(by, first, second, out, n);
  };
  if (a.elements() == y.elements() && b.elements() == y.elements()) {
    run.threads().parallel_for(y.elements(), cheap_grain, [&](int64_t begin, int64_t end) {
      run_row({left + begin, 1}, {right + begin, 1}, to + begin, end - begin);
    });
    return;
  }
  const Broadcast& broadcast = run.per_plan<Broadcast>([&] { return Broadcast(y.shape(), {&a.shape(), &b.shape()}); });
  broadcast.run(run.threads(), cheap_grain, [&](const BroadcastTile& tile) {
    for (int64_t row = 0; row < tile.rows; ++row)
      run_row({left + tile.first[0] + row * tile.row_stride[0], tile.column_stride[0]},
              {right + tile.first[1] + row * tile.row_stride[1], tile.column_stride[1]},
              to + tile.output + row * tile.columns, tile.columns);
  });
}

template <Arithmetic arithmetic>
void compute_any(KernelRun& run) {
  if (run.output(0).elements() == 0) return;
  dispatch<int8_t, uint8_t>(run.input(0).type(), [&]<typename T>() { compute<arithmetic, T>(run); });
}

void look_up(KernelRun& run) {
  const Tensor& x = run.input(0);
  if (run.input(1).elements() != 256)
    fail(ErrorCode::shape_mismatch, "the table has {} entries; it must have 256", run.input(1).elements());
  const auto *table = static_cast<const uint8_t*>(run.input(1).raw()), *from = static_cast<const uint8_t*>(x.raw());
  auto* to = static_cast<uint8_t*>(run.output(0).mutable_raw());
  run.threads().parallel_for(x.elements(), cheap_grain, [&](int64_t begin, int64_t end) {
    kernels::look_up_codes(table, from + begin, to + begin, end - begin);
  });
}

// The mean of each channel of each image.
class GlobalAveragePool final : public Kernel {
 public:
  explicit GlobalAveragePool(const NodeInfo& info)
      : channels_last_(info.node().int_attribute("channels_last", 0) != 0) {}
  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    dispatch<int8_t, uint8_t>(run.input(0).type(), [&]<typename T>() { compute<T>(run); });
  }

 private:
  template <typename T>
  void compute(KernelRun& run) const {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    const int64_t images = x.dim(0), channels = y.elements() / images, pixels = x.elements() / y.elements();
    const T* from = x.data<T>().data();
    const auto total = static_cast<float>(pixels);
    const float scale = scale_of(run, 1) / (scale_of(run, 3) * total);
    const int32_t less = -zero_of<T>(run, 2) * static_cast<int32_t>(pixels);
    const auto zero = static_cast<T>(zero_of<T>(run, 4));
    T* to = y.mutable_data<T>().data();
    run.threads().parallel_for(images, 1 + cheap_grain / (channels * pixels + 1), [&](int64_t begin, int64_t end) {
      std::vector<int32_t> sums(static_cast<size_t>(channels));
      for (int64_t image = begin; image < end; ++image) {
        std::ranges::fill(sums, 0);
        const T* at = from + image * channels * pixels;
        if (channels_last_) {
          kernels::sum_codes(at, pixels, channels, sums.data());
        } else {
          for (int32_t& sum : sums) {
            sum = std::accumulate(at, at + pixels, int32_t{0});
            at += pixels;
          }
        }
        kernels::requantize(sums.data(), less, {&scale, 0}, zero, to + image * channels, channels);
      }
    });
  }

  bool channels_last_;
};

}  // namespace

void cpu_qlinear(CpuKernels& list) {
  list.add_simple("QLinearAdd", compute_any<Arithmetic::add>, microsoft);
  list.add_simple("QLinearMul", compute_any<Arithmetic::multiply>, microsoft);
  list.add_simple("LookUp", look_up, tenon_domain);
  list.add(
      "QLinearGlobalAveragePool", [](const NodeInfo& info) { return std::make_unique<GlobalAveragePool>(info); },
      nullptr, microsoft);
  cpu_nhwc(list);
  cpu_products(list);
  cpu_softmax_of_codes(list);
}

}  // namespace tenon::ops
