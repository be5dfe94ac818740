#include "ops/cpu_support/unary_kernel.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// NaN in either input gives NaN.
struct Max {
  template <typename T>
  static T call(T a, T b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct Min {
  template <typename T>
  static T call(T a, T b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};
struct Add {
  template <typename T>
  static T call(T a, T b) {
    return a + b;
  }
};
// a: by how much.
struct Divide {
  static auto call(auto x, const Parameters& p) { return x / p.a; }
};

template <typename F>
constexpr LoopTable<BinaryLoop> number_loops = binary_loops<F, float, double, float16, bfloat16, uint8_t, uint16_t,
                                                            uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>();
constexpr LoopTable<BinaryLoop> add_floats = binary_loops<Add, float, double, float16, bfloat16>();
constexpr LoopTable<UnaryLoop> divide_floats = unary_loops<Divide, float, double, float16, bfloat16>();

// Combines the inputs one after the other, in the memory of the output.
void combine(KernelRun& run, const LoopTable<BinaryLoop>& table) {
  if (run.input_count() == 1) return run.set_output(0, run.value(0));
  Tensor& y = run.output(0);
  BinaryLoop loop = loop_for(table, y.type());
  for (size_t k = 1; k < run.input_count(); ++k) {
    const Tensor& a = k == 1 ? run.input(0) : y;
    const Tensor& b = run.input(k);
    Broadcast(y.shape(), {&a.shape(), &b.shape()}).run(run.threads(), cheap_grain, [&](const BroadcastTile& tile) {
      loop(a.raw(), b.raw(), y.mutable_raw(), tile);
    });
  }
}

void run_mean(KernelRun& run) {
  combine(run, add_floats);
  if (run.input_count() == 1) return;
  Tensor& y = run.output(0);
  UnaryLoop divide = loop_for(divide_floats, y.type());
  char* data = static_cast<char*>(y.mutable_raw());
  int64_t size = bits_of(y.type()) / 8;
  Parameters count{static_cast<float>(run.input_count())};
  run.threads().parallel_for(y.elements(), cheap_grain, [&](int64_t begin, int64_t end) {
    divide(data + begin * size, data + begin * size, end - begin, count);
  });
}

}  // namespace

void cpu_variadic(CpuKernels& list) {
  list.add_simple("Max", [](KernelRun& run) { combine(run, number_loops<Max>); });
  list.add_simple("Min", [](KernelRun& run) { combine(run, number_loops<Min>); });
  list.add_simple("Sum", [](KernelRun& run) { combine(run, add_floats); });
  list.add_simple("Mean", run_mean);
}

}  // namespace tenon::ops
