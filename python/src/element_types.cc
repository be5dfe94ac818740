#include <array>

#include "bindings.h"

namespace tenon::python {
namespace {

struct Names {
  std::string_view dtype;
  const char* format;
};

// NumPy's int64 is the first of C's types that is as wide.
constexpr const char* long_format = sizeof(long) == 8 ? "l" : "q";
constexpr const char* unsigned_long_format = sizeof(long) == 8 ? "L" : "Q";

// By the number of the type.
constexpr std::array<Names, element_type_count> names = {{
    {"undefined", nullptr},
    {"float32", "f"},
    {"uint8", "B"},
    {"int8", "b"},
    {"uint16", "H"},
    {"int16", "h"},
    {"int32", "i"},
    {"int64", long_format},
    {"str", nullptr},
    {"bool", "?"},
    {"float16", "e"},
    {"float64", "d"},
    {"uint32", "I"},
    {"uint64", unsigned_long_format},
    {"complex64", "Zf"},
    {"complex128", "Zd"},
    {"bfloat16", nullptr},
    {"float8_e4m3fn", nullptr},
    {"float8_e4m3fnuz", nullptr},
    {"float8_e5m2", nullptr},
    {"float8_e5m2fnuz", nullptr},
    {"uint4", nullptr},
    {"int4", nullptr},
    {"float4_e2m1fn", nullptr},
    {"float8_e8m0fnu", nullptr},
    {"uint2", nullptr},
    {"int2", nullptr},
    {"float6_e2m3fn", nullptr},
    {"float6_e3m2fn", nullptr},
}};

}  // namespace

std::string_view dtype_name(ElementType type) { return names[static_cast<size_t>(type)].dtype; }

const char* buffer_format(ElementType type) { return names[static_cast<size_t>(type)].format; }

ElementType element_type_named(std::string_view name) {
  for (size_t i = 1; i < names.size(); ++i) {
    if (names[i].dtype == name) return static_cast<ElementType>(i);
  }
  if (std::optional<ElementType> type = element_type_from_name(name); type && *type != ElementType::undefined) {
    return *type;
  }
  throw Error(ErrorCode::invalid_argument, "no element type is called '" + std::string(name) + "'",
              "use a name of NumPy's, ml_dtypes' or ONNX's, such as 'float32' or 'bfloat16'");
}

}  // namespace tenon::python
