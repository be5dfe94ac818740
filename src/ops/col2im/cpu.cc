#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "ops/dispatch.h"
#include "ops/window.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

struct Axis {
  int64_t image, block, count, stride, dilation, pad;
};

// Input elements [from, from + count) of a plane are added to image elements to, to + stride, …
struct Row {
  int64_t from, to, count;
  bool is_before(const Row& next) const { return from + count == next.from && to + count == next.to; }
};

// The rows of blocks along the last axis that overlap the image, those that go on from each other as one; they are the
// same for every plane.
std::vector<Row> overlapping_rows(const std::vector<Axis>& axes) {
  const Axis& last = axes.back();
  int64_t taps = 1, rows = 1;
  for (const Axis& axis : axes) taps *= axis.block;
  for (size_t a = 0; a + 1 < axes.size(); ++a) rows *= axes[a].count;
  std::vector<Row> result;
  if (last.count == 0) return result;
  for (int64_t item = 0; item < taps * rows; ++item) {
    int64_t tap_rest = item / rows / last.block, row_rest = item % rows, index = 0, step = last.image;
    bool inside = true;
    for (size_t a = axes.size() - 1; a-- > 0;) {
      const Axis& axis = axes[a];
      const int64_t at = row_rest % axis.count * axis.stride - axis.pad + tap_rest % axis.block * axis.dilation;
      inside = inside && at >= 0 && at < axis.image;
      index += at * step;
      step *= axis.image;
      tap_rest /= axis.block;
      row_rest /= axis.count;
    }
    const int64_t shift = item / rows % last.block * last.dilation - last.pad;
    const int64_t begin = shift >= 0 ? 0 : (-shift - 1) / last.stride + 1;
    const int64_t end = last.image <= shift ? 0 : std::min(last.count, (last.image - 1 - shift) / last.stride + 1);
    if (!inside || begin >= end) continue;
    const Row row{item * last.count + begin, index + begin * last.stride + shift, end - begin};
    const bool goes_on = !result.empty() && last.stride == 1 && result.back().is_before(row);
    if (goes_on)
      result.back().count += row.count;
    else
      result.push_back(row);
  }
  return result;
}

// to[i] += from[i] for n elements, at least a vector of them. Rows are short: instead of a rest of single elements,
// the last vector may have some once more, as they were before.
template <typename T>
void add_vectors(const T* from, T* to, int64_t n) {
  using Vector [[gnu::vector_size(16)]] = T;
  constexpr int64_t width = sizeof(Vector) / sizeof(T);
  const auto load = [](const T* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  const auto store = [](T* p, Vector v) { std::memcpy(p, &v, sizeof v); };
  const Vector last = load(to + n - width);
  int64_t i = 0;
  for (; i < n - 2 * width; i += 2 * width) {
    const Vector first = load(to + i) + load(from + i), second = load(to + i + width) + load(from + i + width);
    store(to + i, first);
    store(to + i + width, second);
  }
  if (i < n - width) store(to + i, load(to + i) + load(from + i));
  store(to + n - width, last + load(from + n - width));
}

template <typename T, typename Sum>
void add_row(const T* __restrict from, Sum* __restrict to, int64_t count, int64_t stride) {
  if constexpr (std::is_arithmetic_v<T>) {
    if (stride == 1 && count * sizeof(T) >= 16) return add_vectors(from, to, count);
  }
  for (int64_t i = 0; i < count; ++i) to[i * stride] += static_cast<Sum>(from[i]);
}

template <typename T, typename Sum>
void add_blocks(ThreadPool& pool, const std::vector<Axis>& axes, int64_t planes, const T* x, T* y) {
  int64_t image = 1, plane_size = 1;
  for (const Axis& axis : axes) {
    image *= axis.image;
    plane_size *= axis.block * axis.count;
  }
  const std::vector<Row> rows = overlapping_rows(axes);
  const int64_t stride = axes.back().stride;
  pool.parallel_for(planes, 1 + 4096 / (plane_size + 1), [&](int64_t begin, int64_t end) {
    constexpr bool in_place = std::is_same_v<T, Sum>;
    std::vector<Sum> own(in_place ? 0 : static_cast<size_t>(image));
    for (int64_t plane = begin; plane < end; ++plane) {
      Sum* sums = own.data();
      if constexpr (in_place) sums = y + plane * image;
      std::fill_n(sums, image, Sum{});
      for (const Row& row : rows) add_row(x + plane * plane_size + row.from, sums + row.to, row.count, stride);
      for (int64_t i = 0; !in_place && i < image; ++i) y[plane * image + i] = static_cast<T>(sums[i]);
    }
  });
}

void run_col2im(KernelRun& run) {
  const Tensor& x = run.input(0);
  const std::vector<int64_t> image = run.ints(1), block = run.ints(2);
  const WindowAttributes window(run.node());
  if (image.size() != block.size() || image.empty()) {
    fail(ErrorCode::shape_mismatch, "image_shape has {} axes, block_shape {}", image.size(), block.size());
  }
  const int spatial = static_cast<int>(image.size());
  window.check(spatial);
  std::vector<Axis> axes;
  int64_t blocks = 1, taps = 1;
  for (int d = 0; d < spatial; ++d) {
    auto at = static_cast<size_t>(d);
    if (block[at] < 1) fail(ErrorCode::invalid_value, "block_shape has {}; it must be at least 1", block[at]);
    const WindowAxis axis = window.axis(d, spatial, block[at]);
    axes.push_back({image[at], block[at], std::max<int64_t>(0, axis.output(image[at]).value()), axis.stride,
                    axis.dilation, axis.pad_begin});
    blocks = checked_mul(blocks, axes.back().count);
    taps = checked_mul(taps, block[at]);
  }
  if (blocks != x.dim(2))
    fail(ErrorCode::shape_mismatch, "the input has {} blocks; {} fit into the image", x.dim(2), blocks);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const int64_t planes = x.dim(0) * (x.dim(1) / taps);
  dispatch<float, double, float16, bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t,
           std::complex<float>, std::complex<double>>(x.type(), [&]<typename T>() {
    using Sum = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
    add_blocks<T, Sum>(run.threads(), axes, planes, x.data<T>().data(), y.mutable_data<T>().data());
  });
}

}  // namespace

void cpu_col2im(CpuKernels& list) {
  list.add(
      "Col2Im",
      [](const NodeInfo&) -> std::unique_ptr<Kernel> {
        class Col2Im final : public Kernel {
          void run(KernelRun& run) const override { run_col2im(run); }
        };
        return std::make_unique<Col2Im>();
      },
      [](const ir::Node& node) -> std::string {
        const ir::Value* input = node.input(0);
        const ElementType type = input ? input->type.element : ElementType::undefined;
        return type == ElementType::string || type == ElementType::boolean
                   ? "elements that overlap are added, which strings and bools cannot be"
                   : "";
      });
}

}  // namespace tenon::ops
