#include "kernels/conv_transpose_blocked/conv_transpose_blocked.h"

#include <algorithm>

namespace tenon::kernels {
namespace {

// Output rest + stride * q of an axis reads inputs q - pad to q - pad + taps. The last tap has this index in the
// kernel, each before it one that is larger by the stride; there are no weights for those past the kernel's end.
struct AxisPart {
  int64_t taps, pad, last_tap;

  AxisPart(const ConvShape& s, int d, int64_t rest) {
    const int64_t stride = s.stride[d], newest = (rest + s.pad[d]) / stride;
    last_tap = (rest + s.pad[d]) % stride;
    const int64_t own = last_tap < s.kernel[d] ? (s.kernel[d] - last_tap + stride - 1) / stride : 0;
    taps = std::max(own, newest + 1);
    pad = taps - 1 - newest;
  }

  // The index in the kernel of tap t.
  int64_t index(int64_t t, int64_t stride) const { return last_tap + (taps - 1 - t) * stride; }
};

// The convolution that makes these outputs.
ConvShape part_shape(const ConvShape& s, const AxisPart& row, const AxisPart& column) {
  ConvShape part;
  part.in_channels = s.in_channels;
  part.out_channels = s.out_channels;
  part.kernel[1] = row.taps, part.kernel[2] = column.taps;
  part.pad[1] = row.pad, part.pad[2] = column.pad;
  for (int d : {1, 2}) part.input[d] = s.input[d];
  return part;
}

// Copies pixels to every step-th place.
template <int64_t block>
void spread(const float* from, int64_t count, int64_t step, float* to) {
  for (int64_t q = 0; q < count; ++q) std::copy_n(from + q * block, block, to + q * step * block);
}

// The weights of a part: [out_channels, in_channels, its taps].
std::vector<float> part_weights(const ConvShape& s, const AxisPart& row, const AxisPart& column, const float* weights) {
  const int64_t taps = row.taps * column.taps;
  std::vector<float> own(static_cast<size_t>(s.out_channels * s.in_channels * taps));
  float* to = own.data();
  for (int64_t out = 0; out < s.out_channels; ++out) {
    for (int64_t in = 0; in < s.in_channels; ++in) {
      const float* from = weights + (in * s.out_channels + out) * s.kernel_size();
      for (int64_t t = 0; t < taps; ++t, ++to) {
        const int64_t h = row.index(t / column.taps, s.stride[1]), w = column.index(t % column.taps, s.stride[2]);
        if (h < s.kernel[1] && w < s.kernel[2]) *to = from[h * s.kernel[2] + w];
      }
    }
  }
  return own;
}

}  // namespace

BlockedConvTransposeWeights::BlockedConvTransposeWeights(ThreadPool& pool, const ConvShape& s, const float* weights,
                                                         PackedStorage& storage) {
  for (int64_t rest = 0; rest < s.stride[1] * s.stride[2]; ++rest) {
    const AxisPart row(s, 1, rest / s.stride[2]), column(s, 2, rest % s.stride[2]);
    std::vector<float> own;
    if (storage.fills()) own = part_weights(s, row, column, weights);
    parts_.emplace_back(pool, part_shape(s, row, column), /*plain_input=*/false, own.data(), storage);
  }
}

size_t BlockedConvTransposeWeights::bytes() const {
  size_t total = 0;
  for (const BlockedConvWeights& part : parts_) total += part.bytes();
  return total;
}

void conv_transpose_blocked(ThreadPool& pool, const ConvShape& s, const float* x,
                            const BlockedConvTransposeWeights& weights, float* y, const float* bias) {
  if (s.batch <= 0 || s.output_size() <= 0 || s.out_channels <= 0) return;
  const int64_t block = weights.parts_[0].block(), rows = s.stride[1], columns = s.stride[2];
  const int64_t blocks = s.out_channels / block, height = s.output[1], width = s.output[2];
  // The parts of all columns for one rest of the rows: each is [blocks, its rows, its columns, block].
  const int64_t part_rows = (height + rows - 1) / rows, part_columns = (width + columns - 1) / columns;
  const int64_t part_floats = blocks * part_rows * part_columns * block;
  const bool direct = rows == 1 && columns == 1;
  const Scratch scratch(direct ? 0 : static_cast<size_t>(columns * part_floats) * sizeof(float));
  for (int64_t n = 0; n < s.batch; ++n) {
    const float* image = x + n * s.in_channels * s.input_size();
    float* to = y + n * s.out_channels * s.output_size();
    for (int64_t row = 0; row < std::min(rows, height); ++row) {
      const int64_t own_rows = (height - row + rows - 1) / rows;
      for (int64_t column = 0; column < std::min(columns, width); ++column) {
        ConvShape part = part_shape(s, AxisPart(s, 1, row), AxisPart(s, 2, column));
        part.output[1] = own_rows;
        part.output[2] = (width - column + columns - 1) / columns;
        conv_blocked(pool, part, image, weights.parts_[static_cast<size_t>(row * columns + column)],
                     direct ? to : scratch.as<float>() + column * part_floats, {.bias = bias});
      }
      if (direct) continue;
      pool.parallel_for(blocks * own_rows, 1 + 16384 / (width * block), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          float* out = to + (i / own_rows * height + row + i % own_rows * rows) * width * block;
          for (int64_t column = 0; column < std::min(columns, width); ++column) {
            const int64_t count = (width - column + columns - 1) / columns;
            const float* from = scratch.as<float>() + column * part_floats + i * count * block;
            float* first = out + column * block;
            block == 8 ? spread<8>(from, count, columns, first) : spread<16>(from, count, columns, first);
          }
        }
      });
    }
  }
}

}  // namespace tenon::kernels
