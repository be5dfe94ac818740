#include <span>
#include <vector>

#include "ops/cpu_support/float_vectors.h"
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

// The same for floats, with the instruction that does it.
template <bool largest>
void extreme_of_floats(const void* from_a, const void* from_b, void* to, const BroadcastTile& tile) {
  const float *a = static_cast<const float*>(from_a) + tile.first[0],
              *b = static_cast<const float*>(from_b) + tile.first[1];
  float* y = static_cast<float*>(to) + tile.output;
  const auto pick = [](FloatVector p, FloatVector q) { return kernels::extreme_of<largest, float>(p, q); };
  for (int64_t row = 0; row < tile.rows; ++row) {
    if (tile.column_stride[0] && tile.column_stride[1])
      map_vectors(a, b, y, tile.columns, pick);
    else if (tile.column_stride[0])
      map_vectors(a, y, tile.columns, [&, q = FloatVector{} + *b](FloatVector p) { return pick(p, q); });
    else
      map_vectors(b, y, tile.columns * tile.column_stride[1],
                  [&, p = FloatVector{} + *a](FloatVector q) { return pick(p, q); });
    if (!tile.column_stride[0] && !tile.column_stride[1])
      std::fill_n(y, tile.columns, pick(FloatVector{} + *a, FloatVector{} + *b)[0]);
    a += tile.row_stride[0];
    b += tile.row_stride[1];
    y += tile.columns;
  }
}

template <typename F>
constexpr LoopTable<BinaryLoop> number_loops = binary_loops<F, float, double, float16, bfloat16, uint8_t, uint16_t,
                                                            uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>();
template <typename F, bool largest>
constexpr LoopTable<BinaryLoop> extreme_loops = [] {
  LoopTable<BinaryLoop> table = number_loops<F>;
  table[static_cast<size_t>(ElementType::float32)] = extreme_of_floats<largest>;
  return table;
}();
constexpr LoopTable<BinaryLoop> add_floats = binary_loops<Add, float, double, float16, bfloat16>();
constexpr LoopTable<UnaryLoop> divide_floats = unary_loops<Divide, float, double, float16, bfloat16>();

bool have_same_shape(const KernelRun& run) {
  for (size_t k = 1; k < run.input_count(); ++k) {
    if (run.input(k).shape() != run.input(0).shape()) return false;
  }
  return true;
}

// Inputs of one shape, a block after the other that stays in the cache; `finish` may follow.
void combine_blocks(KernelRun& run, BinaryLoop loop, UnaryLoop finish) {
  constexpr int64_t block = 2048;
  Tensor& y = run.output(0);
  char* data = static_cast<char*>(y.mutable_raw());
  const int64_t size = bits_of(y.type()) / 8;
  const Parameters count{static_cast<float>(run.input_count())};
  run.threads().parallel_for(y.elements(), cheap_grain, [&](int64_t begin, int64_t end) {
    for (int64_t n = 0; begin < end; begin += n) {
      n = std::min(block, end - begin);
      for (size_t k = 1; k < run.input_count(); ++k)
        loop(k == 1 ? run.input(0).raw() : data, run.input(k).raw(), data, {1, n, begin, {begin, begin}, {}, {1, 1}});
      if (finish) finish(data + begin * size, data + begin * size, n, count);
    }
  });
}

// Combines the inputs one after the other, in the memory of the output.
void combine(KernelRun& run, const LoopTable<BinaryLoop>& table) {
  if (run.input_count() == 1) return run.set_output(0, run.value(0));
  Tensor& y = run.output(0);
  BinaryLoop loop = loop_for(table, y.type());
  if (have_same_shape(run)) return combine_blocks(run, loop, nullptr);
  for (size_t k = 1; k < run.input_count(); ++k) {
    const Tensor& a = k == 1 ? run.input(0) : y;
    const Tensor& b = run.input(k);
    Broadcast(y.shape(), {&a.shape(), &b.shape()}).run(run.threads(), cheap_grain, [&](const BroadcastTile& tile) {
      loop(a.raw(), b.raw(), y.mutable_raw(), tile);
    });
  }
}

// y[i] = the mean of inputs[…][i]. In one pass, since divisions take as long as reading the next elements.
void mean_of_floats(std::span<const float* const> inputs, float* y, int64_t begin, int64_t end) {
  constexpr int vectors = 4, step = vectors * float_lanes;
  const auto count = static_cast<float>(inputs.size());
  for (; begin + step <= end; begin += step) {
    FloatVector sum[vectors] = {}, next;
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) std::memcpy(&sum[k], inputs[0] + begin + k * float_lanes, sizeof next);
    for (const float* input : inputs.subspan(1)) {
#pragma GCC unroll 4
      for (int k = 0; k < vectors; ++k) {
        std::memcpy(&next, input + begin + k * float_lanes, sizeof next);
        sum[k] += next;
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) {
      sum[k] /= count;
      std::memcpy(y + begin + k * float_lanes, &sum[k], sizeof next);
    }
  }
  for (; begin < end; ++begin) {
    float sum = inputs[0][begin];
    for (const float* input : inputs.subspan(1)) sum += input[begin];
    y[begin] = sum / count;
  }
}

void run_mean(KernelRun& run) {
  const bool same_shape = run.input_count() > 1 && have_same_shape(run);
  if (same_shape && run.input(0).type() == ElementType::float32) {
    std::vector<const float*> inputs;
    for (size_t k = 0; k < run.input_count(); ++k) inputs.push_back(run.data<float>(k).data());
    float* y = run.output(0).mutable_data<float>().data();
    return run.threads().parallel_for(run.output(0).elements(), cheap_grain,
                                      [&](int64_t begin, int64_t end) { mean_of_floats(inputs, y, begin, end); });
  }
  if (same_shape) {
    const ElementType type = run.input(0).type();
    return combine_blocks(run, loop_for(add_floats, type), loop_for(divide_floats, type));
  }
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
  list.add_simple("Max", [](KernelRun& run) { combine(run, extreme_loops<Max, true>); });
  list.add_simple("Min", [](KernelRun& run) { combine(run, extreme_loops<Min, false>); });
  list.add_simple("Sum", [](KernelRun& run) { combine(run, add_floats); });
  list.add_simple("Mean", run_mean);
}

}  // namespace tenon::ops
