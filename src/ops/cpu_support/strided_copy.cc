#include "ops/cpu_support/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/whole_lines.h"
#include "ops/dispatch.h"

namespace tenon::ops {
namespace {

constexpr int64_t grain_bytes = 32 << 10;

struct Axis {
  int64_t size, from_stride, to_stride;  // strides in bytes
  bool repeats = false;                  // a block that lies in one piece, one after the other
};
using Axes = SmallVector<Axis, 8>;

// Without axes of size 1, neighbours merged where both sides walk through them in one stride. At least one is left.
Axes simplify(std::span<const int64_t> from_strides, std::span<const int64_t> to_strides,
              std::span<const int64_t> sizes, int64_t bytes) {
  Axes axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    Axis axis{sizes[i], from_strides[i] * bytes, to_strides[i] * bytes};
    if (!axes.empty() && axes.back().from_stride == axis.size * axis.from_stride &&
        axes.back().to_stride == axis.size * axis.to_stride) {
      axes.back() = {axes.back().size * axis.size, axis.from_stride, axis.to_stride};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, bytes, bytes});
  int64_t block = bytes;
  for (size_t i = axes.size(); i-- > 0 && axes[i].to_stride == block; block *= axes[i].size)
    axes[i].repeats = axes[i].from_stride == 0;
  return axes;
}

// The functions below copy `count` rows of `bytes` bytes that lie `*_stride` bytes apart. They pass numbers, not
// structs: what lies on the stack can only be read once it is stored, after all that was stored before.

// Rows of `unit` bytes, or of less than twice as many: then two copies overlap.
template <size_t unit>
void copy_tiny_rows(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count,
                    size_t bytes) {
  for (int64_t i = 0; i < count; ++i, from += from_stride, to += to_stride) {
    std::memcpy(to, from, unit);
    if (bytes > unit) std::memcpy(to + bytes - unit, from + bytes - unit, unit);
  }
}

constexpr size_t vector_bytes = 16, most_vectors = 16;

// Rows of so many vectors, the last two of which may overlap.
template <size_t vectors>
void copy_rows_of_vectors(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count,
                          size_t bytes) {
  for (int64_t i = 0; i < count; ++i, from += from_stride, to += to_stride) {
    std::memcpy(to, from, (vectors - 1) * vector_bytes);
    std::memcpy(to + bytes - vector_bytes, from + bytes - vector_bytes, vector_bytes);
  }
}

using CopyBytes = void (*)(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count,
                           size_t bytes);
constexpr auto copies_of_vectors = []<size_t... i>(std::index_sequence<i...>) {
  return std::array<CopyBytes, most_vectors>{copy_rows_of_vectors<i + 1>...};
}
(std::make_index_sequence<most_vectors>());

void copy_long_rows(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count,
                    size_t bytes) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, bytes);
}

CopyBytes copy_of_rows(size_t bytes) {
  if (bytes > most_vectors * vector_bytes) return copy_long_rows;
  if (bytes >= vector_bytes) return copies_of_vectors[(bytes - 1) / vector_bytes];
  return bytes >= 8   ? copy_tiny_rows<8>
         : bytes >= 4 ? copy_tiny_rows<4>
         : bytes >= 2 ? copy_tiny_rows<2>
                      : copy_tiny_rows<1>;
}

template <typename T>
void fill_row(const T& value, T* to, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    using Vector [[gnu::vector_size(32)]] = T;
    constexpr int64_t width = 32 / sizeof(T);
    const Vector vector = Vector{} + value;
    for (; count >= width; count -= width, to += width) std::memcpy(to, &vector, sizeof vector);
  }
  std::fill_n(to, count, value);
}

using CopyRow = void (*)(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count);

template <typename T>
void copy_row(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count) {
  constexpr int64_t bytes = sizeof(T);
  const T* __restrict in = reinterpret_cast<const T*>(from);
  T* __restrict out = reinterpret_cast<T*>(to);
  from_stride /= bytes;
  to_stride /= bytes;
  if (from_stride == 1 && to_stride == 1) {
    if constexpr (std::is_trivially_copyable_v<T>)
      copy_in_order(out, in, static_cast<size_t>(count) * sizeof(T));
    else
      std::copy_n(in, count, out);
  } else if (from_stride == 0 && to_stride == 1) {
    fill_row(*in, out, count);
  } else if (to_stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = in[i * from_stride];
  } else if (from_stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i * to_stride] = in[i];
  } else {
    for (int64_t i = 0; i < count; ++i) out[i * to_stride] = in[i * from_stride];
  }
}

