#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "base/rounding.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/byte_conv.h"
#include "ops/cuda_support/code_text.h"
#include "ops/cuda_support/loop.h"
#include "ops/cuda_support/packs.h"
#include "ops/operator.h"
#include "ops/qlinear/cuda_conv.h"
#include "ops/qlinear/qlinear.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

void require_single(const KernelRun& run, std::initializer_list<size_t> inputs) {
  for (size_t i : inputs) {
    if (run.has_input(i) && run.input(i).elements() != 1)
      fail(ErrorCode::shape_mismatch, "input {} has {} elements; it must have 1", i, run.input(i).elements());
  }
}

std::string code_types(ElementType type) {
  return fmt::format("{}typedef {} T;\n", code_functions, cuda::type_text(type));
}

// ---- arithmetic

// Where the codes of an operand are for the coordinates c0, c1, … of y, whose last axis counts packs.
struct Operand {
  std::string at = "0";
  bool is_packed = true;  // along the last axis; else one code serves a whole pack

  Operand(const Tensor& x, const Tensor& y, int64_t pack, std::vector<int64_t>& numbers) {
    const int skipped = y.rank() - x.rank();
    int64_t step = 1;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      const bool is_last = axis == x.rank() - 1;
      if (x.dim(axis) != 1) {
        at += fmt::format(" + c{} * v[{}]", axis + skipped, numbers.size());
        numbers.push_back(is_last ? pack : step);
      }
      if (is_last) is_packed = x.dim(axis) != 1 || pack == 1;
      step *= x.dim(axis);
    }
    if (x.rank() == 0) is_packed = pack == 1;
  }
  std::string declare(std::string_view name, std::string_view pointer, int64_t pack) const {
    if (is_packed)
      return fmt::format("const Pack<T, {}> {} = *(const Pack<T, {}>*)({} + {});\n    ", pack, name, pack, pointer, at);
    return fmt::format("const T {} = {}[{}];\n    ", name, pointer, at);
  }
  std::string element(std::string_view name) const { return fmt::format("(i32){}{}", name, is_packed ? ".v[e]" : ""); }
};

CudaLoop prepare_arithmetic(KernelRun& run, bool adds) {
  require_single(run, {1, 2, 4, 5, 6, 7});
  const Tensor &y = run.output(0), *a = &run.input(0), *b = &run.input(3);
  // Without broadcasting all axes are one.
  const bool is_flat = a->elements() == y.elements() && b->elements() == y.elements();
  const int64_t last = is_flat ? y.elements() : y.rank() == 0 ? 1 : y.dim(y.rank() - 1);
  const int64_t pack = pack_of(y.type(), last, {a->raw(), b->raw(), static_cast<const void*>(y.raw())});
  std::vector<int64_t> numbers;
  std::string text, first, second;
  if (is_flat) {
    text = fmt::format(
        "const Pack<T, {0}> left = ((const Pack<T, {0}>*)a)[i], right = ((const Pack<T, {0}>*)b)[i];\n    ", pack);
    first = "(i32)left.v[e]";
    second = "(i32)right.v[e]";
  } else {
    for (int axis = 0; axis < y.rank(); ++axis) numbers.push_back(axis + 1 == y.rank() ? last / pack : y.dim(axis));
    text = coordinates_text(y.rank(), 0);
    const Operand of_a(*a, y, pack, numbers), of_b(*b, y, pack, numbers);
    text += of_a.declare("left", "a", pack) + of_b.declare("right", "b", pack);
    first = of_a.element("left");
    second = of_b.element("right");
  }
  const char* steps = adds ? "plus(times((float)({} - a_code), a_factor), times((float)({} - b_code), b_factor))"
                           : "times((float)(({} - a_code) * ({} - b_code)), a_factor)";
  text += fmt::format(
      "const i32 a_code = a_zero ? (i32)*a_zero : 0, b_code = b_zero ? (i32)*b_zero : 0, zero = y_zero ? (i32)*y_zero "
      ": 0;\n"
      "    const float a_factor = {}, b_factor = *b_scale / *y_scale;\n"
      "    Pack<T, {pack}> results;\n    for (int e = 0; e < {pack}; ++e) results.v[e] = (T)code_of<T>({}, zero);\n"
      "    ((Pack<T, {pack}>*)y)[i] = results;",
      adds ? "*a_scale / *y_scale" : "times(*a_scale, *b_scale) / *y_scale",
      fmt::format(fmt::runtime(steps), first, second), fmt::arg("pack", pack));
  return {run,
          y.elements() / pack,
          "const T* a, const float* a_scale, const T* a_zero, const T* b, const float* b_scale, const T* b_zero, "
          "const float* y_scale, const T* y_zero, T* y",
          text,
          numbers,
          code_types(y.type())};
}

template <bool adds>
void run_arithmetic(KernelRun& run) {
  if (run.output(0).elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] { return prepare_arithmetic(run, adds); });
  loop.run(run, {run.input(0).raw(), run.input(1).raw(), input_address(run, 2), run.input(3).raw(), run.input(4).raw(),
                 input_address(run, 5), run.input(6).raw(), input_address(run, 7), run.output(0).raw()});
}

