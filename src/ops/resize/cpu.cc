#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/whole_lines.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/resize/resize.h"
#include "ops/resize/sampling.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

constexpr int64_t work_per_task = 8 << 10;

// How a row is made of the elements of another one. An index below 0 means the extrapolation value.
template <typename T>
class GatheredRow {
 public:
  GatheredRow(const std::vector<int64_t>& columns, int64_t size, const T& outside)
      : columns_(columns.data()), width_(std::ssize(columns)), outside_(&outside) {
    bool identity = std::ssize(columns) == size, doubled = std::ssize(columns) == 2 * size, inside = true;
    for (int64_t i = 0; i < std::ssize(columns); ++i) {
      const int64_t column = columns[static_cast<size_t>(i)];
      identity = identity && column == i;
      doubled = doubled && column == i / 2;
      inside = inside && column >= 0;
    }
    kind_ = identity ? Kind::identity : doubled ? Kind::doubled : inside ? Kind::inside : Kind::any;
  }

  // The row `count` times, one after the other.
  void write(const T* from, T* __restrict to, int64_t count) const {
    const int64_t* column = columns_;
    const int64_t n = width_;
    switch (kind_) {
      case Kind::identity:
        std::copy_n(from, n, to);
        break;
      case Kind::doubled:
        for (; count > 0; --count, to += n) write_doubled(from, to, n / 2);
        return;
      case Kind::inside:
        for (int64_t i = 0; i < n; ++i) to[i] = from[column[i]];
        break;
      case Kind::any:
        for (int64_t i = 0; i < n; ++i) to[i] = column[i] < 0 ? *outside_ : from[column[i]];
        break;
    }
    for (int64_t k = 1; k < count; ++k) std::copy_n(to, n, to + k * n);
  }

 private:
  // Each of n elements twice.
  static void write_doubled(const T* from, T* to, int64_t n) {
    int64_t i = 0;
    if constexpr (std::is_integral_v<T>) {
      constexpr int width = 32 / sizeof(T);
      for (; i + width <= n; i += width)
        write_doubled_line(from + i, to + 2 * i, std::make_integer_sequence<int, width / 2>());
    }
    for (; i < n; ++i) to[2 * i] = to[2 * i + 1] = from[i];
  }
  template <int... lane>
  static void write_doubled_line(const T* from, T* to, std::integer_sequence<int, lane...>) {
    constexpr int width = sizeof...(lane);
    using Vector [[gnu::vector_size(16)]] = T;
    Vector x, y;
    std::memcpy(&x, from, sizeof x);
    std::memcpy(&y, from + width, sizeof y);
    const auto low = [](Vector v) { return (Bytes16)__builtin_shufflevector(v, v, (lane / 2)...); };
    const auto high = [](Vector v) { return (Bytes16)__builtin_shufflevector(v, v, (width / 2 + lane / 2)...); };
    store_line(to, low(x), high(x), low(y), high(y));
  }

  enum class Kind : uint8_t { identity, doubled, inside, any } kind_;
  const int64_t* columns_;
  int64_t width_;
  const T* outside_;
};

// Copies elements by index, all axes at once.
template <typename T>
void gather(ThreadPool& pool, const T* x, T* y, const Shape& in, const Shape& out,
            const std::vector<std::vector<int64_t>>& indices, const T& outside) {
  const int rank = in.rank();
  const int64_t width = out[rank - 1];
  const GatheredRow<T> whole_row(indices[static_cast<size_t>(rank - 1)], in[rank - 1], outside);
  pool.parallel_for(out.elements() / width, 1 + work_per_task / width, [&](int64_t begin, int64_t end) {
    // Copies, which what is written cannot change: they stay in registers.
    const GatheredRow<T> gathered = whole_row;
    const int64_t height = rank < 2 ? 1 : out[rank - 2], in_width = in[rank - 1];
    const int64_t* const rows = rank < 2 ? nullptr : indices[static_cast<size_t>(rank - 2)].data();
    const T* const from_images = x;
    T* const to = y;
    const int64_t out_width = width;
    // What the axes before the last two say, for the rows of one image.
    int64_t image = 0, within = height;
    bool image_inside = true;
    const auto find_image = [&](int64_t row) {
      int64_t rest = row / height, stride = rank < 2 ? 1 : in[rank - 1] * in[rank - 2];
      within = row % height;
      image = 0;
      image_inside = true;
      for (int axis = rank - 3; axis >= 0; --axis) {
        const int64_t index = indices[static_cast<size_t>(axis)][static_cast<size_t>(rest % out[axis])];
        image_inside = image_inside && index >= 0;
        image += index * stride;
        stride *= in[axis];
        rest /= out[axis];
      }
    };
    for (int64_t row = begin, count; row < end; row += count, within += count) {
      if (within == height) find_image(row);
      const int64_t* index = rows ? rows + within : nullptr;
      const int64_t most = rows ? std::min(end - row, height - within) : 1;
      for (count = 1; count < most && index[count] == index[0];) ++count;  // rows that are the same
      const int64_t from = index ? *index : 0;
      if (image_inside && from >= 0)
        gathered.write(from_images + image + from * in_width, to + row * out_width, count);
      else
        std::fill_n(to + row * out_width, count * out_width, outside);
    }
  });
}

