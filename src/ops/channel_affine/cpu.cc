#include <algorithm>
#include <vector>

#include "kernels/channel_affine/channel_affine.h"
#include "ops/cpu_support/fused_epilogue.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::affine_period;

// Elements that are done before the next thing is done with them, and that stay in the first cache.
constexpr int64_t at_once = 4096;
static_assert(at_once % affine_period == 0);

class ChannelAffine final : public Kernel {
 public:
  explicit ChannelAffine(const NodeInfo& info)
      : block_(info.node().int_attribute("block", 1)), epilogue_(info.node()) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const int64_t planes = x.dim(1), size = x.shape().elements(2, x.rank());
    const std::vector<float> scale = repeated(run.data<float>(1), planes), shift = repeated(run.data<float>(2), planes);
    const float* from = x.data<float>().data();
    float* to = y.mutable_data<float>().data();
    run.threads().parallel_for(x.dim(0) * planes, 1 + (16 << 10) / size, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const auto own = static_cast<size_t>(plane % planes * affine_period);
        scale_plane(from + plane * size, &scale[own], &shift[own], to + plane * size, size);
      }
    });
  }

  bool may_overwrite(size_t input) const override { return input == 0; }

 private:
  // For each plane, the numbers of its channels over and over; 0 for channels that are none.
  std::vector<float> repeated(std::span<const float> numbers, int64_t planes) const {
    std::vector<float> result(static_cast<size_t>(planes * affine_period));
    for (int64_t i = 0; i < planes * affine_period; ++i) {
      const auto channel = static_cast<size_t>(i / affine_period * block_ + i % affine_period % block_);
      if (channel < numbers.size()) result[static_cast<size_t>(i)] = numbers[channel];
    }
    return result;
  }

  void scale_plane(const float* x, const float* scale, const float* shift, float* y, int64_t size) const {
    const int64_t step = epilogue_.function ? at_once : size;
    for (int64_t i = 0; i < size; i += step) {
      const int64_t count = std::min(step, size - i);
      kernels::f32_affine(x + i, scale, shift, epilogue_.lo, epilogue_.hi, y + i, count);
      if (epilogue_.function) epilogue_.function(y + i, y + i, count);
    }
  }

  int64_t block_;
  FusedEpilogue epilogue_;
};

std::string decline(const ir::Node& node) {
  const int64_t block = node.int_attribute("block", 1);
  return block > 0 && affine_period % block == 0
             ? ""
             : fmt::format("channels are in blocks of {}; the kernel takes those that divide {}", block, affine_period);
}

}  // namespace

void cpu_channel_affine(CpuKernels& list) {
  list.add(
      "ChannelAffine", [](const NodeInfo& info) { return std::make_unique<ChannelAffine>(info); }, decline,
      tenon_domain);
}

}  // namespace tenon::ops