// ---- tables

void run_look_up(KernelRun& run) {
  const Tensor& x = run.input(0);
  if (run.input(1).elements() != 256)
    fail(ErrorCode::shape_mismatch, "the table has {} entries; it must have 256", run.input(1).elements());
  if (x.elements() == 0) return;
  const auto& blocks = run.per_plan<CudaBlocks>([&] {
    const int64_t pack = pack_of(x.type(), x.elements(), {x.raw(), static_cast<const void*>(run.output(0).raw())});
    const int64_t count = x.elements() / pack;
    cuda::Grid grid = cuda::Grid::over(count);
    grid.blocks[0] = std::min(grid.blocks[0], static_cast<unsigned>(queue_of(run).gpu().processors()) * 8);
    const std::string text = fmt::format(
        "__shared__ u8 own[256];\n  own[threadIdx.x] = table[threadIdx.x];\n  __syncthreads();\n"
        "  for (i64 i = THREAD; i < v[0]; i += THREADS) {{\n"
        "    Pack<u8, {0}> codes = ((const Pack<u8, {0}>*)x)[i];\n"
        "    for (int e = 0; e < {0}; ++e) codes.v[e] = own[codes.v[e]];\n    ((Pack<u8, {0}>*)y)[i] = codes;\n  }}",
        pack);
    return CudaBlocks(run, "const u8* x, const u8* table, u8* y", "", text, {count}, grid);
  });
  blocks.run(run, {x.raw(), run.input(1).raw(), run.output(0).raw()});
}

// ---- pools

std::string decline_max_pool(const ir::Node& node) {
  return node.ints_attribute("kernel_shape").size() == 2 ? "" : "it does not have two spatial axes";
}

CudaLoop prepare_max_pool(KernelRun& run) {
  const Tensor &x = run.input(0), &y = run.output(0);
  const WindowAttributes window(run.node());
  const int64_t channels = x.dim(3), pack = pack_of(x.type(), channels, {x.raw(), static_cast<const void*>(y.raw())});
  // v: sizes of y with packs of channels, then for each axis x, kernel, stride, dilation, pad.
  std::vector<int64_t> numbers{y.dim(0), y.dim(1), y.dim(2), channels / pack};
  for (int d : {0, 1}) {
    const WindowAxis axis = window.axis(d, 2);
    numbers.insert(numbers.end(), {x.dim(d + 1), axis.kernel.value(), axis.stride, axis.dilation,
                                   axis.pads(x.dim(d + 1), y.dim(d + 1)).first});
  }
  const std::string text = coordinates_text(4, 0) + fmt::format(R"cuda(Pack<T, {pack}> most;
    for (int e = 0; e < {pack}; ++e) most.v[e] = (T)LowestCode<T>::value;
    for (int ky = 0; ky < (int)v[5]; ++ky) {{
      const int py = (int)(c1 * v[6] + ky * v[7] - v[8]);
      if (py < 0 || py >= (int)v[4]) continue;
      for (int kx = 0; kx < (int)v[10]; ++kx) {{
        const int px = (int)(c2 * v[11] + kx * v[12] - v[13]);
        if (px < 0 || px >= (int)v[9]) continue;
        const Pack<T, {pack}> codes = ((const Pack<T, {pack}>*)x)[((c0 * v[4] + py) * v[9] + px) * v[3] + c3];
        for (int e = 0; e < {pack}; ++e) most.v[e] = codes.v[e] > most.v[e] ? codes.v[e] : most.v[e];
      }}
    }}
    ((Pack<T, {pack}>*)y)[i] = most;)cuda",
                                                                fmt::arg("pack", pack));
  return {run, y.elements() / pack, "const T* x, T* y", text, numbers, code_types(x.type())};
}

void run_max_pool(KernelRun& run) {
  if (run.output(0).elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] { return prepare_max_pool(run); });
  loop.run(run, {run.input(0).raw(), run.output(0).raw()});
}