// Elements that stay side by side, as one.
template <size_t size>
struct Unit {
  std::byte bytes[size];
};

// The same where elements of the last axis stay side by side: as units, where they have a size that is worth it.
template <typename T>
bool gather_units(ThreadPool& pool, const T* x, T* y, const Shape& in, const Shape& out,
                  const std::vector<std::vector<int64_t>>& indices) {
  const int rank = in.rank();
  for (const auto& list : indices) {
    if (std::ranges::any_of(list, [](int64_t index) { return index < 0; })) return false;
  }
  const std::vector<int64_t>& last = indices.back();
  for (size_t i = 0; i < last.size(); ++i) {
    if (last[i] != static_cast<int64_t>(i)) return false;
  }
  if (rank < 2 || in[rank - 1] != out[rank - 1]) return false;
  const auto without_last = [](const Shape& shape) { return Shape(std::span(shape.begin(), shape.end() - 1)); };
  const auto as_units = [&]<size_t size>() {
    if (static_cast<size_t>(in[rank - 1]) * sizeof(T) != size) return false;
    const std::vector<std::vector<int64_t>> outer(indices.begin(), indices.end() - 1);
    gather(pool, reinterpret_cast<const Unit<size>*>(x), reinterpret_cast<Unit<size>*>(y), without_last(in),
           without_last(out), outer, Unit<size>{});
    return true;
  };
  return as_units.template operator()<32>() || as_units.template operator()<64>();
}

// A sampling with weights in the type of the computation.
template <typename T>
struct Weighted {
  explicit Weighted(const Sampling& sampling)
      : s(sampling), weights(sampling.weights.begin(), sampling.weights.end()) {}
  const Sampling& s;
  std::vector<T> weights;

  bool outside(int64_t o) const { return !s.outside.empty() && s.outside[static_cast<size_t>(o)]; }

  // to[i] = the weighted sum of the rows that output `o` is made of.
  void mix_rows(const T* x, int64_t stride, int64_t o, T* __restrict to, int64_t n) const {
    const int64_t* index = s.indices.data() + o * s.taps;
    const T* weight = weights.data() + o * s.taps;
    if (s.taps == 2) {
      const T *a = x + index[0] * stride, *b = x + index[1] * stride;
      const T wa = weight[0], wb = weight[1];
      for (int64_t i = 0; i < n; ++i) to[i] = a[i] * wa + b[i] * wb;
    } else {
      mix_many_rows(x, stride, index, weight, to, n);
    }
  }

  // Apart, so that the loop above is inlined where rows are short.
  [[gnu::noinline]] void mix_many_rows(const T* x, int64_t stride, const int64_t* index, const T* weight, T* to,
                                       int64_t n) const {
    std::fill_n(to, n, T{});
    int64_t k = 0;
    for (; k < s.taps % 4; ++k) add_row(x + index[k] * stride, weight[k], to, n);
    for (; k < s.taps; k += 4) add_four_rows(x, stride, index + k, weight + k, to, n);
  }

  static void add_row(const T* row, T weight, T* __restrict to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] += row[i] * weight;
  }
  // Four at once, so that sums are stored a fourth as often.
  static void add_four_rows(const T* x, int64_t stride, const int64_t* index, const T* weight, T* __restrict to,
                            int64_t n) {
    const T *a = x + index[0] * stride, *b = x + index[1] * stride, *c = x + index[2] * stride,
            *d = x + index[3] * stride;
    const T wa = weight[0], wb = weight[1], wc = weight[2], wd = weight[3];
    for (int64_t i = 0; i < n; ++i) to[i] += (a[i] * wa + b[i] * wb) + (c[i] * wc + d[i] * wd);
  }

  // to[o] = the weighted sum of the elements of one row.
  void mix_elements(const T* row, T* __restrict to, int64_t outputs, T extrapolation) const {
    const int64_t* index = s.indices.data();
    const T* weight = weights.data();
    if (s.taps == 2) {
      for (int64_t o = 0; o < outputs; ++o)
        to[o] = row[index[2 * o]] * weight[2 * o] + row[index[2 * o + 1]] * weight[2 * o + 1];
    } else {
      for (int64_t o = 0; o < outputs; ++o, index += s.taps, weight += s.taps) {
        // Two sums that do not wait for each other; there is an even number of taps.
        T even{}, odd{};
        for (int64_t k = 0; k < s.taps; k += 2) {
          even += row[index[k]] * weight[k];
          odd += row[index[k + 1]] * weight[k + 1];
        }
        to[o] = even + odd;
      }
    }
    for (int64_t o = 0; !s.outside.empty() && o < outputs; ++o) {
      if (s.outside[static_cast<size_t>(o)]) to[o] = extrapolation;
    }
  }
};

