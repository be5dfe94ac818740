// DLPack's structures, as its specification lays them out in memory.
#pragma once

#include <cstdint>

namespace tenon::python::dlpack {

enum TypeCode : uint8_t {
  code_int = 0,
  code_uint = 1,
  code_float = 2,
  code_bfloat = 4,
  code_complex = 5,
  code_bool = 6
};

struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};

constexpr int32_t device_cpu = 1, device_cuda = 2, device_cuda_host = 3, device_rocm_host = 11,
                  device_cuda_managed = 13;

// CUDA's default stream, as the consumer of an array calls it.
constexpr int64_t default_stream = 1;

struct Device {
  int32_t type, id;
};

struct Array {
  void* data;
  Device device;
  int32_t rank;
  DataType type;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};

// Before version 1 of the specification.
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed*);
};

constexpr uint32_t major_version = 1, minor_version = 1;
constexpr uint64_t flag_read_only = 1;

struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  uint64_t flags;
  Array array;
};

constexpr const char* managed_name = "dltensor";
constexpr const char* used_managed_name = "used_dltensor";
constexpr const char* versioned_name = "dltensor_versioned";
constexpr const char* used_versioned_name = "used_dltensor_versioned";

}  // namespace tenon::python::dlpack
