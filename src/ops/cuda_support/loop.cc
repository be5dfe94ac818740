#include "ops/cuda_support/loop.h"

#include <fmt/format.h>
#include <algorithm>

namespace tenon::ops {
namespace {

void launch(cuda::GpuQueue& queue, cuda::Function function, const cuda::Grid& grid, const std::vector<int64_t>& numbers,
            std::span<const void* const> addresses, std::span<const void* const> values = {}) {
  SmallVector<void*, 12> arguments;
  arguments.push_back(const_cast<int64_t*>(numbers.data()));
  for (const void* value : values) arguments.push_back(const_cast<void*>(value));
  for (const void* const& address : addresses)
    arguments.push_back(const_cast<void**>(const_cast<const void**>(&address)));
  queue.launch_with(function, grid, arguments.data());
}

}  // namespace

CudaLoop::CudaLoop(KernelRun& run, int64_t count, std::string_view pointers, std::string_view body,
                   std::vector<int64_t> numbers, std::string_view functions)
    : count_(count), grid_(cuda::Grid::over(count)), numbers_(std::move(numbers)) {
  if (count == 0) return;
  const std::string text = fmt::format(
      "struct Numbers {{ i64 count, v[{}]; }};\n{}\n"
      "extern \"C\" __global__ void kernel(Numbers numbers, {}) {{\n"
      "  begin_kernel();\n  const i64* v = numbers.v;\n"
      "  for (i64 i = THREAD; i < numbers.count; i += THREADS) {{\n    {}\n  }}\n}}\n",
      std::max<size_t>(numbers_.size(), 1), functions, pointers, body);
  function_ = queue_of(run).gpu().function(text, "kernel");
  numbers_.insert(numbers_.begin(), count);
  if (numbers_.size() == 1) numbers_.push_back(0);
}

void CudaLoop::run(KernelRun& run, std::initializer_list<const void*> addresses) const {
  this->run(run, std::span(addresses.begin(), addresses.size()));
}

void CudaLoop::run(KernelRun& run, std::span<const void* const> addresses) const {
  if (count_ > 0) launch(queue_of(run), function_, grid_, numbers_, addresses);
}

std::string coordinates_text(int rank, size_t first, std::string_view index) {
  std::string text = fmt::format("i64 rest = {};\n    ", index);
  for (int axis = rank - 1; axis >= 0; --axis) {
    const size_t size = first + static_cast<size_t>(axis);
    if (axis == 0)
      text += "const i64 c0 = rest;\n    ";
    else
      text += fmt::format("const i64 c{} = rest % v[{}]; rest /= v[{}];\n    ", axis, size, size);
  }
  return text;
}

std::string pointer_to(const Tensor& tensor) { return fmt::format("{}* ", cuda::type_text(tensor.type())); }
std::string const_pointer_to(const Tensor& tensor) { return fmt::format("const {}* ", cuda::type_text(tensor.type())); }

CudaBlocks::CudaBlocks(KernelRun& run, std::string_view pointers, std::string_view functions, std::string_view body,
                       std::vector<int64_t> numbers, cuda::Grid grid, int blocks_at_once)
    : grid_(grid), numbers_(std::move(numbers)) {
  if (numbers_.empty()) numbers_.push_back(0);
  const bool begins_itself = body.find("begin_kernel();") != std::string_view::npos;
  const std::string text = fmt::format(
      "struct Numbers {{ i64 v[{}]; }};\n{}\n"
      "extern \"C\" __global__ void __launch_bounds__({}{}) kernel(Numbers numbers, {}) {{\n"
      "  {}const i64* v = numbers.v;\n  {}\n}}\n",
      numbers_.size(), functions, grid.threads, blocks_at_once > 0 ? fmt::format(", {}", blocks_at_once) : "", pointers,
      begins_itself ? "" : "begin_kernel();\n  ", body);
  function_ = queue_of(run).gpu().function(text, "kernel");
  if (grid.shared_bytes > 0) queue_of(run).gpu().allow_shared(function_, grid.shared_bytes);
}

void CudaBlocks::run(KernelRun& run, std::initializer_list<const void*> addresses) const {
  this->run(run, {}, addresses);
}

void CudaBlocks::run(KernelRun& run, std::initializer_list<const void*> values,
                     std::initializer_list<const void*> addresses) const {
  launch(queue_of(run), function_, grid_, numbers_, std::span(addresses.begin(), addresses.size()),
         std::span(values.begin(), values.size()));
}

}  // namespace tenon::ops
