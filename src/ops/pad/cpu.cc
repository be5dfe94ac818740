#include <algorithm>

#include "base/fail.h"
#include "ops/cpu_support/strided_copy.h"
#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"
#include "provider/output_shape.h"

namespace tenon::ops {
namespace {

enum class Mode : uint8_t { constant, reflect, edge, wrap };

// Along one axis: which index of the input each index of the output takes; -1 for the constant.
struct AxisMap {
  int64_t size = 0;                         // of the output
  int64_t first = 0, count = 0, start = 0;  // outputs [first, first + count) take inputs from `start` on
  std::vector<int64_t> border;              // what the others take

  AxisMap(int64_t length, int64_t before, int64_t after, Mode mode, int axis)
      : size(length + before + after), first(std::max<int64_t>(0, before)), start(std::max<int64_t>(0, -before)) {
    int64_t kept = length - std::max<int64_t>(0, -after) - start;
    if (kept < 0 || (kept == 0 && mode != Mode::constant && size > 0)) {
      if (mode != Mode::constant) fail(ErrorCode::shape_mismatch, "axis {} has no elements left to pad with", axis);
      kept = 0;
    }
    const int64_t offset = first;
    first = std::min(first, size);
    count = std::min(kept, size - first);
    border.reserve(static_cast<size_t>(size - count));
    for (int64_t i = 0; i < first; ++i) border.push_back(source(i - offset, kept, start, mode));
    for (int64_t i = first + count; i < size; ++i) border.push_back(source(i - offset, kept, start, mode));
  }

  int64_t at(int64_t i) const {
    if (i >= first && i < first + count) return start + i - first;
    return border[static_cast<size_t>(i < first ? i : i - count)];
  }

  // How many indices after i % size are within the range that is taken as it is.
  int64_t kept_after(int64_t i) const {
    i %= size;
    return i >= first && i < first + count ? first + count - 1 - i : 0;
  }

  // at modulo period, mostly without a division.
  static int64_t modulo(int64_t at, int64_t period) {
    at += at < 0 ? period : at >= period ? -period : 0;
    return at >= 0 && at < period ? at : (at % period + period) % period;
  }

  static int64_t source(int64_t at, int64_t kept, int64_t low, Mode mode) {
    if (at >= 0 && at < kept) return low + at;
    switch (mode) {
      case Mode::constant:
        return -1;
      case Mode::edge:
        return low + std::clamp<int64_t>(at, 0, kept - 1);
      case Mode::wrap:
        return low + modulo(at, kept);
      case Mode::reflect:
        break;
    }
    if (kept == 1) return low;
    const int64_t period = 2 * (kept - 1), within = modulo(at, period);
    return low + std::min(within, period - within);
  }
};

// Works row by row along the last axis that is padded; the axes after it move as one block.
class Padder {
 public:
  Padder(const Tensor& x, std::span<const int64_t> before, std::span<const int64_t> after, Mode mode) : x_(x) {
    int rank = x.rank();
    while (rank > 1 && before[static_cast<size_t>(rank) - 1] == 0 && after[static_cast<size_t>(rank) - 1] == 0) --rank;
    block_ = x.shape().elements(rank, x.rank());
    strides_ = dense_strides(x.shape());
    for (int axis = 0; axis < rank; ++axis) {
      auto a = static_cast<size_t>(axis);
      maps_.emplace_back(x.dim(axis), before[a], after[a], mode, axis);
    }
  }

  // `value` is one element.
  void run(ThreadPool& threads, const void* value, Tensor& y) const {
    if (y.elements() == 0) return;
    const AxisMap& last = maps_.back();
    int64_t row_length = last.size * block_, bytes = bits_of(y.type()) / 8;
    int64_t rows = y.elements() / row_length;
    dispatch_width(y.type(), [&]<typename T>() {
      threads.parallel_for(
          rows, std::max<int64_t>(1, (32 << 10) / (row_length * bytes)),
          [&](int64_t begin, int64_t end) { write_rows(*static_cast<const T*>(value), y, begin, end, row_length); });
    });
  }

 private:
  // Where the input of row number `row` of the output begins; -1 if the row is all constant.
  int64_t start_of(int64_t row) const {
    int64_t start = 0;
    for (size_t axis = maps_.size() - 1; axis-- > 0;) {
      const int64_t size = maps_[axis].size, at = maps_[axis].at(row % size);
      if (at < 0) return -1;
      start += at * strides_[axis];
      row /= size;
    }
    return start;
  }

  template <typename T>
  void write_rows(const T& value, Tensor& y, int64_t begin, int64_t end, int64_t row_length) const {
    const T* from = static_cast<const T*>(x_.raw());
    T* to = static_cast<T*>(y.mutable_raw()) + begin * row_length;
    int64_t start = -1, left = 0;  // rows after this one that begin one stride later each
    for (int64_t row = begin; row < end; ++row, to += row_length) {
      if (left-- > 0) {
        start += strides_[maps_.size() - 2];
      } else {
        start = start_of(row);
        left = start < 0 || maps_.size() < 2 ? 0 : maps_[maps_.size() - 2].kept_after(row);
      }
      if (start < 0)
        std::fill_n(to, row_length, value);
      else
        write_row(value, from + start, to);
    }
  }

