#include <optional>

#include "cuda/gemm.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/loop.h"
#include "ops/cuda_support/strided_copy.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

// What every tap of the kernel reads, for every output: [channels, taps, points] of one image. A thread has a tap and a
// point for all channels that are read at the same position.
constexpr std::string_view columns_text = R"cuda(
    const i64 points = v[0] * v[1], p = i % points, tap = i / points % v[2], group = i / points / v[2];
    const i64 height = v[3], width = v[4], first = group * v[2] + tap;
    const A top_left_y = (A)(p / v[1] * v[5] - v[7] + tap / v[11] * v[9]), top_left_x = (A)(p % v[1] * v[6] - v[8] + tap % v[11] * v[10]);
    const A at_y = top_left_y + widen(offset[2 * first * points + p]);
    const A at_x = top_left_x + widen(offset[(2 * first + 1) * points + p]);
    const A factor = HAS_MASK ? (A)widen(mask[first * points + p]) : (A)1;
    i64 at[4];
    A weight[4];
    const bool inside = at_y > -1 && at_y < (A)height && at_x > -1 && at_x < (A)width;
    const A top = inside ? floor(at_y) : (A)0, left = inside ? floor(at_x) : (A)0, dy = at_y - top, dx = at_x - left;
    for (int k = 0; k < 4; ++k) {
      const i64 row = (i64)top + k / 2, column = (i64)left + k % 2;
      const bool is_read = inside && row >= 0 && row < height && column >= 0 && column < width;
      at[k] = is_read ? row * width + column : -1;
      weight[k] = is_read ? factor * (k / 2 ? dy : 1 - dy) * (k % 2 ? dx : 1 - dx) : (A)0;
    }
    for (i64 c = group * v[12]; c < (group + 1) * v[12]; ++c) {
      const T* image = x + c * height * width;
      A sum = 0;
      for (int k = 0; k < 4; ++k)
        if (at[k] >= 0) sum += weight[k] * widen(image[at[k]]);
      columns[(c * v[2] + tap) * points + p] = narrow<T>(sum);
    }
)cuda";

class DeformConv final : public Kernel {
 public:
  explicit DeformConv(const NodeInfo& info)
      : window_(info.node()),
        groups_(info.node().int_attribute("group", 1)),
        offset_groups_(info.node().int_attribute("offset_group", 1)) {}

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &offset = run.input(2);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, x, run.input(1), y); });
    if (!plan.gemm) queue_of(run).fill(y.mutable_raw(), 0, y.bytes());
    for (int64_t n = 0; plan.gemm && n < x.dim(0); ++n) {
      auto image_of = [&](const Tensor& tensor) { return address_at(tensor, n * (tensor.elements() / x.dim(0))); };
      plan.columns->run(
          run, {image_of(x), image_of(offset), run.has_input(4) ? image_of(run.input(4)) : nullptr, plan.memory.get()});
      plan.gemm->run(queue_of(run), run.input(1).raw(), plan.memory.get(),
                     address_at(y, n * (y.elements() / x.dim(0))));
    }
    if (plan.bias) plan.bias->run(run, {y.raw(), run.input(3).raw()});
  }

 private:
  struct Plan {
    std::shared_ptr<void> memory;
    std::optional<CudaLoop> columns, bias;
    std::optional<cuda::Gemm> gemm;  // without: there is nothing to add up
  };

  Plan prepare(KernelRun& run, const Tensor& x, const Tensor& w, const Tensor& y) const {
    Plan plan;
    const int64_t taps = w.dim(2) * w.dim(3), points = y.dim(2) * y.dim(3), channels = x.dim(1);
    if (w.elements() > 0 && x.elements() > 0) {
      const WindowAxis down = window_.axis(0, 2, w.dim(2)), across = window_.axis(1, 2, w.dim(3));
      plan.memory = queue_of(run).gpu().allocate(channels * taps * points * bits_of(x.type()) / 8);
      plan.columns.emplace(
          run, offset_groups_ * taps * points, "const T* x, const T* offset, const T* mask, T* columns", columns_text,
          std::vector<int64_t>{y.dim(2), y.dim(3), taps, x.dim(2), x.dim(3), down.stride, across.stride,
                               down.pads(x.dim(2), y.dim(2)).first, across.pads(x.dim(3), y.dim(3)).first,
                               down.dilation, across.dilation, w.dim(3), channels / offset_groups_},
          types_text(x.type()) + fmt::format("#define HAS_MASK {}\n", run.has_input(4) ? 1 : 0));
      cuda::GemmShape product;
      product.type = product.output = x.type();
      product.m = w.dim(0) / groups_;
      product.n = points;
      product.k = channels / groups_ * taps;
      product.a_row = product.k;
      product.b_row = product.y_row = points;
      product.batch = groups_;
      product.a_step = product.m * product.k;
      product.b_step = product.k * points;
      product.y_step = product.m * points;
      plan.gemm.emplace(queue_of(run), product);
    }
    if (run.has_input(3))
      plan.bias.emplace(run, y.elements(), "T* y, const T* bias",
                        "y[i] = narrow<T>(widen(y[i]) + widen(bias[i / v[0] % v[1]]));",
                        std::vector<int64_t>{points, y.dim(1)}, types_text(y.type()));
    return plan;
  }

  WindowAttributes window_;
  int64_t groups_, offset_groups_;
};

}  // namespace

void cuda_deform_conv(CudaKernels& list) {
  list.add("DeformConv", [](const NodeInfo& info) { return std::make_unique<DeformConv>(info); },
           {.types = types::floats});
}

}  // namespace tenon::ops
