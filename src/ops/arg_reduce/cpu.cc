#include <algorithm>

#include "ops/cpu_support/axis_view.h"
#include "ops/cpu_support/extreme.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Whether x takes the place of the best so far. NaN does, and keeps it.
template <bool largest, bool last, typename C>
bool better(C x, C best) {
  if constexpr (largest) {
    return x > best || (last && x == best) || (x != x && (last || best == best));
  } else {
    return x < best || (last && x == best) || (x != x && (last || best == best));
  }
}

constexpr int64_t column_block = 256;

// Positions for `n` adjacent columns of [size, inner].
template <bool largest, bool last, typename T>
void find_columns(const T* x, int64_t size, int64_t inner, int64_t n, int64_t* y) {
  using C = Compute<T>;
  C best[column_block];
  for (int64_t i = 0; i < n; ++i) {
    best[i] = static_cast<C>(x[i]);
    y[i] = 0;
  }
  for (int64_t row = 1; row < size; ++row) {
    const T* values = x + row * inner;
    for (int64_t i = 0; i < n; ++i) {
      C value = static_cast<C>(values[i]);
      bool take = better<largest, last>(value, best[i]);
      best[i] = take ? value : best[i];
      y[i] = take ? row : y[i];
    }
  }
}

template <bool largest>
class ArgReduce final : public Kernel {
 public:
  explicit ArgReduce(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", 0)), last_(info.node().int_attribute("select_last_index", 0) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    AxisView view(x.shape(), axis_);
    int64_t* to = y.mutable_data<int64_t>().data();
    int64_t blocks = (view.inner + column_block - 1) / column_block;
    int64_t grain = std::max<int64_t>(1, cheap_grain / (view.size * std::min(view.inner, column_block)));
    dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
             uint64_t>(x.type(), [&]<typename T>() {
      const T* from = x.data<T>().data();
      if (view.inner == 1) {
        auto find_one = last_ ? find_extreme<largest, true, T> : find_extreme<largest, false, T>;
        run.threads().parallel_for(view.outer, grain, [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) to[row] = find_one(from + row * view.size, view.size);
        });
        return;
      }
      auto find = last_ ? find_columns<largest, true, T> : find_columns<largest, false, T>;
      run.threads().parallel_for(view.outer * blocks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t row = i / blocks, first = i % blocks * column_block;
          find(from + row * view.size * view.inner + first, view.size, view.inner,
               std::min(column_block, view.inner - first), to + row * view.inner + first);
        }
      });
    });
  }

 private:
  int64_t axis_;
  bool last_;
};

}  // namespace

void cpu_arg_reduce(CpuKernels& list) {
  list.add("ArgMax", [](const NodeInfo& info) { return std::make_unique<ArgReduce<true>>(info); });
  list.add("ArgMin", [](const NodeInfo& info) { return std::make_unique<ArgReduce<false>>(info); });
}

}  // namespace tenon::ops
