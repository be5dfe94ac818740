#include <algorithm>

#include "ops/cpu_support/axis_view.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

struct Sum {
  static constexpr int start = 0;
  template <typename A>
  static A merge(A a, A b) {
    return a + b;
  }
};
struct Product {
  static constexpr int start = 1;
  template <typename A>
  static A merge(A a, A b) {
    return a * b;
  }
};

constexpr int64_t column_block = 256;

struct Order {
  bool exclusive, reverse;
};

// Running totals of `n` adjacent columns of [size, inner]. Signed integers wrap around.
template <typename F, typename T>
void accumulate(const T* x, T* y, int64_t size, int64_t inner, int64_t n, Order order) {
  using C = Compute<T>;
  const int64_t first = order.reverse ? (size - 1) * inner : 0, next = order.reverse ? -inner : inner;
  x += first;
  y += first;
  if constexpr (std::is_same_v<T, C>) {
    // The row before has the totals so far.
    for (int64_t i = 0; i < n; ++i) y[i] = order.exclusive ? T(F::start) : F::merge(T(F::start), x[i]);
    const T* added = order.exclusive ? x : x + next;
    for (int64_t step = 1; step < size; ++step, added += next, y += next) {
      TENON_INDEPENDENT_LOOP
      for (int64_t i = 0; i < n; ++i) y[next + i] = F::merge(y[i], added[i]);
    }
  } else {
    C totals[column_block];
    std::fill_n(totals, n, C(F::start));
    for (int64_t step = 0; step < size; ++step, x += next, y += next) {
      for (int64_t i = 0; i < n; ++i) {
        const C before = totals[i];
        totals[i] = F::merge(before, static_cast<C>(x[i]));
        y[i] = static_cast<T>(order.exclusive ? before : totals[i]);
      }
    }
  }
}

// The same for one row of adjacent elements.
template <typename F, typename T>
void accumulate_row(const T* x, T* y, int64_t size, Order order) {
  using C = Compute<T>;
  C total(F::start);
  int64_t step = order.reverse ? -1 : 1;
  for (int64_t i = order.reverse ? size - 1 : 0; i >= 0 && i < size; i += step) {
    C next = F::merge(total, static_cast<C>(x[i]));
    y[i] = static_cast<T>(order.exclusive ? total : next);
    total = next;
  }
}

template <typename F, typename T>
void accumulate_all(ThreadPool& threads, const Tensor& x, Tensor& y, const AxisView& view, Order order) {
  const T* from = static_cast<const T*>(x.raw());
  T* to = static_cast<T*>(y.mutable_raw());
  int64_t blocks = (view.inner + column_block - 1) / column_block;
  int64_t grain = std::max<int64_t>(1, cheap_grain / (view.size * std::min(view.inner, column_block)));
  threads.parallel_for(view.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t column = i % blocks * column_block, first = i / blocks * view.size * view.inner + column;
      if (view.inner == 1) {
        accumulate_row<F>(from + first, to + first, view.size, order);
      } else {
        int64_t columns = std::min(column_block, view.inner - column);
        accumulate<F>(from + first, to + first, view.size, view.inner, columns, order);
      }
    }
  });
}

template <typename F>
class Cumulative final : public Kernel {
 public:
  explicit Cumulative(const NodeInfo& info)
      : order_{info.node().int_attribute("exclusive", 0) != 0, info.node().int_attribute("reverse", 0) != 0} {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (x.elements() == 0) return;
    AxisView view(x.shape(), run.ints(1)[0]);
    ThreadPool& threads = run.threads();
    switch (x.type()) {
      using enum ElementType;
      case int32:
      case uint32:
        return accumulate_all<F, uint32_t>(threads, x, y, view, order_);
      case int64:
      case uint64:
        return accumulate_all<F, uint64_t>(threads, x, y, view, order_);
      default:
        break;
    }
    dispatch<float, double, tenon::float16, tenon::bfloat16>(
        x.type(), [&]<typename T>() { accumulate_all<F, T>(threads, x, y, view, order_); });
  }

 private:
  Order order_;
};

}  // namespace

void cpu_cumulative(CpuKernels& list) {
  list.add("CumSum", [](const NodeInfo& info) { return std::make_unique<Cumulative<Sum>>(info); });
  list.add("CumProd", [](const NodeInfo& info) { return std::make_unique<Cumulative<Product>>(info); });
}

}  // namespace tenon::ops