// Writes the first `bytes` again and again, `count` times in all; what is written is the source of longer copies.
void repeat_block(std::byte* to, size_t bytes, int64_t count) {
  constexpr size_t enough = 4096;
  const size_t total = bytes * static_cast<size_t>(count), most = std::max<size_t>(1, enough / bytes) * bytes;
  for (size_t done = bytes; done < total;) {
    const size_t next = std::min({done, most, total - done});
    std::memcpy(to + done, to, next);
    done += next;
  }
}

// Copies boxes of axes, the last of which has a given size.
class BoxCopy {
 public:
  BoxCopy(ElementType type, const Axis& last) : by_bytes_(type != ElementType::string) {
    dispatch_width(type, [&]<typename T>() { row_ = copy_row<T>; });
    const int64_t bytes = bits_of(type) / 8;
    if (by_bytes_ && last.from_stride == bytes && last.to_stride == bytes) {
      row_bytes_ = static_cast<size_t>(last.size * bytes);
      rows_ = copy_of_rows(row_bytes_);
    }
  }

  void box(std::span<const Axis> axes, const std::byte* from, std::byte* to) const {
    constexpr int64_t few_repeats = 8;
    const Axis& first = axes[0];
    if (axes.size() == 1) return row_(from, first.from_stride, to, first.to_stride, first.size);
    if (first.repeats && by_bytes_ && (axes.size() > 2 || first.size >= few_repeats)) {
      box(axes.subspan(1), from, to);
      return repeat_block(to, static_cast<size_t>(first.to_stride), first.size);
    }
    if (axes.size() == 2) return rows(first, axes[1], from, to);
    for (int64_t i = 0; i < first.size; ++i)
      box(axes.subspan(1), from + i * first.from_stride, to + i * first.to_stride);
  }

 private:
  void rows(const Axis& rows, const Axis& row, const std::byte* from, std::byte* to) const {
    if (rows_) return rows_(from, rows.from_stride, to, rows.to_stride, rows.size, row_bytes_);
    for (int64_t i = 0; i < rows.size; ++i)
      row_(from + i * rows.from_stride, row.from_stride, to + i * rows.to_stride, row.to_stride, row.size);
  }

  bool by_bytes_;  // whether elements are but their bytes
  CopyRow row_ = nullptr;
  CopyBytes rows_ = nullptr;  // null where elements of a row do not lie side by side
  size_t row_bytes_ = 0;
};

// A box cut into pieces of about `grain_bytes`: one axis is taken some steps at a time, those after it are whole.
class Pieces {
 public:
  Pieces(Axes axes, int64_t bytes) : axes_(std::move(axes)) {
    const int64_t most = std::max<int64_t>(1, grain_bytes / bytes);
    int64_t whole = 1;
    cut_ = axes_.size() - 1;
    while (cut_ > 0 && whole * axes_[cut_].size <= most) whole *= axes_[cut_--].size;
    step_ = std::clamp<int64_t>(most / whole, 1, axes_[cut_].size);
    along_cut_ = (axes_[cut_].size + step_ - 1) / step_;
    count_ = along_cut_;
    for (size_t a = 0; a < cut_; ++a) count_ *= axes_[a].size;
  }

  int64_t count() const { return count_; }

  // Copies pieces [begin, end), neighbours on the cut axis at once.
  void copy(const BoxCopy& copy, int64_t begin, int64_t end, const std::byte* from, std::byte* to) const {
    Axes axes(axes_.begin() + cut_, axes_.end());
    while (begin < end) {
      const int64_t at = begin % along_cut_ * step_, count = std::min(along_cut_ - begin % along_cut_, end - begin);
      axes[0].size = std::min(count * step_, axes_[cut_].size - at);
      int64_t from_at = at * axes[0].from_stride, to_at = at * axes[0].to_stride, outer = begin / along_cut_;
      for (size_t a = cut_; a-- > 0; outer /= axes_[a].size) {
        from_at += outer % axes_[a].size * axes_[a].from_stride;
        to_at += outer % axes_[a].size * axes_[a].to_stride;
      }
      copy.box({axes.data(), axes.size()}, from + from_at, to + to_at);
      begin += count;
    }
  }

 private:
  Axes axes_;
  int64_t step_, along_cut_, count_;
  size_t cut_;
};

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
  const int64_t bytes = bits_of(type) / 8;
  const Axes axes = simplify(from_strides, to_strides, sizes, bytes);
  const Pieces pieces(axes, bytes);
  const BoxCopy copy(type, axes.back());
  threads.parallel_for(pieces.count(), 1, [&](int64_t begin, int64_t end) {
    pieces.copy(copy, begin, end, static_cast<const std::byte*>(from), static_cast<std::byte*>(to));
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
