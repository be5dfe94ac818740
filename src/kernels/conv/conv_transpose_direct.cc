#include <algorithm>
#include <optional>

#include "base/rounding.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_transpose_pairs.h"
#include "kernels/conv/direct.h"
#include "kernels/conv/image.h"

namespace tenon::kernels {
namespace {

// Floats of the padded image that is made at once, and the least outputs of a part that it is made for.
constexpr int64_t band_floats = 128 << 10, least_outputs = 1024;
constexpr double least_filled = 0.75;
constexpr int64_t most_parts = 64;

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// The taps of a dimension that outputs read whose index plus the padding leaves this rest.
std::vector<int64_t> taps_of(const ConvShape& s, int d, int64_t rest) {
  std::vector<int64_t> taps;
  for (int64_t tap = 0; tap < s.kernel[d]; ++tap)
    if (tap * s.dilation[d] % s.stride[d] == rest) taps.push_back(tap);
  return taps;
}

// Outputs first, first + stride, … of a dimension: what the first of them reads for each of its taps.
struct AxisPart {
  int64_t rest, count;
  std::vector<int64_t> inputs;

  AxisPart(const ConvShape& s, int d, int64_t first)
      : rest((first + s.pad[d]) - floor_div(first + s.pad[d], s.stride[d]) * s.stride[d]),
        count(divide_up(s.output[d] - first, s.stride[d])) {
    for (int64_t tap : taps_of(s, d, rest)) inputs.push_back((first + s.pad[d] - tap * s.dilation[d]) / s.stride[d]);
  }
};

// The convolution with stride 1 whose windows hold all that the parts read.
ConvShape window_shape(const ConvShape& s, const std::vector<AxisPart> (&parts)[3]) {
  ConvShape window = s;
  for (int d = 0; d < 3; ++d) {
    int64_t least = 0, most = 0;
    bool is_first = true;
    for (const AxisPart& part : parts[d])
      for (int64_t input : part.inputs) {
        least = is_first ? input : std::min(least, input);
        most = is_first ? input : std::max(most, input);
        is_first = false;
      }
    window.kernel[d] = most - least + 1;
    window.pad[d] = -least;
    window.output[d] = parts[d][0].count;
    window.stride[d] = window.dilation[d] = 1;
  }
  return window;
}

}  // namespace

// What all groups of all images have in common.
class TransposedConv {
 public:
  TransposedConv(const ConvShape& shape, const PackedConvTransposeWeights& weights, ThreadPool* pool)
      : s_(shape), weights_(weights), pool_(pool) {
    for (int d = 0; d < 3; ++d)
      for (int64_t first = 0; first < std::min(s_.stride[d], s_.output[d]); ++first)
        parts_[d].emplace_back(s_, d, first);
    const ConvShape window = window_shape(s_, parts_);
    const ImageLayout layout(window, true);
    int64_t rows = window.output[1];
    if (layout.is_copy && window.output[0] == 1) {
      const int64_t least = least_outputs * (pool ? pool->size() : 1) / window.output[2] + 1;
      rows = std::min(rows, std::max(least, band_floats / (channels() * layout.row + 1)));
    }
    for (int64_t row = 0; row < window.output[1]; row += rows) bands_.emplace_back(*this, window, row, rows);
  }

  void run(const float* x, int64_t group, float* y, const ConvEpilogue& epilogue) const {
    for (const Band& band : bands_) {
      const Scratch scratch(band.layout.is_copy ? static_cast<size_t>(channels() * band.layout.channel) * sizeof(float)
                                                : 0);
      if (band.layout.is_copy) pad(band, x, scratch.as<float>());
      const float* image = band.layout.is_copy ? scratch.as<float>() : x;
      for (size_t d = 0; d < parts_[0].size(); ++d)
        for (size_t h = 0; h < parts_[1].size(); ++h) run_rows(band, image, group, d, h, y, epilogue);
    }
  }

