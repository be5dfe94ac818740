#include "kernels/conv/depthwise.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "kernels/conv/image.h"

namespace tenon::kernels {
namespace {

constexpr int64_t slack = 16;  // the widest vector: kernels read that far beyond a row
constexpr int64_t flops_per_task = 100000;
constexpr float infinity = std::numeric_limits<float>::infinity();

// Floats have no zero point.
template <class T>
float centered(T value, T zero) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return static_cast<float>(value - zero);
}

// The outputs of a phase that are columns of the input row: output i is column shift + i * step.
struct PhaseColumns {
  int64_t shift, begin, end;

  PhaseColumns(const ConvShape& shape, int64_t step, int64_t r, int64_t phase)
      : shift(r - shape.pad[2]),
        begin(std::clamp<int64_t>(shift >= 0 ? 0 : (-shift + step - 1) / step, 0, phase)),
        end(std::clamp<int64_t>(shape.input[2] <= shift ? 0 : (shape.input[2] - 1 - shift) / step + 1, begin, phase)) {}
};

// Splits one input row, less `zero`; columns outside it are zero.
template <int Stride, class T>
void split_row(const ConvShape& shape, const T* from, T zero, int64_t phase, float* to) {
  const int64_t step = Stride ? Stride : shape.stride[2];
  for (int64_t r = 0; r < step; ++r, to += phase) {
    const PhaseColumns columns(shape, step, r, phase);
    std::fill(to, to + columns.begin, 0.0f);
    for (int64_t i = columns.begin; i < columns.end; ++i) to[i] = centered(from[columns.shift + i * step], zero);
    std::fill(to + columns.end, to + phase, 0.0f);
  }
}

template <class T>
void split_pairs(const T* __restrict from, T zero, float* __restrict first, float* __restrict second, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    first[i] = centered(from[2 * i], zero);
    second[i] = centered(from[2 * i + 1], zero);
  }
}

// The same with a stride of 2. Pairs of columns are read once, with what lies before and behind the row: what is no
// column of it is set to zero afterwards.
class SplitInTwo {
 public:
  SplitInTwo(const ConvShape& shape, int64_t phase) : first_column_(-shape.pad[2]), phase_(phase) {
    for (int64_t r = 0; r < 2; ++r) {
      const PhaseColumns columns(shape, 2, r, phase);
      for (int64_t i = 0; i < phase; ++i) {
        if (i < columns.begin || i >= columns.end) outside_.push_back(r * phase + i);
      }
    }
  }

  // Whether all that is read for a row at this place lies among so many elements.
  bool takes(int64_t row, int64_t elements) const {
    return row + first_column_ >= 0 && row + first_column_ + 2 * phase_ <= elements;
  }
  template <class T>
  void split(const T* row, T zero, float* to) const {
    split_pairs(row + first_column_, zero, to, to + phase_, phase_);
    for (int64_t place : outside_) to[place] = 0;
  }

 private:
  int64_t first_column_, phase_;
  std::vector<int64_t> outside_;
};

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
    if (stride == 2) in_two.emplace(shape, phase);
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
  std::optional<SplitInTwo> in_two;
};