// [outer, in, inner] to [outer, out, inner].
template <typename T>
void resize_axis(ThreadPool& pool, const T* x, T* y, int64_t outer, const ResizedAxis& axis, int64_t inner,
                 const Weighted<T>& w, T extrapolation) {
  if (inner == 1) {
    return pool.parallel_for(outer, 1 + work_per_task / (axis.output * w.s.taps), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        w.mix_elements(x + i * axis.input, y + i * axis.output, axis.output, extrapolation);
    });
  }
  pool.parallel_for(outer * axis.output, 1 + work_per_task / (inner * w.s.taps), [&](int64_t begin, int64_t end) {
    const T* from = x + begin / axis.output * axis.input * inner;
    for (int64_t i = begin, o = begin % axis.output; i < end; ++i, ++o) {
      if (o == axis.output) o = 0, from += axis.input * inner;
      T* to = y + i * inner;
      if (w.outside(o))
        std::fill_n(to, inner, extrapolation);
      else
        w.mix_rows(from, inner, o, to, inner);
    }
  });
}

// Both last axes at once: rows are mixed first, then the elements of the mixed row.
template <typename T>
void resize_image(ThreadPool& pool, const T* x, T* y, int64_t planes, const ResizedAxis& rows,
                  const ResizedAxis& columns, const Weighted<T>& by_row, const Weighted<T>& by_column,
                  T extrapolation) {
  const int64_t work = columns.input * by_row.s.taps + columns.output * by_column.s.taps;
  pool.parallel_for(planes * rows.output, 1 + work_per_task / work, [&](int64_t begin, int64_t end) {
    std::vector<T> mixed(static_cast<size_t>(columns.input));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i % rows.output;
      T* to = y + i * columns.output;
      if (by_row.outside(o)) {
        std::fill_n(to, columns.output, extrapolation);
        continue;
      }
      by_row.mix_rows(x + i / rows.output * rows.input * columns.input, columns.input, o, mixed.data(), columns.input);
      by_column.mix_elements(mixed.data(), to, columns.output, extrapolation);
    }
  });
}

// Elements that are no floats become some for the computation; afterwards their fraction is cut off.
template <typename T>
Tensor to_compute(const Tensor& x, ThreadPool& pool, Allocator& allocator) {
  Tensor result(element_type_of<T>, x.shape(), allocator);
  dispatch<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(x.type(), [&]<typename From>() {
    convert_elements(pool, x.data<From>().data(), result.mutable_data<T>().data(), x.elements());
  });
  return result;
}

template <typename T>
void from_compute(const T* from, Tensor& y) {
  dispatch<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(y.type(), [&]<typename To>() {
    auto to = y.mutable_data<To>();
    constexpr double low = static_cast<double>(std::numeric_limits<To>::min()),
                     high = static_cast<double>(std::numeric_limits<To>::max());
    for (size_t i = 0; i < to.size(); ++i) {
      auto value = static_cast<double>(from[i]);
      to[i] = value >= high ? std::numeric_limits<To>::max()
              : value > low ? static_cast<To>(value)
                            : std::numeric_limits<To>::min();
    }
  });
}

