#include <algorithm>
#include <cstring>
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
std::vector<Source> find_sources(const ConvShape& s, int d, int64_t at) {
  std::vector<Source> sources;
  for (int64_t tap = 0; tap < s.kernel[d]; ++tap) {
    const int64_t from = at + s.pad[d] - tap * s.dilation[d];
    const int64_t input = from >= 0 ? from / s.stride[d] : -((-from + s.stride[d] - 1) / s.stride[d]);
    if (input * s.stride[d] == from) sources.push_back({tap, input});
  }
  return sources;
}

// Those of each output of a dimension that lie inside the input.
std::vector<std::vector<Source>> sources_of_outputs(const ConvShape& s, int d) {
  std::vector<std::vector<Source>> result;
  for (int64_t at = 0; at < s.output[d]; ++at) {
    result.push_back(find_sources(s, d, at));
    std::erase_if(result.back(), [&](const Source& source) { return source.input < 0 || source.input >= s.input[d]; });
  }
  return result;
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
        planes_(sources_of_outputs(shape, 0)),
        rows_(sources_of_outputs(shape, 1)) {
    for (int64_t phase = 0; phase < phases_; ++phase) columns_.push_back(find_sources(s_, 2, phase));
    const auto is_direct = [&](const std::vector<Source>& sources) {
      return sources.size() == 1 && sources[0].input == 0 && phase_columns_ <= s_.input[2];
    };
    pairs_ =
        s_.stride[2] == 2 && phases_ == 2 && s_.output[2] % 2 == 0 && is_direct(columns_[0]) && is_direct(columns_[1]);
  }

  void run(const float* products, float bias, float lo, float hi, float* out) {
    for (const std::vector<Source>& planes : planes_) {
      for (const std::vector<Source>& rows : rows_) {
        if (pairs_ && planes.size() * rows.size() == 1)
          store_pairs(products_of(products, planes[0], rows[0]), bias, lo, hi, out);
        else
          add_rows(products, planes, rows, bias, lo, hi, out);
        out += s_.output[2];
      }
    }
  }

 private:
  // Those of the first tap along the width, for one row of the input.
  const float* products_of(const float* products, const Source& plane, const Source& row) const {
    const int64_t tap = (plane.tap * s_.kernel[1] + row.tap) * s_.kernel[2];
    return products + tap * s_.input_size() + (plane.input * s_.input[1] + row.input) * s_.input[2];
  }

  void add_rows(const float* products, const std::vector<Source>& planes, const std::vector<Source>& rows, float bias,
                float lo, float hi, float* out) {
    bool is_first = true;
    for (const Source& plane : planes) {
      for (const Source& row : rows) {
        add_taps(products_of(products, plane, row), is_first ? std::optional(bias) : std::nullopt);
        is_first = false;
      }
    }
    if (is_first) std::fill_n(sums_.as<float>(), phases_ * phase_columns_, bias);
    store(lo, hi, out);
  }

  // Where each output has one product: even columns from one tap, odd ones from another.
  void store_pairs(const float* products, float bias, float lo, float hi, float* __restrict out) const {
    using Vector [[gnu::vector_size(16)]] = float;
    const float *even = products + columns_[0][0].tap * s_.input_size(),
                *odd = products + columns_[1][0].tap * s_.input_size();
    const int64_t n = s_.output[2] / 2;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      Vector a, b;
      std::memcpy(&a, even + i, sizeof a);
      std::memcpy(&b, odd + i, sizeof b);
      a = clamped(a + bias, lo, hi);
      b = clamped(b + bias, lo, hi);
      const Vector first = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                   second = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      std::memcpy(out + 2 * i, &first, sizeof first);
      std::memcpy(out + 2 * i + 4, &second, sizeof second);
    }
    for (; i < n; ++i) {
      out[2 * i] = clamped(even[i] + bias, lo, hi);
      out[2 * i + 1] = clamped(odd[i] + bias, lo, hi);
    }
  }

  template <class T>
  static T clamped(T v, float lo, float hi) {
    v = v < lo ? T{} + lo : v;
    return v > hi ? T{} + hi : v;
  }

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
    const auto within = [=](float v) { return clamped(v, lo, hi); };
    if (phases_ == 1 && n == phase_columns_) {
      for (int64_t i = 0; i < n; ++i) out[i] = within(sums[i]);
    } else if (phases_ == 2) {
      const float* odd = sums + phase_columns_;
      for (int64_t i = 0; i < n / 2; ++i) {
        out[2 * i] = within(sums[i]);
        out[2 * i + 1] = within(odd[i]);
      }
      if (n % 2) out[n - 1] = within(sums[n / 2]);
    } else {
      for (int64_t phase = 0; phase < phases_; ++phase, sums += phase_columns_)
        for (int64_t i = phase, q = 0; i < n; i += stride, ++q) out[i] = within(sums[q]);
    }
  }

  const ConvShape& s_;
  int64_t phases_;
  int64_t phase_columns_;
  Scratch sums_;
  std::vector<std::vector<Source>> columns_;        // by phase
  std::vector<std::vector<Source>> planes_, rows_;  // by output
  bool pairs_;
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
