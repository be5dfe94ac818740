#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

// Which scale and zero point element e has: one for all, one for each index of an axis, or one for each block along it.
struct Granularity {
  std::string text;  // declares p
  std::vector<int64_t> numbers;

  Granularity(const ir::Node& node, const Shape& x, const Shape& scale) {
    const int64_t block = node.int_attribute("block_size", 0);
    if (scale.rank() == 0 || (scale.rank() == 1 && scale[0] == 1 && block == 0)) {
      text = "const i64 p = 0;\n    ";
      return;
    }
    int64_t given = node.int_attribute("axis", 1);
    if (given < 0) given += x.rank();
    const int axis = static_cast<int>(given);
    const int64_t size = x[axis], inner = x.elements(axis + 1, x.rank());
    const std::string_view index = index_text(x.elements());
    if (block == 0) {
      numbers = {inner, size};
      text = fmt::format("const i64 p = ({0})e / ({0})v[0] % ({0})v[1];\n    ", index);
      return;
    }
    numbers = {inner, size, std::min(block, std::max<int64_t>(size, 1)), scale[axis]};
    text = fmt::format(
        "const {0} column = ({0})e % ({0})v[0], row = ({0})e / ({0})v[0];\n    "
        "const i64 p = ((i64)(row / ({0})v[1]) * v[3] + row % ({0})v[1] / ({0})v[2]) * v[0] + column;\n    ",
        index);
  }
};

void check_parameters(const KernelRun& run) {
  if (run.has_input(2) && run.input(1).elements() != run.input(2).elements())
    fail(ErrorCode::shape_mismatch, "the zero point has {} elements, the scale {}", run.input(2).elements(),
         run.input(1).elements());
}

// What all three inputs are read with.
std::string parameters_text(const KernelRun& run) {
  std::string text = load_text(run.input(0).type(), "x") + load_text(run.input(1).type(), "scale");
  if (run.has_input(2)) text += load_text(run.input(2).type(), "zero");
  return text + std::string(exact_product_text());
}
std::string pointers_text(const KernelRun& run) {
  return fmt::format("const Memory_x* x, const Memory_scale* scales, const {}* zeros",
                     run.has_input(2) ? "Memory_zero" : "u8");
}
std::string values_text(const KernelRun& run) {
  return fmt::format(
      "const float x_value = (float)load_x(x, e), scale = (float)load_scale(scales, p), zero = {};\n    ",
      run.has_input(2) ? "(float)load_zero(zeros, p)" : "0.0f");
}

// Limits of an integer type.
std::pair<int64_t, int64_t> range_of(ElementType type) {
  const bool is_signed =
      type == ElementType::int8 || type == ElementType::int16 || type == ElementType::int4 || type == ElementType::int2;
  const int64_t count = int64_t{1} << bits_of(type), low = is_signed ? -count / 2 : 0;
  return {low, low + count - 1};
}

void run_linear(KernelRun& run, const CudaLoop& loop) {
  loop.run(run, {run.output(0).raw(), run.input(0).raw(), run.input(1).raw(),
                 run.has_input(2) ? run.input(2).raw() : nullptr});
}

void run_quantize(KernelRun& run) {
  const Tensor &x = run.input(0), &scale = run.input(1);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  check_parameters(run);
  const auto& loop = run.per_plan<CudaLoop>([&] {
    const ir::Node& node = run.node();
    Granularity granularity(node, x.shape(), scale.shape());
    auto precision = static_cast<ElementType>(node.int_attribute("precision", 0));
    if (precision == ElementType::undefined) precision = scale.type();
    std::string body = granularity.text + values_text(run) + "float q = x_value / scale;\n    ";
    if (precision == ElementType::float16) body += "q = widen(to_f16(q));\n    ";
    if (precision == ElementType::bfloat16) body += "q = widen(to_bf16(q));\n    ";
    if (is_integer(y.type())) {
      const auto [low, high] = range_of(y.type());
      // The quotient is rounded before the zero point is added.
      body += fmt::format(
          "q = rint(q) + zero;\n    r = (Value_y)(i32)(q > {0}.0f ? (q < {1}.0f ? q : {1}.0f) : {0}.0f);", low, high);
    } else {
      body += "r = q + zero;";
    }
    return element_loop(run, y, pointers_text(run), body, granularity.numbers, parameters_text(run),
                        node.int_attribute("saturate", 1) != 0);
  });
  run_linear(run, loop);
}

