#pragma once

#include <memory>
#include <span>
#include <type_traits>

#include "tenon/element_type.h"
#include "tenon/error.h"
#include "tenon/scalar.h"
#include "tenon/shape.h"

namespace tenon {

// Where tensors get their memory. Implementations are thread-safe and throw ErrorCode::out_of_memory.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Memory of at least `bytes`, aligned to 64, that is given back when the last owner lets go.
  virtual std::shared_ptr<void> allocate(int64_t bytes) = 0;
};

// Plain aligned memory of the process.
Allocator& system_allocator();

// A dense tensor: element type, shape, and shared, contiguous, row-major memory. Copies share the memory.
class Tensor {
 public:
  Tensor() = default;
  // Uninitialised memory; strings are empty.
  Tensor(ElementType type, Shape shape, Allocator& allocator = system_allocator());
  // A copy of `values`.
  template <typename T>
  requires(element_type_of<T> != ElementType::undefined) Tensor(Shape shape, std::span<const T> values)
      : Tensor(element_type_of<T>, std::move(shape)) {
    copy_from(values.data(), values.size());
  }
  template <typename T>
  requires(element_type_of<T> != ElementType::undefined) Tensor(Shape shape, std::initializer_list<T> values)
      : Tensor(std::move(shape), std::span<const T>(values.begin(), values.size())) {}
  template <typename T>
  requires(element_type_of<T> != ElementType::undefined && !std::is_same_v<T, bool>) static Tensor scalar(T value) {
    return Tensor(Shape{}, std::span<const T>(&value, 1));
  }

  // A tensor over memory of the caller, who keeps it alive, or hands in an owner that does.
  static Tensor over(ElementType type, Shape shape, void* data, std::shared_ptr<void> owner = nullptr);

  bool defined() const { return type_ != ElementType::undefined; }
  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t elements() const { return elements_; }
  int64_t bytes() const { return byte_size(type_, elements_); }

  const void* raw() const { return data_; }
  void* mutable_raw() { return data_; }

  // The elements; throws ErrorCode::type_mismatch unless T is this tensor's element type.
  template <typename T>
  std::span<const T> data() const {
    require_type(element_type_of<T>);
    return {static_cast<const T*>(data_), static_cast<size_t>(elements_)};
  }
  template <typename T>
  std::span<T> mutable_data() {
    require_type(element_type_of<T>);
    return {static_cast<T*>(data_), static_cast<size_t>(elements_)};
  }

  // The same memory under another shape of as many elements.
  Tensor reshaped(Shape shape) const;
  // `shape` elements from `first` on, sharing the memory. Sub-byte types must start at a byte.
  Tensor part(int64_t first, Shape shape) const;
  // Memory of its own.
  Tensor clone(Allocator& allocator = system_allocator()) const;

  // Whether this object is the only owner of its memory.
  bool sole_owner() const { return owner_.use_count() == 1; }
  const std::shared_ptr<void>& owner() const { return owner_; }

 private:
  void require_type(ElementType wanted) const {
    if (wanted != type_) throw_type_mismatch(wanted);
  }
  [[noreturn]] void throw_type_mismatch(ElementType wanted) const;
  // Copies `count` elements, which must be as many as the shape has, from an array of this tensor's type.
  void copy_from(const void* values, size_t count);

  ElementType type_ = ElementType::undefined;
  Shape shape_;
  int64_t elements_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

// The same type, shape and bytes (strings by content).
bool identical(const Tensor& a, const Tensor& b);

// Element `index` of a tensor of 2, 4 or 6 bits per element, as its unsigned code.
uint8_t load_packed(const void* data, int bits, int64_t index);
void store_packed(void* data, int bits, int64_t index, uint8_t code);

}  // namespace tenon
