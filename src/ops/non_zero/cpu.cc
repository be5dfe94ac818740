#include <algorithm>
#include <vector>

#include "ops/cpu_support/strided_copy.h"
#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

template <typename T>
bool is_set(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return !value.empty();
  } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return (value.bits & 0x7fff) != 0;
  } else {
    return value != T(0);
  }
}

template <typename T>
int64_t count_set(const T* values, int64_t count) {
  int64_t set = 0;
  for (int64_t i = 0; i < count; ++i) set += is_set(values[i]);
  return set;
}

// The rows of a result of NonZero, one for each axis, as far as they are written.
class Coordinates {
 public:
  Coordinates(const Shape& shape, int64_t* out, int64_t columns)
      : shape_(shape),
        last_axis_(shape.rank() - 1),
        outer_(static_cast<size_t>(last_axis_)),
        out_(out),
        columns_(columns) {}

  // Elements at these places of the last axis.
  void add(const int64_t* places, int64_t count) {
    for (int axis = 0; axis < last_axis_; ++axis)
      std::fill_n(out_ + axis * columns_ + at_, count, outer_[static_cast<size_t>(axis)]);
    std::copy_n(places, count, out_ + last_axis_ * columns_ + at_);
    at_ += count;
  }

  void next_row() {
    for (int axis = last_axis_; axis-- > 0;) {
      int64_t& index = outer_[static_cast<size_t>(axis)];
      if (++index < shape_[axis]) return;
      index = 0;
    }
  }

 private:
  const Shape& shape_;
  int last_axis_;
  std::vector<int64_t> outer_;  // of the row, its index on every other axis
  int64_t* out_;
  int64_t columns_, at_ = 0;
};

template <typename T>
void write_coordinates(const T* values, const Shape& shape, int64_t* out, int64_t columns) {
  constexpr int64_t block = 256;
  int64_t places[block];
  Coordinates coordinates(shape, out, columns);
  const int64_t size = shape[shape.rank() - 1], rows = shape.elements() / size;
  for (int64_t row = 0; row < rows; ++row, values += size, coordinates.next_row()) {
    for (int64_t first = 0; first < size; first += block) {
      const int64_t end = std::min(size, first + block);
      int64_t count = 0;
      // Without branches, which nothing could foresee.
      for (int64_t i = first; i < end; ++i) {
        places[count] = i;
        count += is_set(values[i]);
      }
      coordinates.add(places, count);
    }
  }
}

void non_zero(KernelRun& run) {
  const Tensor& x = run.input(0);
  dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
           bool, std::string, std::complex<float>, std::complex<double>>(x.type(), [&]<typename T>() {
    const T* values = x.data<T>().data();
    const int64_t columns = count_set(values, x.elements());
    int64_t* out = run.output(0, ElementType::int64, Shape{x.rank(), columns}).mutable_data<int64_t>().data();
    if (columns > 0 && x.rank() > 0) write_coordinates(values, x.shape(), out, columns);
  });
}

// Where the condition holds. Without branches, which nothing could foresee.
std::vector<int64_t> set_places(std::span<const bool> condition) {
  std::vector<int64_t> places(condition.size());
  size_t count = 0;
  for (size_t i = 0; i < condition.size(); ++i) {
    places[count] = static_cast<int64_t>(i);
    count += condition[i];
  }
  places.resize(count);
  return places;
}

class Compress final : public Kernel {
 public:
  explicit Compress(const NodeInfo& info)
      : flat_(!info.node().attribute("axis")), axis_(info.node().int_attribute("axis", 0)) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    auto condition = run.data<bool>(1);
    int axis = flat_ ? 0 : static_cast<int>(axis_ < 0 ? axis_ + x.rank() : axis_);
    int64_t size = flat_ ? x.elements() : x.dim(axis);
    int64_t outer = flat_ ? 1 : x.shape().elements(0, axis), inner = flat_ ? 1 : x.shape().elements(axis + 1, x.rank());
    const std::vector<int64_t> kept = set_places(condition);
    if (!kept.empty() && kept.back() >= size) {
      fail(ErrorCode::invalid_value, "the condition selects index {}, there are {} elements", kept.back(), size);
    }
    auto count = static_cast<int64_t>(kept.size());
    Shape shape = flat_ ? Shape{count} : x.shape();
    if (!flat_) shape[axis] = count;
    Tensor& y = run.output(0, x.type(), shape);
    if (inner > 1) {
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t k = 0; k < count; ++k) {
          copy_elements(x.type(), x.raw(), (o * size + kept[static_cast<size_t>(k)]) * inner, y.mutable_raw(),
                        (o * count + k) * inner, inner);
        }
      }
      return;
    }
    dispatch_width(x.type(), [&]<typename T>() {
      const T* from = static_cast<const T*>(x.raw());
      T* to = static_cast<T*>(y.mutable_raw());
      for (int64_t o = 0; o < outer; ++o, from += size) {
        for (int64_t place : kept) *to++ = from[place];
      }
    });
  }

 private:
  bool flat_;
  int64_t axis_;
};

}  // namespace

void cpu_non_zero(CpuKernels& list) {
  list.add_simple("NonZero", non_zero);
  list.add("Compress", [](const NodeInfo& info) { return std::make_unique<Compress>(info); });
}

}  // namespace tenon::ops
