#include "ops/cpu_support/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "base/whole_lines.h"
#include "ops/dispatch.h"

namespace tenon::ops {
namespace {

constexpr int64_t grain_bytes = 32 << 10;

struct Axis {
  int64_t size, from_stride, to_stride;
};
using Axes = SmallVector<Axis, 8>;

// Without axes of size 1, neighbours merged where both sides walk through them in one stride. At least one is left.
Axes simplify(std::span<const int64_t> from_strides, std::span<const int64_t> to_strides,
              std::span<const int64_t> sizes) {
  Axes axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    Axis axis{sizes[i], from_strides[i], to_strides[i]};
    if (!axes.empty() && axes.back().from_stride == axis.size * axis.from_stride &&
        axes.back().to_stride == axis.size * axis.to_stride) {
      axes.back() = {axes.back().size * axis.size, axis.from_stride, axis.to_stride};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  return axes;
}

using CopyRow = void (*)(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t count);

template <typename T>
void copy_row(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t count) {
  const T* __restrict in = static_cast<const T*>(from);
  T* __restrict out = static_cast<T*>(to);
  if (from_stride == 1 && to_stride == 1) {
    if constexpr (std::is_trivially_copyable_v<T>)
      copy_in_order(out, in, static_cast<size_t>(count) * sizeof(T));
    else
      std::copy_n(in, count, out);
  } else if (from_stride == 0 && to_stride == 1) {
    std::fill_n(out, count, *in);
  } else if (to_stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = in[i * from_stride];
  } else if (from_stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i * to_stride] = in[i];
  } else {
    for (int64_t i = 0; i < count; ++i) out[i * to_stride] = in[i * from_stride];
  }
}

// Copies elements [begin, end) of the box, counted in its row-major order.
void copy_range(const Axes& axes, CopyRow copy, int64_t bytes, const std::byte* from, std::byte* to, int64_t begin,
                int64_t end) {
  const Axis inner = axes.back();
  size_t outer = axes.size() - 1;
  SmallVector<int64_t, 8> index(axes.size(), 0);
  int64_t row = begin / inner.size, within = begin % inner.size, from_at = 0, to_at = 0;
  for (size_t a = outer; a-- > 0;) {
    index[a] = row % axes[a].size;
    row /= axes[a].size;
    from_at += index[a] * axes[a].from_stride;
    to_at += index[a] * axes[a].to_stride;
  }
  while (begin < end) {
    int64_t count = std::min(inner.size - within, end - begin);
    copy(from + (from_at + within * inner.from_stride) * bytes, inner.from_stride,
         to + (to_at + within * inner.to_stride) * bytes, inner.to_stride, count);
    begin += count;
    within = 0;
    for (size_t a = outer; a-- > 0;) {
      from_at += axes[a].from_stride;
      to_at += axes[a].to_stride;
      if (++index[a] < axes[a].size) break;
      index[a] = 0;
      from_at -= axes[a].size * axes[a].from_stride;
      to_at -= axes[a].size * axes[a].to_stride;
    }
  }
}

CopyRow copy_row_of(ElementType type) {
  CopyRow copy = nullptr;
  dispatch_width(type, [&]<typename T>() { copy = copy_row<T>; });
  return copy;
}

}  // namespace

SmallVector<int64_t, 6> dense_strides(const Shape& shape) {
  SmallVector<int64_t, 6> strides(static_cast<size_t>(shape.rank()), 1);
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = strides[static_cast<size_t>(axis) + 1] * shape[axis + 1];
  }
  return strides;
}

void strided_copy(ThreadPool& threads, ElementType type, const void* from, std::span<const int64_t> from_strides,
                  void* to, std::span<const int64_t> to_strides, std::span<const int64_t> sizes) {
  int64_t total = 1;
  for (int64_t size : sizes) total *= size;
  if (total <= 0) return;
  Axes axes = simplify(from_strides, to_strides, sizes);
  CopyRow copy = copy_row_of(type);
  int64_t bytes = bits_of(type) / 8;
  threads.parallel_for(total, std::max<int64_t>(1, grain_bytes / bytes), [&](int64_t begin, int64_t end) {
    copy_range(axes, copy, bytes, static_cast<const std::byte*>(from), static_cast<std::byte*>(to), begin, end);
  });
}

void copy_elements(ElementType type, const void* from, int64_t from_index, void* to, int64_t to_index, int64_t count) {
  if (count <= 0) return;
  if (type == ElementType::string) {
    std::copy_n(static_cast<const std::string*>(from) + from_index, count, static_cast<std::string*>(to) + to_index);
    return;
  }
  int64_t bytes = bits_of(type) / 8;
  copy_in_order(static_cast<std::byte*>(to) + to_index * bytes,
                static_cast<const std::byte*>(from) + from_index * bytes, static_cast<size_t>(count * bytes));
}

void fill(ThreadPool& threads, const Tensor& value, Tensor& to) {
  if (to.elements() == 0) return;
  int bits = bits_of(to.type());
  if (bits < 8) {
    uint8_t code = load_packed(value.raw(), bits, 0);
    std::memset(to.mutable_raw(), 0, static_cast<size_t>(to.bytes()));
    for (int64_t i = 0; i < to.elements(); ++i) store_packed(to.mutable_raw(), bits, i, code);
    return;
  }
  int64_t zero = 0, one = 1, count = to.elements();
  strided_copy(threads, to.type(), value.raw(), {&zero, 1}, to.mutable_raw(), {&one, 1}, {&count, 1});
}

const void* element_at(const Tensor& tensor, int64_t index) {
  return static_cast<const std::byte*>(tensor.raw()) + index * (bits_of(tensor.type()) / 8);
}

void* element_at(Tensor& tensor, int64_t index) {
  return static_cast<std::byte*>(tensor.mutable_raw()) + index * (bits_of(tensor.type()) / 8);
}

Tensor unpack_codes(const Tensor& packed, Allocator& allocator) {
  Tensor codes(ElementType::uint8, packed.shape(), allocator);
  auto out = codes.mutable_data<uint8_t>();
  int bits = bits_of(packed.type());
  for (size_t i = 0; i < out.size(); ++i) out[i] = load_packed(packed.raw(), bits, static_cast<int64_t>(i));
  return codes;
}

void pack_codes(const Tensor& codes, Tensor& packed) {
  auto in = codes.data<uint8_t>();
  int bits = bits_of(packed.type());
  if (packed.bytes() > 0) std::memset(packed.mutable_raw(), 0, static_cast<size_t>(packed.bytes()));
  for (size_t i = 0; i < in.size(); ++i) store_packed(packed.mutable_raw(), bits, static_cast<int64_t>(i), in[i]);
}

}  // namespace tenon::ops
