#include <algorithm>

#include "kernels/conv/conv.h"

namespace tenon::kernels {
namespace {

constexpr int64_t most_column_floats = int64_t{1} << 20;
constexpr int64_t least_rows = 64;

// Positions i in [0, input) with 0 <= i * stride + shift < output.
struct Span {
  Span(int64_t input, int64_t output, int64_t stride, int64_t shift)
      : begin(shift >= 0 ? 0 : (-shift + stride - 1) / stride),
        end(output <= shift ? 0 : std::min(input, (output - 1 - shift) / stride + 1)) {}
  int64_t begin, end;
};

template <int Stride>
void add_row(const float* from, int64_t count, int64_t stride, float* to) {
  const int64_t step = Stride ? Stride : stride;
  for (int64_t i = 0; i < count; ++i) to[i * step] += from[i];
}

// Adds the products of one output channel, [kernel, input], to where they belong.
void scatter(const ConvShape& s, const float* columns, float* out) {
  const auto add = s.stride[2] == 1 ? add_row<1> : s.stride[2] == 2 ? add_row<2> : add_row<0>;
  for (int64_t tap = 0; tap < s.kernel_size(); ++tap, columns += s.input_size()) {
    const int64_t at[3] = {tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
    int64_t shift[3];
    for (int d = 0; d < 3; ++d) shift[d] = at[d] * s.dilation[d] - s.pad[d];
    const Span depth(s.input[0], s.output[0], s.stride[0], shift[0]);
    const Span height(s.input[1], s.output[1], s.stride[1], shift[1]);
    const Span width(s.input[2], s.output[2], s.stride[2], shift[2]);
    if (width.begin >= width.end) continue;
    for (int64_t d = depth.begin; d < depth.end; ++d) {
      for (int64_t h = height.begin; h < height.end; ++h) {
        const float* from = columns + (d * s.input[1] + h) * s.input[2] + width.begin;
        float* row = out + ((d * s.stride[0] + shift[0]) * s.output[1] + h * s.stride[1] + shift[1]) * s.output[2];
        add(from, width.end - width.begin, s.stride[2], row + width.begin * s.stride[2] + shift[2]);
      }
    }
  }
}

}  // namespace

void conv_transpose(ThreadPool& pool, const ConvShape& shape, const float* x, const float* weights, float* y,
                    const ConvEpilogue& epilogue) {
  const int64_t in_channels = shape.in_channels / shape.groups, out_channels = shape.out_channels / shape.groups;
  const int64_t taps = shape.kernel_size(), inputs = shape.input_size(), outputs = shape.output_size();
  if (out_channels <= 0 || outputs <= 0) return;
  const int64_t fits = most_column_floats / std::max<int64_t>(1, taps * inputs);
  const int64_t step = std::clamp<int64_t>(std::max(fits, least_rows / std::max<int64_t>(1, taps)), 1, out_channels);
  const Scratch columns(static_cast<size_t>(step * taps * inputs) * sizeof(float));
  for (int64_t item = 0; item < shape.batch * shape.groups; ++item) {
    const int64_t g = item % shape.groups;
    const float* image = x + item * in_channels * inputs;
    for (int64_t first = 0; first < out_channels; first += step) {
      const int64_t channels = std::min(step, out_channels - first);
      const float* left = weights + (g * in_channels * out_channels + first) * taps;
      gemm(pool, channels * taps, inputs, in_channels, {left, out_channels * taps, true}, {image, inputs},
           columns.as<float>(), inputs);
      pool.parallel_for(channels, 1 + 16384 / (taps * inputs + 1), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          float* out = y + (item * out_channels + first + c) * outputs;
          std::fill(out, out + outputs, epilogue.bias ? epilogue.bias[g * out_channels + first + c] : 0.0f);
          scatter(shape, columns.as<float>() + c * taps * inputs, out);
          for (int64_t i = 0; i < outputs; ++i) {
            const float v = epilogue.lo > out[i] ? epilogue.lo : out[i];
            out[i] = epilogue.hi < v ? epilogue.hi : v;
          }
        }
      });
    }
  }
}

}  // namespace tenon::kernels
