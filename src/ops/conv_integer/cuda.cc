#include "base/fail.h"
#include "ops/cuda_support/byte_product.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

constexpr TypeSet bytes{ElementType::int8, ElementType::uint8};

const void* raw_or_null(const KernelRun& run, size_t input) {
  return run.has_input(input) ? run.input(input).raw() : nullptr;
}
ElementType type_or(const KernelRun& run, size_t input, ElementType otherwise) {
  return run.has_input(input) ? run.input(input).type() : otherwise;
}

// For each image and group, the weights [outputs, inputs * kernel] times what the windows see [inputs * kernel,
// pixels].
CudaByteProduct product_of(KernelRun& run, size_t w_input, size_t x_zero, size_t w_zero, const Tensor& y) {
  const Tensor &x = run.input(0), &w = run.input(w_input);
  if (run.has_input(x_zero) && run.input(x_zero).elements() != 1)
    fail(ErrorCode::shape_mismatch, "x_zero_point has {} elements; it must have 1", run.input(x_zero).elements());
  if (run.has_input(w_zero) && run.input(w_zero).elements() != 1 && run.input(w_zero).elements() != w.dim(0))
    fail(ErrorCode::shape_mismatch, "a zero point has {} elements; it may have 1 or {}", run.input(w_zero).elements(),
         w.dim(0));
  const WindowAttributes window(run.node());
  const int64_t groups = run.node().int_attribute("group", 1);
  const int spatial = x.rank() - 2;
  CudaByteProduct product;
  product.count = x.dim(0) * groups;
  product.m = w.dim(0) / groups;
  product.n = y.shape().elements(2, y.rank());
  product.k = w.elements() / w.dim(0);
  // v[4]: groups, v[5]: channels of a group, v[6]: elements of a channel of x; then, for each axis from the last,
  // output, kernel, input, stride, dilation and pad.
  product.numbers = {groups, x.dim(1) / groups, x.shape().elements(2, x.rank())};
  std::string pixel = "i64 at = 0, step = 1;\n  ";
  for (int d = spatial - 1; d >= 0; --d) {
    const WindowAxis axis = window.axis(d, spatial, w.dim(d + 2));
    const size_t n = 4 + product.numbers.size();
    product.numbers.insert(product.numbers.end(), {y.dim(d + 2), w.dim(d + 2), x.dim(d + 2), axis.stride, axis.dilation,
                                                   axis.pads(x.dim(d + 2), y.dim(d + 2)).first});
    pixel += fmt::format(
        "{{ const i64 p = column % v[{}] * v[{}] + k % v[{}] * v[{}] - v[{}]; column /= v[{}]; k /= v[{}];\n    "
        "if (p < 0 || p >= v[{}]) return zero; at += p * step; step *= v[{}]; }}\n  ",
        n, n + 3, n + 1, n + 4, n + 5, n, n + 1, n + 2, n + 2);
  }
  const std::string type(cuda::type_text(x.type()));
  product.functions = fmt::format(
      "// What weight k of a window sees of the image that begins at x; `zero` outside of it.\n"
      "inline i32 seen(const {}* x, const i64* v, i64 k, i64 column, i32 zero) {{\n  {}return {};\n}}\n",
      type, pixel, signed_code(x.type(), "x[k * v[6] + at]"));
  product.pointers = byte_pointer(x.type(), "x") + ", " + byte_pointer(w.type(), "w") + ", " +
                     byte_pointer(type_or(run, x_zero, x.type()), "x_zero") + ", " +
                     byte_pointer(type_or(run, w_zero, w.type()), "w_zero");
  product.setup = fmt::format(
      "const i64 group = matrix % v[4];\n  const {}* image = x + matrix * v[5] * v[6];\n  const i32 outside = {};",
      type, zero_point(run, x_zero, x.type(), "x_zero", "0"));
  product.a_code = signed_code(w.type(), "w[(group * v[1] + row) * v[3] + k]");
  product.b_code = "seen(image, v, k, column, outside)";
  product.a_zero = zero_point(run, w_zero, w.type(), "w_zero", "group * v[1] + row");
  product.b_zero = "outside";
  return product;
}

// Sums of nothing.
bool is_empty(KernelRun& run, size_t w_input) {
  return run.input(0).elements() == 0 || run.input(w_input).elements() == 0;
}

void run_conv_integer(KernelRun& run) {
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  if (is_empty(run, 1)) return queue_of(run).fill(y.mutable_raw(), 0, y.bytes());
  const auto& product = run.per_plan<CudaBlocks>([&] {
    CudaByteProduct made = product_of(run, 1, 2, 3, y);
    made.pointers += ", i32* y";
    made.finish = "y[(matrix * v[1] + row) * v[2] + column] = sum;";
    return made.make(run);
  });
  product.run(run, {run.input(0).raw(), run.input(1).raw(), raw_or_null(run, 2), raw_or_null(run, 3), y.raw()});
}

void run_qlinear_conv(KernelRun& run) {
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& product = run.per_plan<CudaBlocks>([&] {
    for (size_t input : {1, 6, 7}) {
      if (run.input(input).elements() != 1)
        fail(ErrorCode::shape_mismatch, "input {} has {} elements; it must have 1", input, run.input(input).elements());
    }
    const int64_t scales = run.input(4).elements();
    if (scales != 1 && scales != y.dim(1))
      fail(ErrorCode::shape_mismatch, "w_scale has {} elements; it may have 1 or {}", scales, y.dim(1));
    CudaByteProduct made = product_of(run, 3, 2, 5, y);
    made.pointers +=
        fmt::format(", const float* x_scale, const float* w_scale, const float* y_scale, {0}, const i32* bias, {1}* y",
                    byte_pointer(y.type(), "y_zero"), cuda::type_text(y.type()));
    made.finish = fmt::format(
        "const i64 channel = group * v[1] + row;\n      const float scale = times(*x_scale, w_scale[{}]) / *y_scale;\n "
        "     ",
        scales == 1 ? "0" : "channel");
    made.finish += requantize_text(y.type(), run.has_input(8) ? "bias[channel]" : "", "scale", "*y_zero",
                                   "(matrix * v[1] + row) * v[2] + column");
    return made.make(run);
  });
  product.run(run,
              {run.input(0).raw(), run.input(3).raw(), raw_or_null(run, 2), raw_or_null(run, 5), run.input(1).raw(),
               run.input(4).raw(), run.input(6).raw(), run.input(7).raw(), raw_or_null(run, 8), y.raw()});
}

}  // namespace

void cuda_conv_integer(CudaKernels& list) {
  list.add_simple("ConvInteger", run_conv_integer, {.types = bytes | TypeSet{ElementType::int32}});
  list.add_simple("QLinearConv", run_qlinear_conv,
                  {.types = bytes | TypeSet{ElementType::int32, ElementType::float32}});
}

}  // namespace tenon::ops
