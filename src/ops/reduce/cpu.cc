#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/math/math.h"
#include "ops/cpu_support/extreme.h"
#include "ops/cpu_support/float_vectors.h"
#include "ops/cpu_support/row_statistics.h"
#include "ops/elementwise.h"
#include "ops/reduce/plan.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// The type that F collects elements of type T in: integers as such, unless F has logarithms.
template <typename F, typename T>
using Accumulator = std::conditional_t < !std::is_integral_v<T>,
      Compute<T>, std::conditional_t < requires {
  F::has_logarithms;
}
, double, std::conditional_t < std::is_signed_v<T>, int64_t, uint64_t >>> ;

// A result as an element: of an integer, what truncation leaves, and 0 of what is no number.
template <typename T, typename A>
T element_of(A value) {
  if constexpr (std::is_integral_v<T> && std::is_floating_point_v<A>) {
    constexpr A low = static_cast<A>(std::numeric_limits<T>::min()),
                high = static_cast<A>(std::numeric_limits<T>::max());
    if (value != value) return T(0);
    return value >= high  ? std::numeric_limits<T>::max()
           : value <= low ? std::numeric_limits<T>::min()
                          : static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

template <typename A>
A plus(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <typename A>
A times(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

// How values are collected: merge(a, map(x)), from `start` on.
struct Sum {
  static constexpr bool takes_vectors = true;
  template <typename T, typename A>
  static A start() {
    return A(0);
  }
  template <typename A>
  static A map(A x) {
    return x;
  }
  template <typename A>
  static A merge(A a, A b) {
    return plus(a, b);
  }
};
struct SumOfMagnitudes : Sum {
  static constexpr bool takes_vectors = false;
  template <typename A>
  static A map(A x) {
    if constexpr (std::is_floating_point_v<A>)
      return std::fabs(x);
    else if constexpr (std::is_signed_v<A>)
      return x < 0 ? static_cast<A>(0 - static_cast<uint64_t>(x)) : x;
    else
      return x;
  }
};
struct SumOfSquares : Sum {
  template <typename A>
  static A map(A x) {
    return times(x, x);
  }
};
struct LogarithmOfSum : Sum {
  static constexpr bool has_logarithms = true;
};
struct Product {
  static constexpr bool takes_vectors = true;
  template <typename T, typename A>
  static A start() {
    return A(1);
  }
  template <typename A>
  static A map(A x) {
    return x;
  }
  template <typename A>
  static A merge(A a, A b) {
    return times(a, b);
  }
};
struct Largest {
  static constexpr bool is_largest = true;
  template <typename T, typename A>
  static A start() {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(std::numeric_limits<T>::lowest());
    else
      return -std::numeric_limits<A>::infinity();
  }
  template <typename A>
  static A map(A x) {
    return x;
  }
  template <typename A>
  static A merge(A a, A b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct Smallest {
  static constexpr bool is_largest = false;
  template <typename T, typename A>
  static A start() {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(std::numeric_limits<T>::max());
    else
      return std::numeric_limits<A>::infinity();
  }
  template <typename A>
  static A map(A x) {
    return x;
  }
  template <typename A>
  static A merge(A a, A b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};

// The sum of exponentials as sum * exp(largest), so that it does not overflow.
template <typename A>
struct ExponentialSum {
  A largest = -std::numeric_limits<A>::infinity(), sum = 0;
};
struct SumOfExponentials {
  static constexpr bool has_logarithms = true;
  template <typename T, typename A>
  static ExponentialSum<A> start() {
    return {};
  }
  template <typename A>
  static ExponentialSum<A> map(A x) {
    return {x, 1};
  }
  template <typename A>
  static ExponentialSum<A> merge(ExponentialSum<A> a, ExponentialSum<A> b) {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    if (a.largest > b.largest) return {a.largest, a.sum + b.sum * std::exp(b.largest - a.largest)};
    return {b.largest, b.sum + a.sum * std::exp(a.largest - b.largest)};
  }
};

enum class Finish { none, mean, square_root, logarithm };

template <typename A>
A finished(A total, Finish finish, int64_t count) {
  switch (finish) {
    case Finish::none:
      return total;
    case Finish::mean:
      if constexpr (std::is_integral_v<A>)
        return count ? static_cast<A>(total / static_cast<A>(count)) : A(0);
      else
        return total / static_cast<A>(count);
    case Finish::square_root:
      return static_cast<A>(std::sqrt(total));
    case Finish::logarithm:
      if constexpr (std::is_floating_point_v<A>)
        return std::log(total);
      else
        return A(0);
  }
  return total;
}

template <typename A>
A finished(ExponentialSum<A> total, Finish, int64_t) {
  return total.largest + std::log(total.sum);
}

// The loop of reduce_run for floats; how many elements that were. Compilers do not vectorise a loop that fetches ahead.
template <typename F, int64_t lane_count>
int64_t merge_vectors(const float* x, int64_t n, float (&lanes)[lane_count]) {
  FloatVector totals[lane_count / float_lanes], value;
  std::memcpy(totals, lanes, sizeof totals);
  int64_t i = 0;
  for (; i + lane_count <= n; i += lane_count) {
    fetch_ahead(x + i);
    for (size_t k = 0; k < std::size(totals); ++k) {
      std::memcpy(&value, x + i + k * float_lanes, sizeof value);
      totals[k] = F::merge(totals[k], F::map(value));
    }
  }
  std::memcpy(lanes, totals, sizeof totals);
  return i;
}

// exp(x[0] - largest) + exp(x[1] - largest) + …
float sum_of_exponentials(const float* x, int64_t n, float largest) {
  constexpr int64_t block = 512;
  float buffer[block], sum = 0;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t size = std::min(block, n - begin);
    for (int64_t i = 0; i < size; ++i) buffer[i] = x[begin + i] - largest;
    kernels::f32_exp(buffer, buffer, size);
    sum += row_sum(buffer, size);
  }
  return sum;
}

template <typename F, typename T>
constexpr bool merges_vectors() {
  if constexpr (requires { F::takes_vectors; }) return F::takes_vectors && std::is_same_v<T, float>;
  return false;
}

// Adjacent elements to one. Several independent lanes let the loop vectorise and keep rounding errors small.
template <typename F, typename T, typename A>
auto reduce_run(const T* x, int64_t n) {
  if constexpr (requires { F::is_largest; } && std::is_floating_point_v<A>) return extreme<F::is_largest>(x, n);
  if constexpr (std::is_same_v<F, SumOfExponentials> && std::is_same_v<T, float>) {
    if (const float largest = extreme<true>(x, n); std::isfinite(largest))
      return ExponentialSum<float>{largest, sum_of_exponentials(x, n, largest)};
  }
  using Total = decltype(F::template start<T, A>());
  constexpr int64_t lane_count = 16;
  Total lanes[lane_count];
  std::fill_n(lanes, lane_count, F::template start<T, A>());
  int64_t i = 0;
  if constexpr (merges_vectors<F, T>()) i = merge_vectors<F>(x, n, lanes);
  for (; i + lane_count <= n; i += lane_count) {
    for (int64_t lane = 0; lane < lane_count; ++lane) {
      lanes[lane] = F::merge(lanes[lane], F::map(static_cast<A>(x[i + lane])));
    }
  }
  for (; i < n; ++i) lanes[i % lane_count] = F::merge(lanes[i % lane_count], F::map(static_cast<A>(x[i])));
  for (int64_t step = lane_count / 2; step > 0; step /= 2) {
    for (int64_t lane = 0; lane < step; ++lane) lanes[lane] = F::merge(lanes[lane], lanes[lane + step]);
  }
  return lanes[0];
}

float short_sum(const float* x, int64_t n) {
  using Vector [[gnu::vector_size(16)]] = float;
  Vector sum, value;
  std::memcpy(&sum, x, sizeof sum);
  int64_t i = 4;
  for (; i + 4 <= n; i += 4) {
    std::memcpy(&value, x + i, sizeof value);
    sum += value;
  }
  float rest = 0;
  for (; i < n; ++i) rest += x[i];
  return (sum[0] + sum[2]) + (sum[1] + sum[3]) + rest;
}

// The same for few elements: two lanes, without the cost of more.
template <typename F, typename T, typename A>
auto reduce_short_run(const T* x, int64_t n) {
  if constexpr (requires { F::is_largest; } && std::is_same_v<T, float>) {
    if (n >= 4) return short_extreme<F::is_largest>(x, n);
  }
  if constexpr (std::is_same_v<F, Sum> && std::is_same_v<T, float>) {
    if (n >= 4) return short_sum(x, n);
  }
  auto even = F::template start<T, A>(), odd = even;
  if constexpr (std::is_integral_v<A>) {
    // One lane: integers do not wait for long, and gcc 12 makes vectors of two 32-bit lanes that miss elements.
    for (int64_t i = 0; i < n; ++i) even = F::merge(even, F::map(static_cast<A>(x[i])));
    return even;
  }
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    even = F::merge(even, F::map(static_cast<A>(x[i])));
    odd = F::merge(odd, F::map(static_cast<A>(x[i + 1])));
  }
  if (i < n) even = F::merge(even, F::map(static_cast<A>(x[i])));
  return F::merge(even, odd);
}

// Rows that follow each other, each to one element.
template <typename F, typename T>
void reduce_short_rows(const T* x, int64_t run, T* y, int64_t begin, int64_t end, Finish finish) {
  for (int64_t i = begin; i < end; ++i)
    y[i] = element_of<T>(finished(reduce_short_run<F, T, Accumulator<F, T>>(x + i * run, run), finish, run));
}

constexpr int64_t run_block = 4096;

template <typename F, typename T>
void reduce_rows(const ReducePlan& plan, const T* x, T* y, int64_t begin, int64_t end, Finish finish) {
  using A = Accumulator<F, T>;
  constexpr int64_t short_run = 32;
  if (plan.run < short_run && plan.count == plan.run && plan.kept.size() <= 1)
    return reduce_short_rows<F>(x, plan.run, y, begin, end, finish);
  for (int64_t i = begin; i < end; ++i) {
    const T* from = x + plan.first(i);
    auto total = F::template start<T, A>();
    plan.for_each_reduced([&](int64_t offset) {
      for (int64_t at = 0; at < plan.run; at += run_block) {
        total = F::merge(total, reduce_run<F, T, A>(from + offset + at, std::min(run_block, plan.run - at)));
      }
    });
    y[i] = element_of<T>(finished(total, finish, plan.count));
  }
}

// Columns whose totals are held at once, on the stack: long pieces of rows are read faster.
template <typename Total>
constexpr int64_t most_columns = (64 << 10) / static_cast<int64_t>(sizeof(Total));
constexpr int64_t least_columns = 2048;

// value(0) to value(count - 1), merged in pairs.
template <int count, typename Value, typename Merge>
auto merged(Value value, Merge merge) {
  if constexpr (count == 1)
    return value(0);
  else
    return merge(merge(value(0), value(1)), merge(value(2), value(3)));
}

// Merges what is at i in each row into totals[i], in whole vectors; how many elements that were.
template <bool largest, typename T, int count>
int64_t merge_extremes(T* totals, const T* const (&rows)[count], int64_t n) {
  using Vector = typename kernels::VectorOf<T>::Type;
  constexpr int64_t width = kernels::vector_bytes / sizeof(T);
  const auto load = [](const T* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  };
  const auto pick = [](Vector a, Vector b) { return kernels::extreme_of<largest, T>(a, b); };
  int64_t i = 0;
  for (; i + width <= n; i += width) {
    const Vector total = pick(load(totals + i), merged<count>([&](int k) { return load(rows[k] + i); }, pick));
    std::memcpy(totals + i, &total, sizeof total);
  }
  return i;
}

template <typename F, typename A, typename T, typename Total, int count>
void merge_rows(Total* __restrict totals, const T* const (&rows)[count], int64_t n) {
  int64_t i = 0;
  if constexpr (requires { F::is_largest; } && std::is_same_v<T, float>)
    i = merge_extremes<F::is_largest>(totals, rows, n);
  const auto merge = [](Total a, Total b) { return F::merge(a, b); };
  for (; i < n; ++i)
    totals[i] = merge(totals[i], merged<count>([&](int k) { return F::map(static_cast<A>(rows[k][i])); }, merge));
}

// Rows of adjacent elements that are kept, added up column by column.
template <typename F, typename T>
void reduce_columns(const ReducePlan& plan, const T* x, T* y, int64_t row, int64_t first, int64_t n, Finish finish) {
  using A = Accumulator<F, T>;
  using Total = decltype(F::template start<T, A>());
  Total totals[most_columns<Total>];
  std::fill_n(totals, n, F::template start<T, A>());
  const T* from = x + plan.first(row) + first;
  // Several long rows at once; short ones are read faster one after the other. What is long does not depend on n, which
  // depends on the number of threads: sums are to be the same for any.
  constexpr int64_t long_row = 4096;
  const bool is_long = plan.inner >= long_row;
  const T* rows[4];
  int held = 0;
  const auto merge_one = [&](const T* one) { merge_rows<F, A, T, Total, 1>(totals, {one}, n); };
  plan.for_each_reduced([&](int64_t offset) {
    if (!is_long) return merge_one(from + offset);
    rows[held++] = from + offset;
    if (held < 4) return;
    merge_rows<F, A>(totals, rows, n);
    held = 0;
  });
  for (int k = 0; k < held; ++k) merge_one(rows[k]);
  T* to = y + row * plan.inner + first;
  for (int64_t i = 0; i < n; ++i) to[i] = element_of<T>(finished(totals[i], finish, plan.count));
}

// Whether rows of `width` elements are kept and all that are reduced follow each other.
bool has_dense_rows(const ReducePlan& plan, int64_t width) {
  return plan.inner == width && plan.reduced.size() == 1 && plan.reduced[0].stride == width;
}

// The same for dense rows: as in reduce_run, several lanes keep rounding errors small.
template <typename F, int Width, typename T>
void reduce_dense_rows(const ReducePlan& plan, const T* x, T* y, int64_t begin, int64_t end, Finish finish) {
  using A = Accumulator<F, T>;
  constexpr int64_t lane_count = 4, rows_at_once = 1024;
  const auto start = F::template start<T, A>();
  using Total = std::remove_const_t<decltype(start)>;
  for (int64_t i = begin; i < end; ++i) {
    const T* from = x + plan.first(i);
    Total totals[Width];
    std::fill_n(totals, Width, start);
    for (int64_t row = 0; row < plan.count; row += rows_at_once) {
      const int64_t last = std::min(plan.count, row + rows_at_once);
      Total lanes[lane_count * Width];
      std::fill_n(lanes, lane_count * Width, start);
      int64_t r = row;
      for (; r + lane_count <= last; r += lane_count) {
        for (int64_t j = 0; j < lane_count * Width; ++j)
          lanes[j] = F::merge(lanes[j], F::map(static_cast<A>(from[r * Width + j])));
      }
      for (; r < last; ++r) {
        for (int64_t j = 0; j < Width; ++j) lanes[j] = F::merge(lanes[j], F::map(static_cast<A>(from[r * Width + j])));
      }
      for (int64_t j = 0; j < lane_count * Width; ++j) totals[j % Width] = F::merge(totals[j % Width], lanes[j]);
    }
    for (int64_t j = 0; j < Width; ++j) y[i * Width + j] = element_of<T>(finished(totals[j], finish, plan.count));
  }
}

using ReduceLoop = void (*)(ThreadPool& threads, const ReducePlan& plan, const void* x, void* y, Finish finish);

template <typename F, typename T>
void reduce(ThreadPool& threads, const ReducePlan& plan, const void* from, void* to, Finish finish) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  constexpr int64_t work = 32768;
  if (plan.inner == 1) {
    int64_t grain = std::max<int64_t>(1, work / std::max<int64_t>(1, plan.count));
    return threads.parallel_for(plan.outer, grain,
                                [&](int64_t begin, int64_t end) { reduce_rows<F>(plan, x, y, begin, end, finish); });
  }
  for (int64_t width : {8, 16}) {
    if (!has_dense_rows(plan, width)) continue;
    const int64_t grain = 1 + work / std::max<int64_t>(1, plan.count * width);
    return threads.parallel_for(plan.outer, grain, [&](int64_t begin, int64_t end) {
      (width == 8 ? reduce_dense_rows<F, 8, T> : reduce_dense_rows<F, 16, T>)(plan, x, y, begin, end, finish);
    });
  }
  using Total = decltype(F::template start<T, Accumulator<F, T>>());
  const int64_t columns = std::clamp(plan.inner / threads.size(), least_columns, most_columns<Total>);
  const int64_t blocks = (plan.inner + columns - 1) / columns;
  const int64_t grain = std::max<int64_t>(1, work / std::max<int64_t>(1, plan.count * std::min(plan.inner, columns)));
  threads.parallel_for(plan.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * columns;
      reduce_columns<F>(plan, x, y, i / blocks, first, std::min(columns, plan.inner - first), finish);
    }
  });
}

template <typename F, typename... Ts>
constexpr LoopTable<ReduceLoop> reduce_loops() {
  LoopTable<ReduceLoop> table{};
  ((table[static_cast<size_t>(element_type_of<Ts>)] = reduce<F, Ts>), ...);
  return table;
}

class Reduce final : public Kernel {
 public:
  Reduce(const NodeInfo& info, const LoopTable<ReduceLoop>& table, Finish finish)
      : table_(table), finish_(finish), keep_when_empty_(info.node().int_attribute("noop_with_empty_axes", 0) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    std::vector<int64_t> axes;
    if (run.has_input(1)) axes = run.ints(1);
    if (axes.empty() && !keep_when_empty_) {
      for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
    }
    loop_for(table_, x.type())(run.threads(), ReducePlan(x.shape(), axes), x.raw(), y.mutable_raw(), finish_);
  }

 private:
  const LoopTable<ReduceLoop>& table_;
  Finish finish_;
  bool keep_when_empty_;
};

template <typename F, typename... More>
void add(CpuKernels& list, std::string_view name, Finish finish) {
  static constexpr LoopTable<ReduceLoop> table = reduce_loops<F, float, double, float16, bfloat16, More...>();
  list.add(name, [finish](const NodeInfo& info) { return std::make_unique<Reduce>(info, table, finish); });
}

template <typename F, typename... More>
void add_numbers(CpuKernels& list, std::string_view name, Finish finish) {
  add<F, int32_t, int64_t, uint32_t, uint64_t, More...>(list, name, finish);
}

}  // namespace

void cpu_reduce(CpuKernels& list) {
  add_numbers<Sum>(list, "ReduceSum", Finish::none);
  add_numbers<Sum>(list, "ReduceMean", Finish::mean);
  add_numbers<Product>(list, "ReduceProd", Finish::none);
  add_numbers<SumOfMagnitudes>(list, "ReduceL1", Finish::none);
  add_numbers<SumOfSquares>(list, "ReduceL2", Finish::square_root);
  add_numbers<SumOfSquares>(list, "ReduceSumSquare", Finish::none);
  add_numbers<Largest, int8_t, uint8_t, bool>(list, "ReduceMax", Finish::none);
  add_numbers<Smallest, int8_t, uint8_t, bool>(list, "ReduceMin", Finish::none);
  add_numbers<LogarithmOfSum>(list, "ReduceLogSum", Finish::logarithm);
  add_numbers<SumOfExponentials>(list, "ReduceLogSumExp", Finish::none);
}

}  // namespace tenon::ops
