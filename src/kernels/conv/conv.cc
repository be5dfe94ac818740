#include "kernels/conv/conv.h"

#include <algorithm>

#include "kernels/conv/depthwise.h"
#include "kernels/conv/image.h"
#include "kernels/gemm/driver.h"

namespace tenon::kernels {
namespace {

bool is_depthwise(const ConvShape& shape) {
  return shape.groups > 1 && shape.groups == shape.in_channels && shape.out_channels % shape.in_channels == 0;
}

// The patch matrix is the image itself.
bool is_pointwise(const ConvShape& shape, const PaddedExtent& extent) {
  return shape.kernel_size() == 1 && !extent.needs_copy && std::equal(shape.input, shape.input + 3, shape.output) &&
         shape.stride[0] == 1 && shape.stride[1] == 1 && shape.stride[2] == 1;
}

// One group of one image.
struct GroupConv {
  const ConvShape& shape;
  const GemmKernels& kernels;
  const PaddedExtent extent{shape};

  void run(ThreadPool* pool, const float* x, const PackedMatrix& weights, float* y,
           const GemmEpilogue& epilogue) const {
    const int64_t outputs = shape.output_size();
    if (is_pointwise(shape, extent)) {
      const bool few_rows = weights.rows() <= 2 * kernels.tile_rows;
      return multiply(pool, MatrixPanels(GemmSide::right, x, outputs, true, outputs, kernels.tile_columns, few_rows),
                      outputs, weights, y, epilogue);
    }
    if (!extent.needs_copy) {
      return multiply(pool, ImagePanels(shape, x, shape.input, false, kernels.tile_columns), outputs, weights, y,
                      epilogue);
    }
    const int64_t rows = rows_per_band(pool);
    for (int64_t row = 0; row < shape.output[1]; row += rows) {
      ConvShape band = shape;
      band.output[1] = std::min(rows, shape.output[1] - row);
      band.pad[1] -= row * shape.stride[1];
      run_padded(pool, band, x, weights, y + row * shape.output[2], epilogue);
    }
  }

 private:
  // Rows of the output whose padded input is made at once: enough to multiply well, but little memory.
  int64_t rows_per_band(ThreadPool* pool) const {
    constexpr int64_t wanted_floats = 256 << 10, least_outputs = 1024;
    if (shape.output[0] > 1) return shape.output[1];
    const int64_t floats_of_row = shape.in_channels / shape.groups * extent.size[2] * shape.stride[1];
    const int64_t least = least_outputs * (pool ? pool->size() : 1) / shape.output[2] + 1;
    return std::max(least, wanted_floats / floats_of_row);
  }

  void multiply(ThreadPool* pool, const PanelSource& patches, int64_t outputs, const PackedMatrix& weights, float* y,
                const GemmEpilogue& epilogue) const {
    gemm_blocked(pool, kernels, weights.rows(), outputs, weights.columns(), PackedPanels(weights), patches, y,
                 shape.output_size(), epilogue);
  }

  void run_padded(ThreadPool* pool, const ConvShape& band, const float* x, const PackedMatrix& weights, float* y,
                  const GemmEpilogue& epilogue) const {
    const PaddedExtent padded(band);
    const int64_t channels = shape.in_channels / shape.groups, slack = kernels.tile_columns;
    const Scratch scratch(static_cast<size_t>(channels * padded.total() + 2 * slack) * sizeof(float));
    float* image = scratch.as<float>() + slack;
    std::fill(image - slack, image, 0.0f);
    std::fill(image + channels * padded.total(), image + channels * padded.total() + slack, 0.0f);
    const auto pad = [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        pad_channel(band, padded, x + c * shape.input_size(), image + c * padded.total());
      }
    };
    if (pool) {
      pool->parallel_for(channels, 1 + 16384 / padded.total(), pad);
    } else {
      pad(0, channels);
    }
    multiply(pool, ImagePanels(band, image, padded.size, true, kernels.tile_columns), band.output_size(), weights, y,
             epilogue);
  }
};

}  // namespace

PackedConvWeights::PackedConvWeights(ThreadPool& pool, const ConvShape& shape, const float* weights) {
  const int64_t k = shape.in_channels / shape.groups * shape.kernel_size();
  if (is_depthwise(shape)) {
    depthwise_.assign(weights, weights + shape.out_channels * k);
    return;
  }
  const int64_t rows = shape.out_channels / shape.groups;
  matrices_.reserve(static_cast<size_t>(shape.groups));
  for (int64_t g = 0; g < shape.groups; ++g) {
    matrices_.emplace_back(pool, GemmSide::left, rows, k, GemmMatrix{weights + g * rows * k, k});
  }
}

size_t PackedConvWeights::bytes() const {
  size_t total = depthwise_.size() * sizeof(float);
  for (const PackedMatrix& matrix : matrices_) total += matrix.bytes();
  return total;
}

Isa conv_isa() { return depthwise_kernels().isa; }

void conv(ThreadPool& pool, const ConvShape& shape, const float* x, const PackedConvWeights& weights, float* y,
          const ConvEpilogue& epilogue) {
  if (shape.batch <= 0 || shape.output_size() <= 0) return;
  if (weights.matrices_.empty()) {
    if (shape.groups > 0) conv_depthwise(pool, shape, x, weights.depthwise_.data(), y, epilogue);
    return;
  }
  const GroupConv group{shape, gemm_kernels_of(weights.matrices_[0].isa())};
  const int64_t rows = weights.matrices_[0].rows(), k = weights.matrices_[0].columns();
  const auto run_item = [&](ThreadPool* inside, int64_t item) {
    const int64_t g = item % shape.groups;
    GemmEpilogue own;
    own.addend = epilogue.bias ? epilogue.bias + g * rows : nullptr;
    own.addend_row_stride = 1;
    own.residual = epilogue.residual ? epilogue.residual + item * rows * shape.output_size() : nullptr;
    own.lo = epilogue.lo;
    own.hi = epilogue.hi;
    own.activation = epilogue.activation;
    group.run(inside, x + item * (shape.in_channels / shape.groups) * shape.input_size(),
              weights.matrices_[static_cast<size_t>(g)], y + item * rows * shape.output_size(), own);
  };
  const int64_t items = shape.batch * shape.groups;
  const double flops =
      2.0 * static_cast<double>(rows) * static_cast<double>(k) * static_cast<double>(shape.output_size());
  ThreadPool* inside = pool_for_flops(pool, flops);
  if (items == 1 || (inside && items < 4 * pool.size())) {
    for (int64_t item = 0; item < items; ++item) run_item(inside, item);
    return;
  }
  pool.parallel_for(items, static_cast<int64_t>(1e6 / (flops + 1e3)) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) run_item(nullptr, item);
  });
}

}  // namespace tenon::kernels
