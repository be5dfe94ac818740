#include "tenon/element_type.h"

#include <array>
#include <string>

#include "base/checked.h"

namespace tenon {
namespace {

enum class Kind { none, integer, floating, other };

struct Info {
  std::string_view name;
  int bits;
  Kind kind;
};

constexpr std::array<Info, element_type_count> infos = {{
    {"undefined", 0, Kind::none},
    {"float", 32, Kind::floating},
    {"uint8", 8, Kind::integer},
    {"int8", 8, Kind::integer},
    {"uint16", 16, Kind::integer},
    {"int16", 16, Kind::integer},
    {"int32", 32, Kind::integer},
    {"int64", 64, Kind::integer},
    {"string", 8 * sizeof(std::string), Kind::other},
    {"bool", 8, Kind::other},
    {"float16", 16, Kind::floating},
    {"double", 64, Kind::floating},
    {"uint32", 32, Kind::integer},
    {"uint64", 64, Kind::integer},
    {"complex64", 64, Kind::other},
    {"complex128", 128, Kind::other},
    {"bfloat16", 16, Kind::floating},
    {"float8e4m3fn", 8, Kind::floating},
    {"float8e4m3fnuz", 8, Kind::floating},
    {"float8e5m2", 8, Kind::floating},
    {"float8e5m2fnuz", 8, Kind::floating},
    {"uint4", 4, Kind::integer},
    {"int4", 4, Kind::integer},
    {"float4e2m1", 4, Kind::floating},
    {"float8e8m0", 8, Kind::floating},
    {"uint2", 2, Kind::integer},
    {"int2", 2, Kind::integer},
    {"float6e2m3", 6, Kind::floating},
    {"float6e3m2", 6, Kind::floating},
}};

const Info& info(ElementType type) { return infos[static_cast<size_t>(type)]; }

}  // namespace

std::string_view name_of(ElementType type) { return info(type).name; }

std::optional<ElementType> element_type_from_name(std::string_view name) {
  for (int i = 1; i < element_type_count; ++i) {
    if (infos[static_cast<size_t>(i)].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

int bits_of(ElementType type) { return info(type).bits; }
bool is_floating(ElementType type) { return info(type).kind == Kind::floating; }
bool is_integer(ElementType type) { return info(type).kind == Kind::integer; }

int64_t byte_size(ElementType type, int64_t count) {
  int bits = bits_of(type);
  if (bits >= 8) return checked_mul(count, bits / 8);
  return checked_add(checked_mul(count, bits), 7) / 8;
}

}  // namespace tenon
