// All tests of this program run on the stand-in for NVIDIA's libraries (tests/cuda), which says that it has two GPUs.
#include <cstdlib>

namespace {

// Before anything opens the libraries.
[[maybe_unused]] const bool is_emulated = [] {
  setenv("TENON_CUDA_PATH", TENON_EMULATED_CUDA, 1);
  setenv("TENON_KERNEL_CACHE", TENON_EMULATED_CUDA "/kernels", 1);
  setenv("TENON_EMULATED_DEVICES", "2", 1);
  return true;
}();

}  // namespace
