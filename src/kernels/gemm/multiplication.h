// What products share whose kernels want their thread prepared.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/cpu_features.h"
#include "base/rounding.h"
#include "base/thread_pool.h"

namespace tenon::kernels {

// The time in which a thread multiplies with kernels that have `enter` and `leave`, which may be null.
template <class Kernels>
class Multiplication {
 public:
  explicit Multiplication(const Kernels& kernels) : kernels_(kernels) {
    if (kernels_.enter) kernels_.enter();
  }
  ~Multiplication() {
    if (kernels_.leave) kernels_.leave();
  }
  Multiplication(const Multiplication&) = delete;
  Multiplication& operator=(const Multiplication&) = delete;

 private:
  const Kernels& kernels_;
};

// Panels of both sides, shared by threads: tasks take rows so that their left panels stay in the second cache, and
// columns so that there are some for each thread; one thread alone takes all columns. Calls multiply(row, row_end,
// column, column_end) for panels of each task. With `pool` null it runs in the caller.
template <class Kernels, class Multiply>
void share_panels(ThreadPool* pool, const Kernels& kernels, int64_t row_panels, int64_t column_panels,
                  int64_t left_panel_bytes, Multiply multiply) {
  constexpr int64_t tasks_per_thread = 4;
  const int64_t cached = std::max<int64_t>(1, cpu_features().l2_bytes / 2 / (left_panel_bytes + 1));
  const int64_t wanted = pool && pool->size() > 1 ? tasks_per_thread * pool->size() : 1;
  int64_t row_tasks = divide_up(row_panels, cached);
  const int64_t columns_each = divide_up(column_panels, std::min(column_panels, divide_up(wanted, row_tasks)));
  const int64_t column_tasks = divide_up(column_panels, columns_each);
  if (row_tasks * column_tasks < wanted) row_tasks = std::min(row_panels, divide_up(wanted, column_tasks));
  const int64_t rows_each = divide_up(row_panels, row_tasks);
  row_tasks = divide_up(row_panels, rows_each);
  const auto body = [&](int64_t begin, int64_t end) {
    const Multiplication multiplication(kernels);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task / column_tasks * rows_each, column = task % column_tasks * columns_each;
      multiply(row, std::min(row + rows_each, row_panels), column, std::min(column + columns_each, column_panels));
    }
  };
  if (pool)
    pool->parallel_for(row_tasks * column_tasks, 1, body);
  else
    body(0, row_tasks * column_tasks);
}

}  // namespace tenon::kernels
