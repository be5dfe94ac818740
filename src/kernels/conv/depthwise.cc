#include "kernels/conv/depthwise.h"

#include <algorithm>
#include <vector>

#include "kernels/conv/image.h"

namespace tenon::kernels {
namespace {

constexpr int64_t slack = 16;  // the widest vector: kernels read that far beyond a row
constexpr int64_t flops_per_task = 100000;
constexpr float infinity = std::numeric_limits<float>::infinity();

// A padded channel whose rows are split by column modulo the stride, so that neighbouring outputs read neighbouring
// floats whatever the stride.
struct PhaseLayout {
  explicit PhaseLayout(const ConvShape& shape)
      : extent(shape),
        stride(shape.stride[2]),
        phase((extent.size[2] + stride - 1) / stride),
        row(phase * stride),
        plane(row * extent.size[1]),
        total(plane * extent.size[0] + slack) {
    for (int64_t d = 0; d < shape.kernel[0]; ++d) {
      for (int64_t h = 0; h < shape.kernel[1]; ++h) {
        for (int64_t w = 0; w < shape.kernel[2]; ++w) {
          const int64_t column = w * shape.dilation[2];
          offsets.push_back(d * shape.dilation[0] * plane + h * shape.dilation[1] * row + column % stride * phase +
                            column / stride);
        }
      }
    }
  }

  PaddedExtent extent;
  int64_t stride, phase, row, plane, total;
  std::vector<int64_t> offsets;
};

// Splits one input row; columns outside it are zero.
template <int Stride>
void split_row(const ConvShape& shape, const float* from, int64_t phase, float* to) {
  const int64_t step = Stride ? Stride : shape.stride[2];
  for (int64_t r = 0; r < step; ++r, to += phase) {
    // Output i of this phase is column shift + i * step of the input.
    const int64_t shift = r - shape.pad[2];
    const int64_t begin = std::clamp<int64_t>(shift >= 0 ? 0 : (-shift + step - 1) / step, 0, phase);
    const int64_t end =
        std::clamp<int64_t>(shape.input[2] <= shift ? 0 : (shape.input[2] - 1 - shift) / step + 1, begin, phase);
    std::fill(to, to + begin, 0.0f);
    for (int64_t i = begin; i < end; ++i) to[i] = from[shift + i * step];
    std::fill(to + end, to + phase, 0.0f);
  }
}

// Fills `to`, layout.total floats, from one channel.
void fill(const ConvShape& shape, const PhaseLayout& layout, const float* channel, float* to) {
  std::fill(to + layout.total - slack, to + layout.total, 0.0f);
  if (layout.stride == 1) return pad_channel(shape, layout.extent, channel, to);
  const auto split = layout.stride == 2 ? split_row<2> : split_row<0>;
  for (int64_t d = 0; d < layout.extent.size[0]; ++d) {
    const int64_t from_d = d - shape.pad[0];
    for (int64_t h = 0; h < layout.extent.size[1]; ++h, to += layout.row) {
      const int64_t from_h = h - shape.pad[1];
      if (from_d < 0 || from_d >= shape.input[0] || from_h < 0 || from_h >= shape.input[1]) {
        std::fill(to, to + layout.row, 0.0f);
      } else {
        split(shape, channel + (from_d * shape.input[1] + from_h) * shape.input[2], layout.phase, to);
      }
    }
  }
}

// What the row kernel did not do to one plane.
void finish_plane(float* out, const float* residual, int64_t n, const ConvEpilogue& epilogue) {
  for (int64_t i = 0; residual && i < n; ++i) {
    const float sum = out[i] + residual[i], v = epilogue.lo > sum ? epilogue.lo : sum;
    out[i] = epilogue.hi < v ? epilogue.hi : v;
  }
  if (epilogue.activation) epilogue.activation(out, out, n);
}

}  // namespace

void conv_depthwise(ThreadPool& pool, const ConvShape& shape, const float* x, const float* weights, float* y,
                    const ConvEpilogue& epilogue) {
  const DepthwiseKernels& kernels = depthwise_kernels();
  const PhaseLayout layout(shape);
  const int64_t multiplier = shape.out_channels / shape.in_channels;
  const int64_t taps = shape.kernel_size(), outputs = shape.output_size();
  const int64_t grain = 1 + flops_per_task / std::max<int64_t>(1, 2 * taps * outputs * multiplier);
  pool.parallel_for(shape.batch * shape.in_channels, grain, [&](int64_t begin, int64_t end) {
    const Scratch scratch(static_cast<size_t>(layout.total) * sizeof(float));
    float* image = scratch.as<float>();
    for (int64_t i = begin; i < end; ++i) {
      fill(shape, layout, x + i * shape.input_size(), image);
      for (int64_t m = 0; m < multiplier; ++m) {
        const int64_t channel = i % shape.in_channels * multiplier + m;
        DepthwiseRows rows{image,
                           layout.offsets.data(),
                           weights + channel * taps,
                           taps,
                           epilogue.bias ? epilogue.bias[channel] : 0.0f,
                           epilogue.residual ? -infinity : epilogue.lo,
                           epilogue.residual ? infinity : epilogue.hi,
                           shape.output[1],
                           shape.stride[1] * layout.row};
        float* const plane = y + (i * multiplier + m) * outputs;
        for (int64_t d = 0; d < shape.output[0]; ++d) {
          rows.from = image + d * shape.stride[0] * layout.plane;
          kernels.rows(rows, plane + d * shape.output[1] * shape.output[2], shape.output[2]);
        }
        const int64_t offset = plane - y;
        finish_plane(plane, epilogue.residual ? epilogue.residual + offset : nullptr, outputs, epilogue);
      }
    }
  });
}

}  // namespace tenon::kernels
