#include "ops/range/range.h"

#include <bit>

#include "ops/cuda_support/element_text.h"
#include "ops/dispatch.h"

namespace tenon::ops {
namespace {

constexpr const char* double_of_text = R"(#ifdef TENON_EMULATED
inline double double_of(i64 bits) { double x; __builtin_memcpy(&x, &bits, 8); return x; }
#else
inline double double_of(i64 bits) { return __longlong_as_double(bits); }
#endif
)";

struct RangePlan {
  int64_t length;
  std::optional<CudaLoop> loop;
};

// The bits of a scalar: of a double for floats, of the integer otherwise.
int64_t scalar_bits(const Tensor& tensor) {
  int64_t bits = 0;
  dispatch<float, double, float16, bfloat16, int16_t, int32_t, int64_t>(tensor.type(), [&]<typename T>() {
    if constexpr (std::is_integral_v<T>)
      bits = tensor.data<T>()[0];
    else if constexpr (std::is_same_v<T, double>)
      bits = std::bit_cast<int64_t>(tensor.data<T>()[0]);
    else
      bits = std::bit_cast<int64_t>(static_cast<double>(static_cast<float>(tensor.data<T>()[0])));
  });
  return bits;
}

// Half precision is computed in float, integers where products may wrap around.
RangePlan prepare(KernelRun& run) {
  const Tensor &start = run.input(0), &delta = run.input(2);
  RangePlan plan{range_length(start, run.input(1), delta), {}};
  const std::string_view type = cuda::type_text(start.type());
  const std::string body =
      is_floating(start.type())
          ? fmt::format(
                "typedef Wide<{0}> W; y[i] = narrow<{0}>((W)double_of(v[0]) + times((W)i, (W)double_of(v[1])));", type)
          : fmt::format("y[i] = ({})((u64)v[0] + (u64)i * (u64)v[1]);", type);
  plan.loop.emplace(run, plan.length, fmt::format("{}* y", type), body,
                    std::vector<int64_t>{scalar_bits(start), scalar_bits(delta)},
                    std::string(double_of_text) + std::string(exact_product_text()));
  return plan;
}

void run_range(KernelRun& run) {
  const auto& plan = run.per_plan<RangePlan>([&] { return prepare(run); });
  Tensor& y = run.output(0, run.input(0).type(), Shape{plan.length});
  plan.loop->run(run, {y.raw()});
}

}  // namespace

void cuda_range(CudaKernels& list) {
  list.add_simple("Range", run_range, {.types = types::numbers, .host_inputs = {0, 1, 2}});
}

}  // namespace tenon::ops
