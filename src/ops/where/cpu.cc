#include "base/independent_loop.h"
#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// `condition` is 0 or 1; as a number, because loops over bools do not vectorise.
template <typename T>
T select(uint8_t condition, T x, T y) {
  T mask = static_cast<T>(T(0) - static_cast<T>(condition));
  return static_cast<T>(((x ^ y) & mask) ^ y);
}

template <typename T>
void choose(const uint8_t* condition, const T* x, const T* y, T* out, const BroadcastTile& tile) {
  auto [dc, dx, dy] = tile.column_stride;
  int64_t n = tile.columns;
  condition += tile.first[0];
  x += tile.first[1];
  y += tile.first[2];
  out += tile.output;
  for (int64_t row = 0; row < tile.rows; ++row) {
    if (!dc) {
      const T* source = *condition ? x : y;
      if (*condition ? dx : dy)
        std::copy_n(source, n, out);
      else
        std::fill_n(out, n, *source);
    } else if constexpr (std::is_integral_v<T>) {
      // Both sides are read always, so that the loops need no branches.
      if (dx && dy) {
        TENON_INDEPENDENT_LOOP
        for (int64_t i = 0; i < n; ++i) out[i] = select(condition[i], x[i], y[i]);
      } else if (dx) {
        const T other = *y;
        TENON_INDEPENDENT_LOOP
        for (int64_t i = 0; i < n; ++i) out[i] = select(condition[i], x[i], other);
      } else if (dy) {
        const T other = *x;
        TENON_INDEPENDENT_LOOP
        for (int64_t i = 0; i < n; ++i) out[i] = select(condition[i], other, y[i]);
      } else {
        const T first = *x, second = *y;
        TENON_INDEPENDENT_LOOP
        for (int64_t i = 0; i < n; ++i) out[i] = select(condition[i], first, second);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = condition[i] ? x[i * dx] : y[i * dy];
    }
    condition += tile.row_stride[0];
    x += tile.row_stride[1];
    y += tile.row_stride[2];
    out += n;
  }
}

void run_where(KernelRun& run) {
  const Tensor& condition = run.input(0);
  const Tensor& x = run.input(1);
  const Tensor& y = run.input(2);
  Tensor& out = run.output(0);
  Broadcast loop(out.shape(), {&condition.shape(), &x.shape(), &y.shape()});
  const auto* flags = reinterpret_cast<const uint8_t*>(condition.data<bool>().data());
  dispatch_width(x.type(), [&]<typename T>() {
    loop.run(run.threads(), cheap_grain, [&](const BroadcastTile& tile) {
      choose(flags, static_cast<const T*>(x.raw()), static_cast<const T*>(y.raw()), static_cast<T*>(out.mutable_raw()),
             tile);
    });
  });
}

}  // namespace

void cpu_where(CpuKernels& list) { list.add_simple("Where", run_where); }

}  // namespace tenon::ops