void run_dequantize(KernelRun& run) {
  const Tensor &x = run.input(0), &scale = run.input(1);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  check_parameters(run);
  const auto& loop = run.per_plan<CudaLoop>([&] {
    Granularity granularity(run.node(), x.shape(), scale.shape());
    const std::string body = granularity.text + values_text(run) + "r = times(x_value - zero, scale);";
    return element_loop(run, y, pointers_text(run), body, granularity.numbers, parameters_text(run));
  });
  run_linear(run, loop);
}

// The range of all elements and 0 is found by blocks, then by one.
struct DynamicPlan {
  std::shared_ptr<void> scratch;  // a scale, a zero point, then pairs of lowest and highest
  CudaBlocks find, finish;
  std::optional<CudaLoop> quantize;
};

constexpr const char* range_text = R"(
// The lowest and the highest of all threads; NaN does not count.
inline void range_of_block(float& low, float& high) {
  __shared__ float lows[256], highs[256];
  lows[threadIdx.x] = low;
  highs[threadIdx.x] = high;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    if (lows[threadIdx.x + half] < lows[threadIdx.x]) lows[threadIdx.x] = lows[threadIdx.x + half];
    if (highs[threadIdx.x + half] > highs[threadIdx.x]) highs[threadIdx.x] = highs[threadIdx.x + half];
  }
  __syncthreads();
  low = lows[0];
  high = highs[0];
}
)";

DynamicPlan prepare_dynamic(KernelRun& run, const Tensor& x) {
  constexpr int64_t threads = 256;
  const int64_t blocks = std::clamp<int64_t>(x.elements() / (16 * threads), 1, 1024);
  cuda::Grid grid;
  grid.threads = threads;
  const cuda::Grid one = grid;
  grid.blocks[0] = static_cast<unsigned>(blocks);
  DynamicPlan plan{queue_of(run).allocate(8 + blocks * 8),
                   CudaBlocks(run, "const float* x, float* pairs", range_text,
                              R"(float low = 0, high = 0;
  for (i64 i = THREAD; i < v[0]; i += THREADS) {
    const float value = x[i];
    if (value < low) low = value;
    if (value > high) high = value;
  }
  range_of_block(low, high);
  if (threadIdx.x == 0) {
    pairs[2 + 2 * blockIdx.x] = low;
    pairs[3 + 2 * blockIdx.x] = high;
  })",
                              {x.elements()}, grid),
                   CudaBlocks(run, "float* pairs, float* scale, u8* zero_point", range_text,
                              R"(float low = 0, high = 0;
  for (i64 i = threadIdx.x; i < v[0]; i += blockDim.x) {
    if (pairs[2 + 2 * i] < low) low = pairs[2 + 2 * i];
    if (pairs[3 + 2 * i] > high) high = pairs[3 + 2 * i];
  }
  range_of_block(low, high);
  if (threadIdx.x > 0) return;
  const float step = low == high ? 1.0f / 255 : (high - low) / 255, below = 0 - low / step;
  const float zero = below == below ? rint(below < 0 ? 0 : below > 255 ? 255 : below) : 0;
  pairs[0] = step;
  pairs[1] = zero;
  if (scale) *scale = step;
  if (zero_point) *zero_point = (u8)zero;)",
                              {blocks}, one),
                   {}};
  if (run.wants_output(0))
    plan.quantize.emplace(element_loop(run, run.output(0), "const float* x, const float* pairs",
                                       "const float q = rint(x[e] / pairs[0]) + pairs[1];\n    "
                                       "r = (u8)(i32)(q > 0.0f ? (q < 255.0f ? q : 255.0f) : 0.0f);",
                                       {}, ""));
  return plan;
}

void run_dynamic_quantize(KernelRun& run) {
  const Tensor& x = run.input(0);
  const auto& plan = run.per_plan<DynamicPlan>([&] { return prepare_dynamic(run, x); });
  const void* pairs = plan.scratch.get();
  plan.find.run(run, {x.raw(), pairs});
  plan.finish.run(run, {pairs, run.wants_output(1) ? run.output(1).raw() : nullptr,
                        run.wants_output(2) ? run.output(2).raw() : nullptr});
  if (plan.quantize) plan.quantize->run(run, {run.output(0).raw(), x.raw(), pairs});
}

}  // namespace

void cuda_quantize(CudaKernels& list) {
  list.add_simple("QuantizeLinear", run_quantize, {.types = cuda_elements});
  list.add_simple("DequantizeLinear", run_dequantize, {.types = cuda_elements});
  list.add_simple("DynamicQuantizeLinear", run_dynamic_quantize);
}

}  // namespace tenon::ops
