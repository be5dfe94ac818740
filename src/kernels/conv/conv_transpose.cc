#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/conv/conv.h"

namespace tenon::kernels {
namespace {

constexpr int64_t most_column_floats = 256 << 10;
constexpr int64_t least_rows = 64;

// A tap of one dimension that output `at` gets something from, and the input position it comes from.
struct Source {
  int64_t tap, input;
};

// All of them for outputs at, at + stride, …, of which the first is meant: the others come from the inputs after it.
void find_sources(const ConvShape& s, int d, int64_t at, std::vector<Source>& sources) {
  sources.clear();
  for (int64_t tap = 0; tap < s.kernel[d]; ++tap) {
    const int64_t from = at + s.pad[d] - tap * s.dilation[d];
    const int64_t input = from >= 0 ? from / s.stride[d] : -((-from + s.stride[d] - 1) / s.stride[d]);
    if (input * s.stride[d] == from) sources.push_back({tap, input});
  }
}

// The outputs of one channel, from the products [kernel, input] that belong to it. Each is written once: columns that
// are a stride apart are added up side by side first.
class Gatherer {
 public:
  explicit Gatherer(const ConvShape& shape)
      : s_(shape),
        phases_(std::min(shape.stride[2], shape.output[2])),
        phase_columns_((shape.output[2] + shape.stride[2] - 1) / shape.stride[2]),
        sums_(static_cast<size_t>(phases_ * phase_columns_) * sizeof(float)),
        columns_(static_cast<size_t>(phases_)) {
    for (size_t phase = 0; phase < columns_.size(); ++phase)
      find_sources(s_, 2, static_cast<int64_t>(phase), columns_[phase]);
  }

  void run(const float* products, float bias, float lo, float hi, float* out) {
    for (int64_t d = 0; d < s_.output[0]; ++d) {
      find_sources(s_, 0, d, planes_);
      for (int64_t h = 0; h < s_.output[1]; ++h, out += s_.output[2]) {
        find_sources(s_, 1, h, rows_);
        bool is_first = true;
        for (const Source& plane : planes_) {
          if (plane.input < 0 || plane.input >= s_.input[0]) continue;
          for (const Source& row : rows_) {
            if (row.input < 0 || row.input >= s_.input[1]) continue;
            const int64_t tap = (plane.tap * s_.kernel[1] + row.tap) * s_.kernel[2];
            add_taps(products + tap * s_.input_size() + (plane.input * s_.input[1] + row.input) * s_.input[2],
                     is_first ? std::optional(bias) : std::nullopt);
            is_first = false;
          }
        }
        if (is_first) std::fill_n(sums_.as<float>(), phases_ * phase_columns_, bias);
        store(lo, hi, out);
      }
    }
  }

 private:
  // `products` are those of the first tap along the width, for one row of the input. Sums start with `start`, or go on
  // where there is none.
  void add_taps(const float* products, std::optional<float> start) {
    const float first = start.value_or(0.0f);
    for (size_t phase = 0; phase < columns_.size(); ++phase) {
      float* sums = sums_.as<float>() + static_cast<int64_t>(phase) * phase_columns_;
      bool goes_on = !start;
      for (const Source& column : columns_[phase]) {
        const int64_t begin = std::clamp<int64_t>(-column.input, 0, phase_columns_);
        const int64_t end = std::clamp(s_.input[2] - column.input, begin, phase_columns_);
        const float* from = products + column.tap * s_.input_size() + column.input;
        if (goes_on) {
          for (int64_t i = begin; i < end; ++i) sums[i] += from[i];
        } else {
          std::fill(sums, sums + begin, first);
          for (int64_t i = begin; i < end; ++i) sums[i] = first + from[i];
          std::fill(sums + end, sums + phase_columns_, first);
        }
        goes_on = true;
      }
      if (!goes_on) std::fill_n(sums, phase_columns_, first);
    }
  }

  void store(float lo, float hi, float* out) const {
    const int64_t stride = s_.stride[2], n = s_.output[2];
    const float* sums = sums_.as<float>();
    const auto clamped = [=](float v) {
      v = lo > v ? lo : v;
      return hi < v ? hi : v;
    };
    if (phases_ == 1 && n == phase_columns_) {
      for (int64_t i = 0; i < n; ++i) out[i] = clamped(sums[i]);
    } else if (phases_ == 2) {
      const float* odd = sums + phase_columns_;
      for (int64_t i = 0; i < n / 2; ++i) {
        out[2 * i] = clamped(sums[i]);
        out[2 * i + 1] = clamped(odd[i]);
      }
      if (n % 2) out[n - 1] = clamped(sums[n / 2]);
    } else {
      for (int64_t phase = 0; phase < phases_; ++phase, sums += phase_columns_)
        for (int64_t i = phase, q = 0; i < n; i += stride, ++q) out[i] = clamped(sums[q]);
    }
  }

  const ConvShape& s_;
  int64_t phases_;
  int64_t phase_columns_;
  Scratch sums_;
  std::vector<std::vector<Source>> columns_;  // by phase
  std::vector<Source> planes_, rows_;
};

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
        Gatherer gatherer(shape);
        for (int64_t c = begin; c < end; ++c) {
          const float bias = epilogue.bias ? epilogue.bias[g * out_channels + first + c] : 0.0f;
          gatherer.run(columns.as<float>() + c * taps * inputs, bias, epilogue.lo, epilogue.hi,
                       y + (item * out_channels + first + c) * outputs);
        }
      });
    }
  }
}

}  // namespace tenon::kernels
