#include <algorithm>

#include "ops/dispatch.h"
#include "ops/scatter/cpu_reduction.h"

namespace tenon::ops {
namespace {

template <typename T>
void replace(void* to, const void* from, int64_t count) {
  std::copy_n(static_cast<const T*>(from), count, static_cast<T*>(to));
}

template <typename T>
void replace_at(void* to, const int64_t* places, const void* from, int64_t step, int64_t count) {
  T* out = static_cast<T*>(to);
  const T* in = static_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) out[places[i]] = in[i * step];
}

struct Add {
  auto operator()(auto a, auto b) const { return a + b; }
};
struct Multiply {
  auto operator()(auto a, auto b) const { return a * b; }
};
struct Max {
  auto operator()(auto a, auto b) const { return a < b || b != b ? b : a; }
};
struct Min {
  auto operator()(auto a, auto b) const { return b < a || b != b ? b : a; }
};

// Half precision is combined in float.
template <typename T>
auto widen(T value) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

template <typename T, typename Operation>
void combine(void* to, const void* from, int64_t count) {
  T* out = static_cast<T*>(to);
  const T* in = static_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(Operation()(widen(out[i]), widen(in[i])));
}

template <typename T, typename Operation>
void combine_at(void* to, const int64_t* places, const void* from, int64_t step, int64_t count) {
  T* out = static_cast<T*>(to);
  const T* in = static_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) {
    T& one = out[places[i]];
    one = static_cast<T>(Operation()(widen(one), widen(in[i * step])));
  }
}

template <typename T, typename Operation>
constexpr Combine with = {combine<T, Operation>, combine_at<T, Operation>};

template <typename T>
Combine numeric(std::string_view reduction) {
  if (reduction == "add") return with<T, Add>;
  if (reduction == "mul") return with<T, Multiply>;
  if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>) {
    if (reduction == "max") return with<T, Max>;
    if (reduction == "min") return with<T, Min>;
  }
  return {};
}

}  // namespace

Combine combine_for(ElementType type, std::string_view reduction) {
  Combine result;
  if (reduction == "none") {
    dispatch_width(type, [&]<typename T>() { result = {replace<T>, replace_at<T>}; });
  } else if (type != ElementType::string) {
    dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             bool, std::complex<float>, std::complex<double>>(type,
                                                              [&]<typename T>() { result = numeric<T>(reduction); });
  }
  if (!result.row) fail(ErrorCode::unsupported, "elements of type {} have no reduction '{}'", name_of(type), reduction);
  return result;
}

}  // namespace tenon::ops