 private:
  // Some rows of the windows, and for each depth's, row's and column's part where it reads what.
  struct Band {
    Band(const TransposedConv& conv, const ConvShape& all, int64_t first, int64_t rows)
        : window(all), first_row(first), layout(window_of(window, first, rows), true) {
      for (const AxisPart& depth : conv.parts_[0])
        for (const AxisPart& row : conv.parts_[1])
          for (const AxisPart& column : conv.parts_[2]) offsets.push_back(offsets_of(depth, row, column));
    }
    static const ConvShape& window_of(ConvShape& window, int64_t first, int64_t rows) {
      window.output[1] = std::min(rows, window.output[1] - first);
      window.pad[1] -= first;
      return window;
    }
    std::vector<int64_t> offsets_of(const AxisPart& depth, const AxisPart& row, const AxisPart& column) const {
      std::vector<int64_t> result;
      // `window.pad` of rows is that of the band, whose first row is row 0 of the copy.
      const int64_t pad_rows = window.pad[1] + first_row;
      for (int64_t c = 0; c < window.in_channels / window.groups; ++c)
        for (int64_t d : depth.inputs)
          for (int64_t h : row.inputs)
            for (int64_t w : column.inputs)
              result.push_back(c * layout.channel + (d + window.pad[0]) * layout.plane + (h + pad_rows) * layout.row +
                               w + window.pad[2]);
      return result;
    }

    ConvShape window;
    int64_t first_row;
    ImageLayout layout;
    std::vector<std::vector<int64_t>> offsets;
  };

  int64_t channels() const { return s_.in_channels / s_.groups; }

  void pad(const Band& band, const float* x, float* to) const {
    const auto copy = [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        copy_channel(band.window, band.layout, x + c * s_.input_size(), to + c * band.layout.channel);
    };
    if (!pool_) return copy(0, channels());
    pool_->parallel_for(channels(), 1 + 16384 / band.layout.channel, copy);
  }

  // The outputs of one part of the depths and one of the rows.
  void run_rows(const Band& band, const float* image, int64_t group, size_t d, size_t h, float* y,
                const ConvEpilogue& epilogue) const {
    const AxisPart &depth = parts_[0][d], &row = parts_[1][h];
    const int64_t rows = std::min(row.count - band.first_row, band.window.output[1]);
    if (rows <= 0) return;
    const std::span all(weights_.buffer_.as<float>(), weights_.buffer_.size() / sizeof(float));
    std::vector<DirectPart> parts;
    for (size_t w = 0; w < parts_[2].size(); ++w) {
      const int64_t rest = (depth.rest * s_.stride[1] + row.rest) * s_.stride[2] + parts_[2][w].rest;
      parts.push_back({all.data() + group * weights_.group_floats_ + weights_.starts_[static_cast<size_t>(rest)],
                       band.offsets[(d * parts_[1].size() + h) * parts_[2].size() + w]});
    }
    const int64_t plane = s_.output[1] * s_.output[2];
    const DirectConv conv{.image = image,
                          .size = {depth.count, rows, band.window.output[2]},
                          .image_step = {band.layout.plane, band.layout.row, 1},
                          .image_channels = channels(),
                          .parts = parts,
                          .all_weights = all,
                          .channels = s_.out_channels / s_.groups,
                          .columns = s_.output[2],
                          .y_step = {s_.stride[0] * plane, s_.stride[1] * s_.output[2]},
                          .y_channel = s_.output_size(),
                          .bias = epilogue.bias,
                          .residual = nullptr,
                          .lo = epilogue.lo,
                          .hi = epilogue.hi,
                          .activation = nullptr};
    const int64_t first_row = band.first_row * s_.stride[1] + static_cast<int64_t>(h);
    conv_direct(pool_, *weights_.kernels_, conv, y + static_cast<int64_t>(d) * plane + first_row * s_.output[2]);
  }

