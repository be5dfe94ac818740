#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/half/half.h"
#include "kernels/math/math.h"
#include "ops/cpu_support/extreme.h"
#include "ops/cpu_support/float_vectors.h"
#include "ops/cpu_support/row_statistics.h"
#include "ops/elementwise.h"
#include "ops/reduce/functions.h"
#include "ops/reduce/plan.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using namespace reduction;

// The loop of RunTotal for floats; how many elements that were. Compilers do not vectorise a loop that fetches ahead.
template <typename F, bool fetches, int64_t lane_count>
[[gnu::always_inline]] inline int64_t merge_vectors(const float* x, int64_t n, float (&lanes)[lane_count]) {
  // Each vector by itself: an array that is copied as a whole would stay in memory.
  constexpr int vectors = lane_count / float_lanes;
  FloatVector totals[vectors];
#pragma GCC unroll 4
  for (int k = 0; k < vectors; ++k) totals[k] = vector_at(lanes + k * float_lanes);
  int64_t i = 0;
  for (; i + lane_count <= n; i += lane_count) {
    if constexpr (fetches) fetch_ahead(x + i);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) totals[k] = F::merge(totals[k], F::map(vector_at(x + i + k * float_lanes)));
  }
#pragma GCC unroll 4
  for (int k = 0; k < vectors; ++k) std::memcpy(lanes + k * float_lanes, &totals[k], sizeof totals[k]);
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

// What adjacent elements are merged to, some of them at a time.
template <typename F, typename T, typename A>
class RunTotal {
 public:
  using Total = decltype(F::template start<T, A>());

  RunTotal() { std::fill_n(lanes_, lane_count, F::template start<T, A>()); }

  // All but the last are a multiple of 16 elements. `fetches`: what follows them is brought near.
  template <bool fetches>
  [[gnu::always_inline]] void add(const T* x, int64_t n) {
    int64_t i = 0;
    if constexpr (is_extreme) {
      lanes_[0] = F::merge(lanes_[0], static_cast<A>(extreme<F::is_largest, fetches>(x, n)));
      return;
    }
    if constexpr (is_exponential) {
      if (const float largest = extreme<true>(x, n); std::isfinite(largest)) {
        lanes_[0] = F::merge(lanes_[0], Total{largest, sum_of_exponentials(x, n, largest)});
        return;
      }
    }
    if constexpr (merges_vectors<F, T>()) i = merge_vectors<F, fetches>(x, n, lanes_);
    for (; i + lane_count <= n; i += lane_count) {
      for (int64_t lane = 0; lane < lane_count; ++lane)
        lanes_[lane] = F::merge(lanes_[lane], F::map(static_cast<A>(x[i + lane])));
    }
    for (; i < n; ++i) lanes_[i % lane_count] = F::merge(lanes_[i % lane_count], F::map(static_cast<A>(x[i])));
  }

  [[gnu::always_inline]] Total total() {
    for (int64_t step = lane_count / 2; step > 0; step /= 2) {
      for (int64_t lane = 0; lane < step; ++lane) lanes_[lane] = F::merge(lanes_[lane], lanes_[lane + step]);
    }
    return lanes_[0];
  }

 private:
  // Not integers of 64 bits, whose vectors have no maxima on aarch64, and not bool, which has no vectors.
  static constexpr bool is_extreme = requires { F::is_largest; }
  &&(std::is_floating_point_v<A> || (sizeof(T) < 8 && !std::is_same_v<T, bool>));
  static constexpr bool is_exponential = std::is_same_v<F, SumOfExponentials> && std::is_same_v<T, float>;
  // Several independent ones let loops vectorise and keep rounding errors small.
  static constexpr int64_t lane_count = is_extreme || is_exponential ? 1 : 16;
  Total lanes_[lane_count];
};

// The same of float16, a piece at a time as floats, where compilers convert them one by one.
template <typename F>
class HalfRunTotal : public RunTotal<F, float, float> {
 public:
  template <bool>
  void add(const float16* x, int64_t n) {
    constexpr int64_t piece = 512;
    float floats[piece];
    for (int64_t begin = 0; begin < n; begin += piece) {
      const int64_t size = std::min(piece, n - begin);
      kernels::f16_to_f32(&x[begin].bits, floats, size);
      RunTotal<F, float, float>::template add<false>(floats, size);
    }
  }
};

#ifdef __aarch64__
constexpr bool converts_vectors = true;
#else
constexpr bool converts_vectors = false;
#endif

template <typename F, typename T>
using RunTotalOf = std::conditional_t<std::is_same_v<T, float16> && !converts_vectors, HalfRunTotal<F>,
                                      RunTotal<F, T, Accumulator<F, T>>>;

