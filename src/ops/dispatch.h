#pragma once

#include "base/fail.h"
#include "tenon/scalar.h"

namespace tenon::ops {

// Calls f.operator()<T>() for the T among Ts whose tensors have this element type; throws when there is none.
//
//   dispatch<float, double>(x.type(), [&]<typename T>() { … x.data<T>() … });
template <typename... Ts, typename F>
void dispatch(ElementType type, F&& f) {
  bool found = ((element_type_of<Ts> == type ? (f.template operator()<Ts>(), true) : false) || ...);
  if (!found) fail(ErrorCode::unsupported, "there is no kernel for element type {}", name_of(type));
}

// Calls f.operator()<T>() with an unsigned integer (or string) as wide as an element: for kernels that only move data.
// Types below 8 bits are not among them.
template <typename F>
void dispatch_width(ElementType type, F&& f) {
  struct Wide {
    uint64_t low, high;
  };
  if (type == ElementType::string) return f.template operator()<std::string>();
  switch (bits_of(type)) {
    case 8:
      return f.template operator()<uint8_t>();
    case 16:
      return f.template operator()<uint16_t>();
    case 32:
      return f.template operator()<uint32_t>();
    case 64:
      return f.template operator()<uint64_t>();
    case 128:
      return f.template operator()<Wide>();
    default:
      fail(ErrorCode::unsupported, "elements of type {} are packed and cannot be moved one by one", name_of(type));
  }
}

}  // namespace tenon::ops
