// Reading tensors of indices.
#pragma once

#include "base/fail.h"
#include "tenon/tensor.h"

namespace tenon::ops {

// The indices of an int32 or int64 tensor, as they are given.
class Indices {
 public:
  explicit Indices(const Tensor& tensor)
      : narrow_(tensor.type() == ElementType::int32 ? tensor.data<int32_t>().data() : nullptr),
        wide_(narrow_ ? nullptr : tensor.data<int64_t>().data()) {}

  int64_t operator[](int64_t i) const { return narrow_ ? narrow_[i] : wide_[i]; }

  // Element i as 0 … size-1, counted from the end when negative; throws when it is neither.
  int64_t at(int64_t i, int64_t size, int axis) const {
    int64_t given = (*this)[i], index = given < 0 ? given + size : given;
    if (index < 0 || index >= size) {
      fail(ErrorCode::invalid_value, "index {} is out of range for size {} on axis {}", given, size, axis);
    }
    return index;
  }

 private:
  const int32_t* narrow_;
  const int64_t* wide_;
};

}  // namespace tenon::ops