// A block for some packs of channels of an image: 32 threads add the pixels of each.
CudaBlocks prepare_mean(KernelRun& run) {
  constexpr int64_t packs = 8;
  require_single(run, {1, 2, 3, 4});
  const Tensor &x = run.input(0), &y = run.output(0);
  const bool is_last = run.node().int_attribute("channels_last", 0) != 0;
  const int64_t images = x.dim(0), channels = y.elements() / images, pixels = x.elements() / y.elements();
  const int64_t pack = is_last ? std::min<int64_t>(4, pack_of(x.type(), channels, {x.raw()})) : 1;
  const int64_t blocks = divide_up(channels / pack, packs);
  if (images * blocks >= int64_t{1} << 31 || pixels >= int64_t{1} << 23)
    fail(ErrorCode::unsupported, "means of {} images of {} pixels are too large for the GPU", images, pixels);
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(images * blocks);
  grid.threads = packs * 32;
  const std::string text = fmt::format(R"cuda(__shared__ i32 parts[32][{packs} * {pack}];
  const int own = threadIdx.x % {packs}, line = threadIdx.x / {packs};
  const i64 image = blockIdx.x / v[0], first = blockIdx.x % v[0] * {packs} * {pack}, c = first + own * {pack};
  i32 sums[{pack}] = {{}};
  if (c < v[1]) {{
    const T* from = x + image * v[1] * v[2] + c * v[3];
    for (i64 p = line; p < v[2]; p += 32) {{
      const Pack<T, {pack}> codes = *(const Pack<T, {pack}>*)(from + p * v[4]);
      for (int e = 0; e < {pack}; ++e) sums[e] += codes.v[e];
    }}
  }}
  for (int e = 0; e < {pack}; ++e) parts[line][own * {pack} + e] = sums[e];
  __syncthreads();
  if (threadIdx.x >= {packs} * {pack} || first + threadIdx.x >= v[1]) return;
  i32 sum = -(x_zero ? (i32)*x_zero : 0) * (i32)v[2];
  for (int i = 0; i < 32; ++i) sum += parts[i][threadIdx.x];
  const float scale = *x_scale / times(*y_scale, (float)v[2]);
  y[image * v[1] + first + threadIdx.x] = (T)code_of<T>(times((float)sum, scale), y_zero ? (i32)*y_zero : 0);)cuda",
                                       fmt::arg("packs", packs), fmt::arg("pack", pack));
  return {run,
          "const T* x, const float* x_scale, const T* x_zero, const float* y_scale, const T* y_zero, T* y",
          code_types(x.type()),
          text,
          {blocks, channels, pixels, is_last ? 1 : pixels, is_last ? channels : 1},
          grid};
}

void run_mean(KernelRun& run) {
  if (run.output(0).elements() == 0) return;
  const auto& blocks = run.per_plan<CudaBlocks>([&] { return prepare_mean(run); });
  blocks.run(run, {run.input(0).raw(), run.input(1).raw(), input_address(run, 2), run.input(3).raw(),
                   input_address(run, 4), run.output(0).raw()});
}

// ---- products

std::string decline_to_float(const ir::Node& node) {
  if (node.output(0)->type.element != ElementType::float32) return "scales are not float32";
  return why_not_constant_matrix(node, 1, 5);
}

// Y = A * B with its scales, plus the bias, where B is constant.
class MatMulIntegerToFloat final : public Kernel {
 public:
  explicit MatMulIntegerToFloat(const NodeInfo& info) : weights_(pack_matrix(info, 1, 5)) { TENON_CHECK(weights_); }

  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    ByteConvData data{run.input(0).raw(), run.output(0).raw()};
    data.x_zero = input_address(run, 4);
    data.x_scale = run.input(2).raw();
    data.w_scale = run.input(3).raw();
    data.bias = input_address(run, 6);
    run.per_plan<CudaByteConv>([&] { return prepare(run, data); }).run(run, data);
  }

 private:
  CudaByteConv prepare(KernelRun& run, const ByteConvData& data) const {
    const Tensor &b = run.input(1), &y = run.output(0);
    const int64_t columns = b.dim(1);
    require_single(run, {2, 4});
    if (run.has_input(6) && run.input(6).elements() != columns)
      fail(ErrorCode::shape_mismatch, "bias has {} elements; it must have {}", run.input(6).elements(), columns);
    const ByteConvShape shape = ByteConvShape::product(y.elements() / columns, b.dim(0), columns);
    if (!CudaByteConv::takes(queue_of(run).gpu(), shape))
      fail(ErrorCode::unsupported, "a product of {} rows is too large for the GPU", shape.rows());
    ByteConvResult result;
    result.has_one_scale = run.input(3).elements() == 1;
    if (!result.has_one_scale && run.input(3).elements() != columns)
      fail(ErrorCode::shape_mismatch, "b_scale has {} elements; it may have 1 or {}", run.input(3).elements(), columns);
    if (data.bias) result.bias = ByteConvResult::Bias::to_numbers;
    return {run, shape, weights_, run.input(0).type(), y.type(), result, data};
  }

  std::shared_ptr<const ByteConvWeights> weights_;
};

}  // namespace

void cuda_qlinear(CudaKernels& list) {
  list.add_simple("QLinearAdd", run_arithmetic<true>, {.domain = microsoft});
  list.add_simple("QLinearMul", run_arithmetic<false>, {.domain = microsoft});
  list.add_simple("LookUp", run_look_up, {.domain = tenon_domain});
  list.add_simple("NhwcMaxPool", run_max_pool, {.decline = decline_max_pool, .domain = microsoft});
  list.add_simple("QLinearGlobalAveragePool", run_mean, {.domain = microsoft});
  list.add("MatMulIntegerToFloat", [](const NodeInfo& info) { return std::make_unique<MatMulIntegerToFloat>(info); },
           {.decline = decline_to_float, .domain = microsoft, .least_major = 8});
  cuda_nhwc_conv(list);
}

}  // namespace tenon::ops
