#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace tenon {

// A vector whose first N elements live inside the object.
template <typename T, size_t N>
class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(size_t count, const T& fill = T()) { resize(count, fill); }
  SmallVector(std::initializer_list<T> items) : SmallVector(items.begin(), items.end()) {}
  template <std::input_iterator It>
  SmallVector(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  SmallVector(const SmallVector& other) { append(other); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      destroy();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { destroy(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void push_back(T item) {
    if (size_ == capacity_) reserve(2 * capacity_);
    new (data_ + size_) T(std::move(item));
    ++size_;
  }
  void pop_back() { data_[--size_].~T(); }
  void clear() {
    std::destroy_n(data_, size_);
    size_ = 0;
  }
  void resize(size_t count, const T& fill = T()) {
    reserve(count);
    while (size_ < count) new (data_ + size_++) T(fill);
    while (size_ > count) pop_back();
  }
  void insert(T* where, T item) {
    size_t at = static_cast<size_t>(where - data_);
    push_back(std::move(item));
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
  }
  void erase(T* where) {
    std::move(where + 1, end(), where);
    pop_back();
  }
  void reserve(size_t count) {
    if (count <= capacity_) return;
    T* larger = std::allocator<T>().allocate(count);
    std::uninitialized_move_n(data_, size_, larger);
    std::destroy_n(data_, size_);
    release();
    data_ = larger;
    capacity_ = count;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  // Few such elements are copied with all the room there is for them: a copy of fixed size is a few instructions.
  static constexpr bool is_plain = std::is_trivially_copyable_v<T> && N * sizeof(T) <= 64;  // NOLINT

  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  void release() {
    if (data_ != inline_data()) std::allocator<T>().deallocate(data_, capacity_);
  }
  void destroy() {
    clear();
    release();
    data_ = inline_data();
    capacity_ = N;
  }
  // To an empty vector.
  void append(const SmallVector& other) {
    if constexpr (is_plain) {
      if (other.size_ <= N) {
        std::memcpy(data_, other.data_, N * sizeof(T));  // NOLINT(bugprone-sizeof-expression)
        size_ = other.size_;
        return;
      }
    }
    reserve(other.size_);
    std::uninitialized_copy_n(other.data_, other.size_, data_);
    size_ = other.size_;
  }
  void take(SmallVector& other) noexcept {
    if (other.data_ == other.inline_data()) {
      if constexpr (is_plain)
        std::memcpy(data_, other.data_, N * sizeof(T));  // NOLINT(bugprone-sizeof-expression)
      else
        std::uninitialized_move_n(other.data_, other.size_, data_);
      size_ = other.size_;
      other.clear();
    } else {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
    }
  }

  alignas(T) std::byte inline_[N * sizeof(T)];  // NOLINT(bugprone-sizeof-expression): elements may be pointers
  T* data_ = inline_data();
  size_t size_ = 0;
  size_t capacity_ = N;
};

}  // namespace tenon