// Fills `to`, layout.total floats, from one channel.
template <class T>
void fill(const ConvShape& shape, const PhaseLayout& layout, const T* channel, T zero, float* to) {
  std::fill(to + layout.total - slack, to + layout.total, 0.0f);
  const auto split = layout.stride == 1 ? split_row<1, T> : layout.stride == 2 ? split_row<2, T> : split_row<0, T>;
  for (int64_t d = 0; d < layout.extent.size[0]; ++d) {
    const int64_t from_d = d - shape.pad[0];
    for (int64_t h = 0; h < layout.extent.size[1]; ++h, to += layout.row) {
      const int64_t from_h = h - shape.pad[1];
      const int64_t row = (from_d * shape.input[1] + from_h) * shape.input[2];
      if (from_d < 0 || from_d >= shape.input[0] || from_h < 0 || from_h >= shape.input[1])
        std::fill(to, to + layout.row, 0.0f);
      else if (layout.in_two && layout.in_two->takes(row, shape.input_size()))
        layout.in_two->split(channel + row, zero, to);
      else
        split(shape, channel + row, zero, layout.phase, to);
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

// Images of floats become planes in memory.
struct FloatPlanes {
  const ConvShape& shape;
  const float* x;
  float* y;
  const ConvEpilogue& epilogue;

  void fill_image(const PhaseLayout& layout, int64_t channel, float* to) const {
    const float* from = x + channel * shape.input_size();
    if (layout.stride > 1) return fill(shape, layout, from, 0.0f, to);
    std::fill(to + layout.total - slack, to + layout.total, 0.0f);
    pad_channel(shape, layout.extent, from, to);
  }
  int64_t spare_floats() const { return 0; }
  float* plane(int64_t number, float*) const { return y + number * shape.output_size(); }
  void finish(int64_t number, float* sums) const {
    const float* residual = epilogue.residual ? epilogue.residual + number * shape.output_size() : nullptr;
    finish_plane(sums, residual, shape.output_size(), epilogue);
  }
};

// Images of bytes become planes that someone else stores.
template <class T>
struct BytePlanes {
  const ConvShape& shape;
  const T* x;
  T zero;
  FunctionRef<void(int64_t, const float*)> store;

  void fill_image(const PhaseLayout& layout, int64_t channel, float* to) const {
    fill(shape, layout, x + channel * shape.input_size(), zero, to);
  }
  int64_t spare_floats() const { return shape.output_size(); }
  float* plane(int64_t, float* spare) const { return spare; }
  void finish(int64_t number, const float* sums) const { store(number, sums); }
};

// Of the epilogue it knows bias, lo and hi.
template <class Planes>
void run_planes(ThreadPool& pool, const ConvShape& shape, const float* weights, const ConvEpilogue& epilogue,
                const Planes& planes) {
  const DepthwiseKernels& kernels = depthwise_kernels();
  const PhaseLayout layout(shape);
  const int64_t multiplier = shape.out_channels / shape.in_channels;
  const int64_t taps = shape.kernel_size(), outputs = shape.output_size();
  const int64_t grain = 1 + flops_per_task / std::max<int64_t>(1, 2 * taps * outputs * multiplier);
  pool.parallel_for(shape.batch * shape.in_channels, grain, [&](int64_t begin, int64_t end) {
    const Scratch scratch(static_cast<size_t>(layout.total + planes.spare_floats()) * sizeof(float));
    float* image = scratch.as<float>();
    for (int64_t i = begin; i < end; ++i) {
      planes.fill_image(layout, i, image);
      for (int64_t m = 0; m < multiplier; ++m) {
        const int64_t channel = i % shape.in_channels * multiplier + m;
        DepthwiseRows rows{image,
                           layout.offsets.data(),
                           weights + channel * taps,
                           taps,
                           epilogue.bias ? epilogue.bias[channel] : 0.0f,
                           epilogue.lo,
                           epilogue.hi,
                           shape.output[1],
                           shape.stride[1] * layout.row};
        float* const plane = planes.plane(i * multiplier + m, image + layout.total);
        for (int64_t d = 0; d < shape.output[0]; ++d) {
          rows.from = image + d * shape.stride[0] * layout.plane;
          kernels.rows(rows, plane + d * shape.output[1] * shape.output[2], shape.output[2]);
        }
        planes.finish(i * multiplier + m, plane);
      }
    }
  });
}

}  // namespace

void conv_depthwise(ThreadPool& pool, const ConvShape& shape, const float* x, const float* weights, float* y,
                    const ConvEpilogue& epilogue) {
  ConvEpilogue of_rows = epilogue;
  if (epilogue.residual) of_rows.lo = -infinity, of_rows.hi = infinity;
  run_planes(pool, shape, weights, of_rows, FloatPlanes{shape, x, y, epilogue});
}

void conv_depthwise_bytes(ThreadPool& pool, const ConvShape& shape, const void* x, bool is_signed, int32_t zero,
                          const float* weights, const float* bias,
                          FunctionRef<void(int64_t plane, const float* sums)> store) {
  const auto run = [&]<class T>(const T* bytes) {
    run_planes(pool, shape, weights, {.bias = bias}, BytePlanes<T>{shape, bytes, static_cast<T>(zero), store});
  };
  if (is_signed)
    run(static_cast<const int8_t*>(x));
  else
    run(static_cast<const uint8_t*>(x));
}

}  // namespace tenon::kernels
