// Reading tensors of indices.
#pragma once

#include "base/fail.h"
#include "tenon/tensor.h"

namespace tenon::ops {

[[noreturn, gnu::cold]] inline void fail_index(int64_t given, int64_t size, int axis) {
  fail(ErrorCode::invalid_value, "index {} is out of range for size {} on axis {}", given, size, axis);
}

// An index as 0 … size-1, counted from the end when negative; throws when it is neither.
inline int64_t checked_index(int64_t given, int64_t size, int axis) {
  const int64_t index = given + (given < 0 ? size : 0);
  if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(size)) [[unlikely]]
    fail_index(given, size, axis);
  return index;
}

// The indices of an int32 or int64 tensor, as they are given.
class Indices {
 public:
  explicit Indices(const Tensor& tensor)
      : narrow_(tensor.type() == ElementType::int32 ? tensor.data<int32_t>().data() : nullptr),
        wide_(narrow_ ? nullptr : tensor.data<int64_t>().data()) {}

  int64_t operator[](int64_t i) const { return narrow_ ? narrow_[i] : wide_[i]; }

  // Element i as 0 … size-1, counted from the end when negative; throws when it is neither.
  int64_t at(int64_t i, int64_t size, int axis) const { return checked_index((*this)[i], size, axis); }

  // Calls take(i, at(first + i, size, axis)) for i < count.
  template <typename Take>
  void for_each(int64_t first, int64_t count, int64_t size, int axis, Take take) const {
    if (narrow_) {
      for (int64_t i = 0; i < count; ++i) take(i, checked_index(narrow_[first + i], size, axis));
    } else {
      for (int64_t i = 0; i < count; ++i) take(i, checked_index(wide_[first + i], size, axis));
    }
  }

  // to[i] = at(first + i * step, size, axis) for i < count.
  void read(int64_t first, int64_t step, int64_t count, int64_t size, int axis, int64_t* to) const {
    if (narrow_) {
      for (int64_t i = 0; i < count; ++i) to[i] = checked_index(narrow_[first + i * step], size, axis);
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = checked_index(wide_[first + i * step], size, axis);
    }
  }

 private:
  const int32_t* narrow_;
  const int64_t* wide_;
};

}  // namespace tenon::ops
