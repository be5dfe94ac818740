// Arrays of benchmarks, which begin with a cache line, as the memory of a session's tensors does.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace tenon::kernels {

template <class T>
struct FromCacheLines {
  using value_type = T;
  static constexpr std::align_val_t line{64};

  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), line)); }
  void deallocate(T* data, size_t) { ::operator delete(data, line); }
  bool operator==(const FromCacheLines&) const = default;
};

using Floats = std::vector<float, FromCacheLines<float>>;

}  // namespace tenon::kernels
