#include "ops/small_floats.h"

namespace tenon::ops {

const SmallFloatFormat* small_float_format(ElementType type) {
  switch (type) {
    case ElementType::float8e4m3fn:
      return &float8e4m3fn::format;
    case ElementType::float8e4m3fnuz:
      return &float8e4m3fnuz::format;
    case ElementType::float8e5m2:
      return &float8e5m2::format;
    case ElementType::float8e5m2fnuz:
      return &float8e5m2fnuz::format;
    case ElementType::float8e8m0:
      return &float8e8m0::format;
    case ElementType::float6e2m3:
      return &float6e2m3::format;
    case ElementType::float6e3m2:
      return &float6e3m2::format;
    case ElementType::float4e2m1:
      return &float4e2m1::format;
    default:
      return nullptr;
  }
}

}  // namespace tenon::ops
