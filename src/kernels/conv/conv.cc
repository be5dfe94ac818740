#include "kernels/conv/conv.h"

#include <algorithm>

#include "base/rounding.h"
#include "kernels/conv/depthwise.h"
#include "kernels/conv/direct.h"
#include "kernels/conv/image.h"
#include "kernels/conv/rows.h"
#include "kernels/gemm/driver.h"

namespace tenon::kernels {
namespace {

bool is_depthwise(const ConvShape& shape) {
  return shape.groups > 1 && shape.groups == shape.in_channels && shape.out_channels % shape.in_channels == 0;
}

// Whether images are multiplied where they are. Vectors of output channels are to be filled well.
bool suits_direct(const ConvBlockedKernels& kernels, const ConvShape& shape) {
  constexpr double least_filled = 0.75;
  const int64_t channels = shape.out_channels / shape.groups;
  const int64_t products = shape.in_channels / shape.groups * shape.kernel_size();
  return kernels.least_plain_depth > 0 && shape.kernel_size() > 1 && products >= kernels.least_plain_depth * channels &&
         static_cast<double>(channels) >= least_filled * static_cast<double>(round_up(channels, kernels.block));
}

// The patch matrix is the image itself.
bool is_pointwise(const ConvShape& shape, const ImageLayout& layout) {
  return shape.kernel_size() == 1 && !layout.is_copy && std::equal(shape.input, shape.input + 3, shape.output) &&
         shape.stride[0] == 1 && shape.stride[1] == 1 && shape.stride[2] == 1;
}

// The rows of the output whose padded input is made at once.
struct Band {
  Band(const ConvShape& own, bool direct) : shape(own), layout(shape, direct), offsets(layout.offsets(shape)) {}
  ConvShape shape;
  ImageLayout layout;
  std::vector<int64_t> offsets;
};

}  // namespace

// One group of one image: what all of them have in common. With `pool` null each runs in the calling thread.
class GroupConv {
 public:
  GroupConv(const ConvShape& shape, const PackedConvWeights& weights, ThreadPool* pool)
      : shape_(shape), weights_(weights), pool_(pool), layout_(shape, weights.kernels_ != nullptr) {
    if (layout_.is_copy) rows_ = rows_per_band();
    for (int64_t row = 0; row < shape.output[1]; row += rows_) {
      ConvShape band = shape;
      band.output[1] = std::min(rows_, shape.output[1] - row);
      band.pad[1] -= row * shape.stride[1];
      bands_.emplace_back(band, weights.kernels_ != nullptr);
    }
  }

  void run(const float* x, int64_t group, float* y, const GemmEpilogue& epilogue) const {
    if (!layout_.is_copy) {
      if (weights_.kernels_) return run_direct(bands_[0], x, group, y, epilogue);
      return run_in_place(x, weights_.matrices_[static_cast<size_t>(group)], y, epilogue);
    }
    GemmEpilogue own = epilogue;
    for (const Band& band : bands_) {
      run_padded(band, x, group, y, own);
      y += rows_ * shape_.output[2];
      if (own.residual) own.residual += rows_ * shape_.output[2];
    }
  }

 private:
  // Enough rows to multiply well, but little memory.
  int64_t rows_per_band() const {
    constexpr int64_t wanted_floats = 128 << 10, least_outputs = 1024;
    if (shape_.output[0] > 1) return shape_.output[1];
    const int64_t floats_of_row = shape_.in_channels / shape_.groups * layout_.row * shape_.stride[1];
    const int64_t least = least_outputs * (pool_ ? pool_->size() : 1) / shape_.output[2] + 1;
    return std::min(shape_.output[1], std::max(least, wanted_floats / floats_of_row));
  }

  void run_in_place(const float* x, const PackedMatrix& weights, float* y, const GemmEpilogue& epilogue) const {
    const GemmKernels& kernels = gemm_kernels_of(weights.isa());
    const int64_t outputs = shape_.output_size();
    if (is_pointwise(shape_, layout_)) {
      const bool few_rows = weights.rows() <= 2 * kernels.tile_rows;
      return multiply(kernels, MatrixPanels(kernels, GemmSide::right, x, outputs, true, outputs, few_rows), outputs,
                      weights, y, epilogue);
    }
    const ImagePanels patches(shape_, layout_, bands_[0].offsets, x, false, kernels.tile_columns);
    multiply(kernels, patches, outputs, weights, y, epilogue);
  }

  void multiply(const GemmKernels& kernels, const PanelSource& patches, int64_t outputs, const PackedMatrix& weights,
                float* y, const GemmEpilogue& epilogue) const {
    gemm_blocked(pool_, kernels, weights.rows(), outputs, weights.columns(), PackedPanels(weights), patches, y,
                 shape_.output_size(), epilogue);
  }

  void run_padded(const Band& band, const float* x, int64_t group, float* y, const GemmEpilogue& epilogue) const {
    const GemmKernels* gemm = weights_.kernels_ ? nullptr : &gemm_kernels_of(weights_.matrices_[0].isa());
    const int64_t channels = shape_.in_channels / shape_.groups, slack = gemm ? gemm->tile_columns : 0;
    const int64_t floats = channels * band.layout.channel;
    const Scratch scratch(static_cast<size_t>(floats + 2 * slack) * sizeof(float));
    float* image = scratch.as<float>() + slack;
    std::fill(image - slack, image, 0.0f);
    std::fill(image + floats, image + floats + slack, 0.0f);
    const auto copy = [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        copy_channel(band.shape, band.layout, x + c * shape_.input_size(), image + c * band.layout.channel);
      }
    };
    if (pool_) {
      pool_->parallel_for(channels, 1 + 16384 / band.layout.channel, copy);
    } else {
      copy(0, channels);
    }
    if (!gemm) return run_direct(band, image, group, y, epilogue);
    const PackedMatrix& weights = weights_.matrices_[static_cast<size_t>(group)];
    if (suits_rows(shape_, band.layout, weights.rows())) {
      return conv_rows(pool_, *gemm, {band.shape, band.layout, band.offsets, image}, weights, y, shape_.output_size(),
                       epilogue);
    }
    const ImagePanels patches(band.shape, band.layout, band.offsets, image, true, gemm->tile_columns);
    multiply(*gemm, patches, band.shape.output_size(), weights, y, epilogue);
  }

