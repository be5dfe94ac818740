#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tenon/small_vector.h"

namespace tenon {

// The sizes of a tensor, outermost first. A scalar has none.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims.begin(), dims.end()) {}
  explicit Shape(std::span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}
  Shape(int rank, int64_t fill) { dims_.resize(static_cast<size_t>(rank), fill); }

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t& operator[](int axis) { return dims_[static_cast<size_t>(axis)]; }
  const int64_t* begin() const { return dims_.begin(); }
  const int64_t* end() const { return dims_.end(); }
  std::span<const int64_t> dims() const { return {dims_.data(), dims_.size()}; }
  void push_back(int64_t dim) { dims_.push_back(dim); }

  // Product of the dims in [from, to); throws ErrorCode::overflow.
  int64_t elements() const { return elements(0, rank()); }
  int64_t elements(int from, int to) const;

  // "[1, 3, 224, 224]"
  std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }

 private:
  SmallVector<int64_t, 6> dims_;
};

}  // namespace tenon
