// NVIDIA's libraries, opened at run time: the same build runs on machines that have none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cuda {

using Result = int;                  // of a call; 0: it worked
using Handle = void*;                // to one of the libraries' objects
using Address = unsigned long long;  // in the device's memory

// How a kernel is launched, as the driver lays that out.
struct LaunchAttribute {
  int id, unused;
  alignas(8) int value[16];
};
struct LaunchConfiguration {
  unsigned blocks[3], threads[3], shared_bytes;
  Handle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// How cublasLt multiplies, as it describes that itself.
struct MatmulAlgorithm {
  uint64_t data[8];
};
struct MatmulChoice {
  MatmulAlgorithm algorithm;
  size_t workspace_bytes;
  Result state;
  float waves;
  int reserved[4];
};

enum class Library : unsigned char { driver, compiler, blas, dnn };

// Where a library was looked for.
struct Attempt {
  std::string path;
  std::string problem;  // what the loader said; empty: it was opened
};

struct LibraryReport {
  std::string name;     // "CUDA driver"
  std::string purpose;  // "runs kernels"
  bool is_found = false;
  std::vector<Attempt> attempts;
  std::string fix;  // what to install
};

// All functions that are called. Those of a library that is not there are null.
struct Libraries {
#define FUNCTION(library, name, result, parameters) result(*name) parameters = nullptr;
#include "cuda/functions.def"
#undef FUNCTION
  LibraryReport reports[4];

  bool has(Library library) const { return reports[static_cast<size_t>(library)].is_found; }
};

// Opened once for the process. Folders in the environment variable TENON_CUDA_PATH, separated by colons, come first.
const Libraries& libraries();

// What is wrong, for errors: every library that is missing, the paths tried and the fix. Empty: nothing is.
std::string what_is_missing(const Libraries& libraries);

}  // namespace tenon::cuda