  void run_direct(const Band& band, const float* image, int64_t group, float* y, const GemmEpilogue& epilogue) const {
    const ConvShape& s = band.shape;
    const int64_t channels = s.out_channels / s.groups;
    const auto k = static_cast<int64_t>(band.offsets.size());
    const std::span all(weights_.buffer_.as<float>(), weights_.buffer_.size() / sizeof(float));
    const int64_t floats = direct_weights_floats(*weights_.kernels_, channels, k);
    const DirectPart part{all.data() + group * floats, band.offsets};
    const DirectConv conv{
        .image = image,
        .size = {s.output[0], s.output[1], s.output[2]},
        .image_step = {s.stride[0] * band.layout.plane, s.stride[1] * band.layout.row, band.layout.column_step},
        .image_channels = s.in_channels / s.groups,
        .parts = {&part, 1},
        .all_weights = all,
        .channels = channels,
        .columns = s.output[2],
        .y_step = {shape_.output[1] * s.output[2], s.output[2]},
        .y_channel = shape_.output_size(),
        .bias = epilogue.addend,
        .residual = epilogue.residual,
        .lo = epilogue.lo,
        .hi = epilogue.hi,
        .activation = epilogue.activation};
    conv_direct(pool_, *weights_.kernels_, conv, y);
  }

  const ConvShape& shape_;
  const PackedConvWeights& weights_;
  ThreadPool* pool_;
  ImageLayout layout_;
  int64_t rows_ = shape_.output[1];
  std::vector<Band> bands_;
};

PackedConvWeights::PackedConvWeights(ThreadPool& pool, const ConvShape& shape, const float* weights,
                                     PackedStorage& storage, std::optional<bool> direct) {
  const int64_t k = shape.in_channels / shape.groups * shape.kernel_size();
  if (is_depthwise(shape)) {
    buffer_ = storage.get(static_cast<size_t>(shape.out_channels * k) * sizeof(float), [&](void* memory) {
      std::copy_n(weights, shape.out_channels * k, static_cast<float*>(memory));
    });
    return;
  }
  const int64_t rows = shape.out_channels / shape.groups;
  const ConvBlockedKernels& kernels = conv_blocked_kernels();
  if (direct.value_or(suits_direct(kernels, shape))) {
    kernels_ = &kernels;
    const int64_t floats = direct_weights_floats(kernels, rows, k);
    buffer_ = storage.get(static_cast<size_t>(shape.groups * floats) * sizeof(float), [&](void* memory) {
      for (int64_t g = 0; g < shape.groups; ++g)
        pack_direct_weights(pool, kernels, rows, k, weights + g * rows * k, static_cast<float*>(memory) + g * floats);
    });
    return;
  }
  matrices_.reserve(static_cast<size_t>(shape.groups));
  for (int64_t g = 0; g < shape.groups; ++g) {
    matrices_.emplace_back(pool, GemmSide::left, rows, k, GemmMatrix{weights + g * rows * k, k}, storage);
  }
}

size_t PackedConvWeights::bytes() const {
  size_t total = buffer_.size();
  for (const PackedMatrix& matrix : matrices_) total += matrix.bytes();
  return total;
}

Isa conv_isa() { return depthwise_kernels().isa; }

void conv(ThreadPool& pool, const ConvShape& shape, const float* x, const PackedConvWeights& weights, float* y,
          const ConvEpilogue& epilogue) {
  if (shape.batch <= 0 || shape.output_size() <= 0) return;
  if (shape.groups <= 0) return;
  if (weights.depthwise()) return conv_depthwise(pool, shape, x, weights.depthwise(), y, epilogue);
  const int64_t rows = shape.out_channels / shape.groups, k = shape.in_channels / shape.groups * shape.kernel_size();
  const int64_t items = shape.batch * shape.groups;
  const double flops =
      2.0 * static_cast<double>(rows) * static_cast<double>(k) * static_cast<double>(shape.output_size());
  ThreadPool* inside = pool_for_flops(pool, flops);
  const bool one_by_one = items == 1 || (inside && items < 4 * pool.size());
  const GroupConv group(shape, weights, one_by_one ? inside : nullptr);
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t g = item % shape.groups;
      GemmEpilogue own;
      own.addend = epilogue.bias ? epilogue.bias + g * rows : nullptr;
      own.addend_row_stride = 1;
      own.residual = epilogue.residual ? epilogue.residual + item * rows * shape.output_size() : nullptr;
      own.lo = epilogue.lo;
      own.hi = epilogue.hi;
      own.activation = epilogue.activation;
      group.run(x + item * (shape.in_channels / shape.groups) * shape.input_size(), g,
                y + item * rows * shape.output_size(), own);
    }
  };
  if (one_by_one) return run(0, items);
  pool.parallel_for(items, static_cast<int64_t>(1e6 / (flops + 1e3)) + 1, run);
}

}  // namespace tenon::kernels