  template <typename T>
  void write_row(const T& value, const T* from, T* to) const {
    const AxisMap& last = maps_.back();
    const int64_t after = last.first + last.count;
    write_border(value, from, to, 0, last.first);
    std::copy_n(from + last.start * block_, last.count * block_, to + last.first * block_);
    write_border(value, from, to, after, last.size);
  }

  // Indices [begin, end) of the last padded axis.
  template <typename T>
  void write_border(const T& value, const T* from, T* to, int64_t begin, int64_t end) const {
    if (block_ > 1) return write_border_blocks(value, from, to, begin, end);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = maps_.back().at(i);
      to[i] = at < 0 ? value : from[at];
    }
  }

  // All of them are the constant, or none is.
  template <typename T>
  [[gnu::noinline]] void write_border_blocks(const T& value, const T* from, T* to, int64_t begin, int64_t end) const {
    if (begin < end && maps_.back().at(begin) < 0) return std::fill(to + begin * block_, to + end * block_, value);
    for (int64_t i = begin; i < end; ++i) std::copy_n(from + maps_.back().at(i) * block_, block_, to + i * block_);
  }

  const Tensor& x_;
  int64_t block_;
  SmallVector<int64_t, 6> strides_;
  std::vector<AxisMap> maps_;
};

// One element whose bits are 0, or an empty string.
Tensor zero_of(ElementType type) {
  Tensor zero(type, Shape{});
  if (type != ElementType::string) std::fill_n(static_cast<std::byte*>(zero.mutable_raw()), zero.bytes(), std::byte{0});
  return zero;
}

void pad(KernelRun& run, std::span<const int64_t> before, std::span<const int64_t> after, Mode mode,
         const Tensor& value) {
  const Tensor& x = run.input(0);
  if (std::ranges::all_of(before, [](int64_t n) { return n == 0; }) &&
      std::ranges::all_of(after, [](int64_t n) { return n == 0; })) {
    return run.set_output(0, x);
  }
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  if (bits_of(x.type()) >= 8) return Padder(x, before, after, mode).run(run.threads(), value.raw(), y);
  Tensor codes = unpack_codes(x, run.allocator()), padded(ElementType::uint8, y.shape(), run.allocator());
  uint8_t code = load_packed(value.raw(), bits_of(value.type()), 0);
  Padder(codes, before, after, mode).run(run.threads(), &code, padded);
  pack_codes(padded, y);
}

class Pad final : public Kernel {
 public:
  explicit Pad(const NodeInfo& info) {
    std::string mode = info.node().string_attribute("mode", "constant");
    mode_ = mode == "reflect" ? Mode::reflect
            : mode == "edge"  ? Mode::edge
            : mode == "wrap"  ? Mode::wrap
                              : Mode::constant;
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    output_shape(run, 0);  // which inference knows only when it has checked pads and axes
    auto rank = static_cast<size_t>(x.rank());
    std::vector<int64_t> pads = run.ints(1), axes, before(rank), after(rank);
    if (run.has_input(3)) {
      axes = run.ints(3);
    } else {
      for (size_t axis = 0; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
    }
    if (pads.size() != 2 * axes.size())
      fail(ErrorCode::shape_mismatch, "there are {} pads for {} axes; each takes two", pads.size(), axes.size());
    for (size_t k = 0; k < axes.size(); ++k) {
      auto axis = static_cast<size_t>(axes[k] < 0 ? axes[k] + x.rank() : axes[k]);
      before[axis] = pads[k];
      after[axis] = pads[k + axes.size()];
    }
    if (run.has_input(2) && run.input(2).elements() > 1) {
      fail(ErrorCode::shape_mismatch, "constant_value must be one element, it has {}", run.input(2).elements());
    }
    bool has_value = run.has_input(2) && run.input(2).elements() == 1;
    pad(run, before, after, mode_, has_value ? run.input(2) : zero_of(x.type()));
  }

 private:
  Mode mode_;
};

class CenterCropPad final : public Kernel {
 public:
  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    const Shape& shape = output_shape(run, 0);
    std::vector<int64_t> before, after;
    for (int axis = 0; axis < x.rank(); ++axis) {
      // Halves are rounded towards the front of the larger of both.
      int64_t difference = shape[axis] - x.dim(axis), front = difference / 2;
      before.push_back(front);
      after.push_back(difference - front);
    }
    pad(run, before, after, Mode::constant, zero_of(x.type()));
  }
};

}  // namespace

void cpu_pad(CpuKernels& list) {
  list.add("Pad", [](const NodeInfo& info) { return std::make_unique<Pad>(info); });
  list.add("CenterCropPad", [](const NodeInfo&) { return std::make_unique<CenterCropPad>(); });
}

}  // namespace tenon::ops
