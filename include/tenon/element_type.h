#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

// The element types of ONNX; the numbers are those of TensorProto.DataType.
enum class ElementType : uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
  float6e2m3 = 27,
  float6e3m2 = 28,
};

constexpr int element_type_count = 29;

// The name ONNX users write, such as "float", "int64", "float8e4m3fn".
std::string_view name_of(ElementType type);
std::optional<ElementType> element_type_from_name(std::string_view name);

// Bits of one element in memory. Elements below 8 bits are packed into a stream of bits, lowest bits first;
// strings count as sizeof(std::string).
int bits_of(ElementType type);

constexpr bool is_known(int onnx_number) { return onnx_number > 0 && onnx_number < element_type_count; }
bool is_floating(ElementType type);
bool is_integer(ElementType type);

// Bytes of `count` elements, sub-byte types packed. Throws ErrorCode::overflow.
int64_t byte_size(ElementType type, int64_t count);

}  // namespace tenon
