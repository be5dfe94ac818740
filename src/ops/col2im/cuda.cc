#include <algorithm>

#include "base/checked.h"
#include "base/fail.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/loop.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

// A thread for each element of the image, which adds what lies there in every block.
CudaLoop prepare(KernelRun& run, const Tensor& x, const Tensor& y) {
  const std::vector<int64_t> image = run.ints(1), block = run.ints(2);
  const WindowAttributes window(run.node());
  if (image.size() != block.size() || image.empty())
    fail(ErrorCode::shape_mismatch, "image_shape has {} axes, block_shape {}", image.size(), block.size());
  const int spatial = static_cast<int>(image.size());
  window.check(spatial);
  int64_t blocks = 1, taps = 1, planes = y.elements();
  std::vector<int64_t> numbers{0};
  numbers.insert(numbers.end(), image.begin(), image.end());
  std::string text, x_tap = "0", x_block = "0", close;
  for (int d = 0; d < spatial; ++d) {
    const auto k = static_cast<size_t>(d);
    if (block[k] < 1) fail(ErrorCode::invalid_value, "block_shape has {}; it must be at least 1", block[k]);
    const WindowAxis axis = window.axis(d, spatial, block[k]);
    const int64_t count = std::max<int64_t>(0, axis.output(image[k]).value());
    const size_t at = numbers.size();
    numbers.insert(numbers.end(), {block[k], count, axis.stride, axis.dilation, axis.pad_begin});
    // Tap k of block p is at p * stride - pad + k * dilation.
    text += fmt::format(
        "for (i64 k{0} = 0; k{0} < v[{1}]; ++k{0}) {{\n    i64 p{0} = c{2} + v[{3}] - k{0} * v[{4}];\n    "
        "if (p{0} < 0 || p{0} % v[{5}] != 0) continue;\n    p{0} /= v[{5}];\n    if (p{0} >= v[{6}]) continue;\n    ",
        d, at, d + 1, at + 4, at + 3, at + 2, at + 1);
    x_tap = fmt::format("({}) * v[{}] + k{}", x_tap, at, d);
    x_block = fmt::format("({}) * v[{}] + p{}", x_block, at + 1, d);
    close += '}';
    blocks = checked_mul(blocks, count);
    taps = checked_mul(taps, block[k]);
    planes /= std::max<int64_t>(1, image[k]);
  }
  if (blocks != x.dim(2))
    fail(ErrorCode::shape_mismatch, "the input has {} blocks; {} fit into the image", x.dim(2), blocks);
  numbers[0] = planes;
  const size_t at = numbers.size();
  numbers.insert(numbers.end(), {taps, blocks});
  text = coordinates_text(spatial + 1, 0) + "A sum = 0;\n    " + text +
         fmt::format("sum += widen(x[(c0 * v[{}] + {}) * v[{}] + {}]);\n    ", at, x_tap, at + 1, x_block) + close +
         "\n    y[i] = narrow<T>(sum);";
  return {run, y.elements(), "const T* x, T* y", text, numbers, types_text(x.type())};
}

void run_col2im(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] { return prepare(run, x, y); });
  loop.run(run, {x.raw(), y.raw()});
}

}  // namespace

void cuda_col2im(CudaKernels& list) {
  list.add_simple("Col2Im", run_col2im, {.types = types::numbers, .host_inputs = {1, 2}});
}

}  // namespace tenon::ops