class Resize final : public Kernel {
 public:
  explicit Resize(const NodeInfo& info)
      : mode_(resize_mode(info.node())), extrapolation_(info.node().float_attribute("extrapolation_value", 0)) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    const Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    if (x.elements() == 0)
      fail(ErrorCode::invalid_value, "an empty tensor of shape {} cannot be resized to {}", x.shape().to_string(),
           y.shape().to_string());
    std::vector<ResizedAxis> axes = axes_of(run, x.shape(), y.shape());
    if (std::ranges::all_of(axes, [&](const ResizedAxis& axis) { return axis.is_identity(mode_); }))
      return run.set_output(0, run.value(0));
    if (mode_.filter == ResizeMode::Filter::nearest) return run_nearest(run, axes);
    if (is_floating(x.type())) {
      return dispatch_compute(x.type(), [&]<typename T>() {
        ComputeArguments<T> arguments(run);
        interpolate(run, arguments.in(0), arguments.out(0), x.shape(), axes);
        arguments.finish();
      });
    }
    if (bits_of(x.type()) <= 16)
      run_integers<float>(run, axes);
    else
      run_integers<double>(run, axes);
  }

 private:
  std::vector<ResizedAxis> axes_of(KernelRun& run, const Shape& in, const Shape& out) const {
    auto given = [&](size_t i) { return run.has_input(i) ? &run.input(i) : nullptr; };
    return axes_to_resize(run.node(), mode_, in, out, given(1), given(2), given(3));
  }

  void run_nearest(KernelRun& run, const std::vector<ResizedAxis>& axes) const {
    std::vector<std::vector<int64_t>> indices;
    for (const ResizedAxis& axis : axes) {
      Sampling sampling = sample_axis(mode_, axis);
      if (axis.is_identity(mode_)) {
        for (int64_t i = 0; i < axis.output; ++i) sampling.indices[static_cast<size_t>(i)] = i;
        sampling.outside.clear();
      }
      for (size_t o = 0; o < sampling.outside.size(); ++o) {
        if (sampling.outside[o]) sampling.indices[o] = -1;
      }
      indices.push_back(std::move(sampling.indices));
    }
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    Tensor outside = extrapolation_in(x.type());
    dispatch_width(x.type(), [&]<typename T>() {
      T value{};
      if constexpr (std::is_same_v<T, std::string>) {
        gather(run.threads(), x.data<std::string>().data(), y.mutable_data<std::string>().data(), x.shape(), y.shape(),
               indices, value);
      } else {
        const T* from = static_cast<const T*>(x.raw());
        if (gather_units(run.threads(), from, static_cast<T*>(y.mutable_raw()), x.shape(), y.shape(), indices)) return;
        std::memcpy(&value, outside.raw(), sizeof(T));
        gather(run.threads(), from, static_cast<T*>(y.mutable_raw()), x.shape(), y.shape(), indices, value);
      }
    });
  }

  // One element of the given type with the extrapolation value.
  Tensor extrapolation_in(ElementType type) const {
    Tensor result(type, Shape{});
    if (type == ElementType::string) return result;
    std::memset(result.mutable_raw(), 0, static_cast<size_t>(result.bytes()));
    if (extrapolation_ == 0) return result;
    if (is_floating(type)) {
      dispatch<float, double, float16, bfloat16>(
          type, [&]<typename T>() { result.mutable_data<T>()[0] = T(extrapolation_); });
    } else {
      from_compute(&extrapolation_, result);
    }
    return result;
  }

  template <typename T>
  void run_integers(KernelRun& run, const std::vector<ResizedAxis>& axes) const {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    Tensor in = to_compute<T>(x, run.threads(), run.allocator()), out(element_type_of<T>, y.shape(), run.allocator());
    interpolate(run, in.data<T>().data(), out.mutable_data<T>().data(), x.shape(), axes);
    from_compute(out.data<T>().data(), y);
  }

  template <typename T>
  void interpolate(KernelRun& run, const T* x, T* y, Shape shape, const std::vector<ResizedAxis>& axes) const {
    const int rank = shape.rank();
    std::vector<int> changed;
    for (int axis = 0; axis < rank; ++axis) {
      if (!axes[static_cast<size_t>(axis)].is_identity(mode_)) changed.push_back(axis);
    }
    const T extrapolation = static_cast<T>(extrapolation_);
    std::vector<Tensor> steps;
    for (size_t k = 0; k < changed.size(); ++k) {
      const int axis = changed[k];
      const ResizedAxis& own = axes[static_cast<size_t>(axis)];
      const bool image = k + 2 == changed.size() && axis == rank - 2;
      Shape next = shape;
      next[axis] = own.output;
      if (image) next[rank - 1] = axes.back().output;
      T* to = y;
      if (k + (image ? 2 : 1) < changed.size()) {
        steps.emplace_back(element_type_of<T>, next, run.allocator());
        to = steps.back().template mutable_data<T>().data();
      }
      const Sampling sampling = sample_axis(mode_, own);
      const Weighted<T> weighted(sampling);
      if (image) {
        const Sampling columns = sample_axis(mode_, axes.back());
        return resize_image(run.threads(), x, to, shape.elements(0, axis), own, axes.back(), weighted,
                            Weighted<T>(columns), extrapolation);
      }
      resize_axis(run.threads(), x, to, shape.elements(0, axis), own, shape.elements(axis + 1, rank), weighted,
                  extrapolation);
      x = to;
      shape = next;
    }
  }

  ResizeMode mode_;
  float extrapolation_;
};

}  // namespace

void cpu_resize(CpuKernels& list) {
  list.add("Resize", [](const NodeInfo& info) { return std::make_unique<Resize>(info); });
}

}  // namespace tenon::ops