  const ConvShape& s_;
  const PackedConvTransposeWeights& weights_;
  ThreadPool* pool_;
  std::vector<AxisPart> parts_[3];  // by the first output
  std::vector<Band> bands_;
};

PackedConvTransposeWeights::PackedConvTransposeWeights(ThreadPool& pool, const ConvShape& s, const float* weights,
                                                       PackedStorage& storage)
    : kernels_(&conv_blocked_kernels()) {
  const int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups, taps = s.kernel_size();
  if (suits_pairs(s)) {
    for (int64_t g = 0; g < s.groups; ++g)
      matrices_.emplace_back(pool, GemmSide::left, out * taps, in,
                             GemmMatrix{weights + g * in * out * taps, out * taps, /*transposed=*/true}, storage);
    return;
  }
  std::vector<std::vector<int64_t>> taps_of_rest;
  for (int64_t d = 0; d < s.stride[0]; ++d)
    for (int64_t h = 0; h < s.stride[1]; ++h)
      for (int64_t w = 0; w < s.stride[2]; ++w) {
        std::vector<int64_t>& own = taps_of_rest.emplace_back();
        for (int64_t tap_d : taps_of(s, 0, d))
          for (int64_t tap_h : taps_of(s, 1, h))
            for (int64_t tap_w : taps_of(s, 2, w)) own.push_back((tap_d * s.kernel[1] + tap_h) * s.kernel[2] + tap_w);
        starts_.push_back(group_floats_);
        group_floats_ += direct_weights_floats(*kernels_, out, in * static_cast<int64_t>(own.size()));
      }
  buffer_ = storage.get(static_cast<size_t>(s.groups * group_floats_) * sizeof(float), [&](void* memory) {
    std::vector<float> part;  // [out, in, its taps]
    for (int64_t g = 0; g < s.groups; ++g)
      for (size_t rest = 0; rest < starts_.size(); ++rest) {
        part.clear();
        for (int64_t o = 0; o < out; ++o)
          for (int64_t c = 0; c < in; ++c)
            for (int64_t tap : taps_of_rest[rest]) part.push_back(weights[((g * in + c) * out + o) * taps + tap]);
        pack_direct_weights(pool, *kernels_, out, in * static_cast<int64_t>(taps_of_rest[rest].size()), part.data(),
                            static_cast<float*>(memory) + g * group_floats_ + starts_[rest]);
      }
  });
}

size_t PackedConvTransposeWeights::bytes() const {
  size_t total = buffer_.size();
  for (const PackedMatrix& matrix : matrices_) total += matrix.bytes();
  return total;
}

bool PackedConvTransposeWeights::suits(const ConvShape& shape) {
  const ConvBlockedKernels& kernels = conv_blocked_kernels();
  const int64_t channels = shape.out_channels / shape.groups;
  for (int64_t d = 0, parts = 1; d < 3; ++d) {
    if (shape.stride[d] > most_parts / parts) return false;
    parts *= shape.stride[d];
  }
  if (suits_pairs(shape)) return true;
  return kernels.least_plain_depth > 0 &&
         static_cast<double>(channels) >= least_filled * static_cast<double>(round_up(channels, kernels.block));
}

void conv_transpose(ThreadPool& pool, const ConvShape& shape, const float* x, const PackedConvTransposeWeights& weights,
                    float* y, const ConvEpilogue& epilogue) {
  if (shape.batch <= 0 || shape.output_size() <= 0 || shape.out_channels <= 0) return;
  const int64_t items = shape.batch * shape.groups, channels = shape.out_channels / shape.groups;
  const bool one_by_one = items < 4 * pool.size();
  ThreadPool* inside = one_by_one && pool.size() > 1 ? &pool : nullptr;
  std::optional<TransposedConv> conv;
  if (weights.matrices_.empty()) conv.emplace(shape, weights, inside);
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t g = item % shape.groups;
      ConvEpilogue own = epilogue;
      if (epilogue.bias) own.bias += g * channels;
      const float* image = x + item * (shape.in_channels / shape.groups) * shape.input_size();
      float* to = y + item * channels * shape.output_size();
      if (conv)
        conv->run(image, g, to, own);
      else
        conv_transpose_pairs(inside, shape, image, weights.matrices_[static_cast<size_t>(g)], to, own);
    }
  };
  if (one_by_one) return run(0, items);
  pool.parallel_for(items, 1, run);
}

}  // namespace tenon::kernels
