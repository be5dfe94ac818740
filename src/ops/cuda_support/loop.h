// A kernel that does something for each of many elements, written as the text of what it does for one.
#pragma once

#include "ops/cuda_support/kernels.h"

namespace tenon::ops {

// For every i below `count`, the statements of `body`, which may use i, the pointers that `pointers` declares
// ("const float* x, float* y"), and v[0], v[1], … : the numbers. Sizes belong there and not into the text, so that
// other shapes need no other kernel; what the text depends on (types, ranks, attributes) belongs into it.
//
//   const auto& loop = run.per_plan<CudaLoop>([&] { return CudaLoop(run, n, "float* y", "y[i] = v[0];", {1}); });
//   loop.run(run, {y.raw()});
class CudaLoop {
 public:
  CudaLoop(KernelRun& run, int64_t count, std::string_view pointers, std::string_view body,
           std::vector<int64_t> numbers = {}, std::string_view functions = "");
  // With an address for each of the pointers. They must be the GPU's.
  void run(KernelRun& run, std::initializer_list<const void*> addresses) const;
  void run(KernelRun& run, std::span<const void* const> addresses) const;

 private:
  int64_t count_;
  cuda::Function function_;
  cuda::Grid grid_;
  std::vector<int64_t> numbers_;
};

// Statements that declare c0, c1, …, the coordinates of element `index` in a tensor of this rank whose sizes are
// v[first], v[first + 1], ….
std::string coordinates_text(int rank, size_t first, std::string_view index = "i");

// "const float* " for a tensor to read, "float* " for one to write.
std::string pointer_to(const Tensor& tensor);
std::string const_pointer_to(const Tensor& tensor);

// A kernel by blocks: `text` has a function `kernel` whose parameters are, in this order, a struct of the numbers, if
// there are any, and the pointers. Where `body` calls begin_kernel itself, what is before that may run while earlier
// kernels do: it touches nothing that they write or read. A processor has registers for `blocks_at_once`, or as many as
// the compiler likes.
class CudaBlocks {
 public:
  CudaBlocks(KernelRun& run, std::string_view pointers, std::string_view functions, std::string_view body,
             std::vector<int64_t> numbers, cuda::Grid grid, int blocks_at_once = 0);
  void run(KernelRun& run, std::initializer_list<const void*> addresses) const;
  // The same with what the kernel takes before them, by pointers to it.
  void run(KernelRun& run, std::initializer_list<const void*> values,
           std::initializer_list<const void*> addresses) const;
  void set_blocks(int64_t blocks) { grid_.blocks[0] = static_cast<unsigned>(blocks); }

 private:
  cuda::Function function_;
  cuda::Grid grid_;
  std::vector<int64_t> numbers_;
};

}  // namespace tenon::ops