[[gnu::always_inline]] inline float short_sum(const float* x, int64_t n) {
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
[[gnu::always_inline]] inline auto reduce_short_run(const T* x, int64_t n) {
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
  const auto rows = [=](auto how) {
    for (int64_t i = begin; i < end; ++i)
      y[i] = element_of<T>(finished(reduce_short_run<F, T, Accumulator<F, T>>(x + i * run, run), how, run));
  };
  if (finish == Finish::none)
    rows(std::integral_constant<Finish, Finish::none>());
  else
    rows(finish);
}

// What is read in turns, in pieces of so many elements, from places that lie far apart. A core with aarch64 fetches
// ahead at each of them and reads faster than at one place, where it has to be told what comes next.
constexpr int64_t run_block = 4096;
#ifdef __aarch64__
constexpr int64_t places = 4, piece = 1024;
#else
constexpr int64_t places = 1, piece = run_block;
#endif

// Merges n > 0 elements from each of `count` places into its total.
template <typename F, typename T, typename Total>
void reduce_in_turns(const T* const* from, int64_t count, int64_t n, Total* totals) {
  const auto add = [count](RunTotalOf<F, T>& to, const T* x, int64_t size) {
    count <= 2 ? to.template add<true>(x, size) : to.template add<false>(x, size);
  };
  if (n <= piece) {
    for (int64_t k = 0; k < count; ++k) {
      RunTotalOf<F, T> whole;
      add(whole, from[k], n);
      totals[k] = F::merge(totals[k], whole.total());
    }
    return;
  }
  for (int64_t begin = 0; begin < n; begin += run_block) {
    const int64_t end = std::min(n, begin + run_block);
    RunTotalOf<F, T> parts[places];
    for (int64_t at = begin; at < end; at += piece) {
      for (int64_t k = 0; k < count; ++k) add(parts[k], from[k] + at, std::min(piece, end - at));
    }
    for (int64_t k = 0; k < count; ++k) totals[k] = F::merge(totals[k], parts[k].total());
  }
}

// All of n elements to one.
template <typename F, typename T>
auto reduce_all(const T* x, int64_t n) {
  using A = Accumulator<F, T>;
  const auto start = F::template start<T, A>();
  std::remove_const_t<decltype(start)> totals[places], rest = start;
  std::fill_n(totals, places, start);
  const T* from[places];
  for (int64_t k = 0; k < places; ++k) from[k] = x + k * (n / places);
  if (n >= places) reduce_in_turns<F, T>(from, places, n / places, totals);
  const T* last = x + n / places * places;
  if (n % places) reduce_in_turns<F, T>(&last, 1, n % places, &rest);
  for (int64_t k = 0; k < places; ++k) rest = F::merge(rest, totals[k]);
  return rest;
}

template <typename F, typename T>
void reduce_rows(const ReducePlan& plan, const T* x, T* y, int64_t begin, int64_t end, Finish finish) {
  using A = Accumulator<F, T>;
  constexpr int64_t short_run = 32;
  if (plan.run < short_run && plan.count == plan.run && plan.kept.size() <= 1)
    return reduce_short_rows<F>(x, plan.run, y, begin, end, finish);
  const auto write = [&](int64_t i, auto total) { y[i] = element_of<T>(finished(total, finish, plan.count)); };
  if (plan.outer == 1 && plan.count == plan.run) return write(0, reduce_all<F>(x, plan.run));
  // Rows of several runs are not read on where they ended.
  const int64_t rows_each = plan.reduced.empty() ? (end - begin + places - 1) / places : end - begin;
  for (int64_t i = begin; i < begin + rows_each; ++i) {
    const int64_t count = (end - i + rows_each - 1) / rows_each;
    decltype(F::template start<T, A>()) totals[places];
    std::fill_n(totals, places, F::template start<T, A>());
    const T *rows[places], *from[places];
    for (int64_t k = 0; k < count; ++k) rows[k] = x + plan.first(i + k * rows_each);
    plan.for_each_reduced([&](int64_t offset) {
      for (int64_t k = 0; k < count; ++k) from[k] = rows[k] + offset;
      reduce_in_turns<F, T>(from, count, plan.run, totals);
    });
    for (int64_t k = 0; k < count; ++k) write(i + k * rows_each, totals[k]);
  }
}

// Columns whose totals are held at once, on the stack: long pieces of rows are read faster.
template <typename Total>
constexpr int64_t most_columns = (128 << 10) / static_cast<int64_t>(sizeof(Total));
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
template <typename F, int count>
int64_t merge_row_vectors(float* totals, const float* const (&rows)[count], int64_t n) {
  const auto merge = [](FloatVector a, FloatVector b) {
    if constexpr (requires { F::is_largest; })
      return kernels::extreme_of<F::is_largest, float>(a, b);
    else
      return F::merge(a, b);
  };
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + float_lanes <= n; i += float_lanes) {
    const FloatVector total =
        merge(vector_at(totals + i), merged<count>([&](int k) { return F::map(vector_at(rows[k] + i)); }, merge));
    std::memcpy(totals + i, &total, sizeof total);
  }
  return i;
}

template <typename F, typename A, typename T, typename Total, int count>
void merge_rows(Total* __restrict totals, const T* const (&rows)[count], int64_t n) {
  int64_t i = 0;
  if constexpr (merges_vectors<F, T>() || (requires { F::is_largest; } && std::is_same_v<T, float>))
    i = merge_row_vectors<F>(totals, rows, n);
  const auto merge = [](Total a, Total b) { return F::merge(a, b); };
  for (; i < n; ++i)
    totals[i] = merge(totals[i], merged<count>([&](int k) { return F::map(static_cast<A>(rows[k][i])); }, merge));
}

// Whether short rows that are reduced to one are so many that they are read in turns at four places. (Exponentials,
// which take longer than reading, are merged faster in order: their sums then have the highest so far.)
template <typename T, typename Total>
bool reads_in_parts(const ReducePlan& plan) {
  constexpr int64_t least_bytes = 16 << 10;
  return places == 4 && std::is_arithmetic_v<Total> && plan.reduced.size() == 1 &&
         plan.count / places * plan.inner * static_cast<int64_t>(sizeof(T)) >= least_bytes;
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
  int64_t done = 0;
  if (!is_long && reads_in_parts<T, Total>(plan)) {
    const int64_t rows_each = plan.count / 4, stride = plan.reduced[0].stride;
    for (int64_t r = 0; r < rows_each; ++r) {
      for (int k = 0; k < 4; ++k) rows[k] = from + (r + k * rows_each) * stride;
      merge_rows<F, A>(totals, rows, n);
    }
    done = 4 * rows_each;
  }
  plan.for_each_reduced([&](int64_t offset) {
    if (done-- > 0) return;
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

// The same for dense rows: as in RunTotal, several lanes keep rounding errors small.
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
