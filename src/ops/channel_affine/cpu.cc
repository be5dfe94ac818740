#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "base/independent_loop.h"
#include "base/rounding.h"
#include "kernels/chain/chain.h"
#include "kernels/channel_affine/channel_affine.h"
#include "ops/cpu_support/fused_epilogue.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::affine_period;

// Elements that are done before the next thing is done with them, and that stay in the first cache.
constexpr int64_t at_once = 4096;
static_assert(at_once % affine_period == 0);

// For each plane, the numbers of its channels over and over; 0 for channels that are none.
struct RepeatedNumbers {
  PackedBuffer scale, shift;
  PackedBuffer by_channel;  // without blocks: all scales, then all shifts

  RepeatedNumbers(std::span<const float> scales, std::span<const float> shifts, int64_t block,
                  PackedStorage& storage = fresh_storage())
      : scale(repeated(scales, block, storage)), shift(repeated(shifts, block, storage)) {
    if (block != 1) return;
    by_channel = storage.get((scales.size() + shifts.size()) * sizeof(float), [&](void* memory) {
      std::ranges::copy(shifts, std::ranges::copy(scales, static_cast<float*>(memory)).out);
    });
  }
  size_t bytes() const { return scale.size() + shift.size() + by_channel.size(); }

 private:
  static PackedBuffer repeated(std::span<const float> numbers, int64_t block, PackedStorage& storage) {
    const int64_t channels = std::ssize(numbers), planes = divide_up(channels, block);
    return storage.get(static_cast<size_t>(planes * affine_period) * sizeof(float), [&](void* memory) {
      auto* to = static_cast<float*>(memory);
      for (int64_t i = 0; i < planes * affine_period; ++i) {
        const int64_t channel = i / affine_period * block + i % affine_period % block;
        to[i] = channel < channels ? numbers[static_cast<size_t>(channel)] : 0;
      }
    });
  }
};

class ChannelAffine final : public Kernel {
 public:
  explicit ChannelAffine(const NodeInfo& info) : block_(info.node().int_attribute("block", 1)), epilogue_(info.node()) {
    const Tensor *scale = info.constant(1), *shift = info.constant(2);
    if (!scale || !shift) return;
    packed_ = info.packed<RepeatedNumbers>(
        {1, 2}, fmt::format("channels in blocks of {}", block_), [&](PackedStorage& storage) {
          return RepeatedNumbers(scale->data<float>(), shift->data<float>(), block_, storage);
        });
  }

  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    if (packed_) return scale_planes(run, *packed_);
    scale_planes(run, RepeatedNumbers(run.data<float>(1), run.data<float>(2), block_));
  }

  bool may_overwrite(size_t input) const override { return input == 0; }

 private:
  void scale_planes(KernelRun& run, const RepeatedNumbers& numbers) const {
    const Tensor& x = run.input(0);
    const int64_t planes = x.dim(1), size = x.shape().elements(2, x.rank());
    if (size == 1 && block_ == 1) return scale_rows(run, numbers);
    const float* from = x.data<float>().data();
    float* to = run.output(0).mutable_data<float>().data();
    const float *scale = numbers.scale.as<float>(), *shift = numbers.shift.as<float>();
    const kernels::AffinePlanes all{from, scale, shift, epilogue_.lo, epilogue_.hi, to, size, planes};
    run.threads().parallel_for(x.dim(0) * planes, 1 + (16 << 10) / size, [&](int64_t begin, int64_t end) {
      if (!epilogue_.function) return kernels::f32_affine_planes(all, begin, end);
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t own = plane % planes * affine_period;
        scale_plane(from + plane * size, scale + own, shift + own, to + plane * size, size);
      }
    });
  }

  // Planes of one element each: a row of them per image.
  void scale_rows(KernelRun& run, const RepeatedNumbers& numbers) const {
    const int64_t channels = run.input(0).dim(1);
    const float* from = run.data<float>(0).data();
    float* to = run.output(0).mutable_data<float>().data();
    const float lo = epilogue_.lo, hi = epilogue_.hi;
    const bool clamps = lo > -std::numeric_limits<float>::infinity() || hi < std::numeric_limits<float>::infinity();
    run.threads().parallel_for(run.input(0).dim(0), 1 + (16 << 10) / channels, [&](int64_t begin, int64_t end) {
      const float *scale = numbers.by_channel.as<float>(), *shift = scale + channels;
      for (int64_t row = begin; row < end; ++row) {
        const float* x = from + row * channels;
        float* y = to + row * channels;
        TENON_INDEPENDENT_LOOP
        for (int64_t c = 0; c < channels; ++c) y[c] = x[c] * scale[c] + shift[c];
        if (clamps) {
          const kernels::ChainStep step{kernels::ChainOperation::clip, nullptr, 0, lo, hi};
          kernels::f32_chain(y, {&step, 1}, y, channels);
        }
        if (epilogue_.function) epilogue_.function(y, y, channels);
      }
    });
  }

  // With an activation after it, a part at a time that stays in the first cache.
  void scale_plane(const float* x, const float* scale, const float* shift, float* y, int64_t size) const {
    for (int64_t i = 0; i < size; i += at_once) {
      const int64_t count = std::min(at_once, size - i);
      kernels::f32_affine(x + i, scale, shift, epilogue_.lo, epilogue_.hi, y + i, count);
      epilogue_.function(y + i, y + i, count);
    }
  }

  int64_t block_;
  FusedEpilogue epilogue_;
  std::shared_ptr<const RepeatedNumbers> packed_;
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
