#include <benchmark/benchmark.h>

#include "kernels/layer_norm/layer_norm.h"
#include "kernels/peak/floats.h"
#include "kernels/softmax/softmax.h"

namespace tenon::kernels {
namespace {

void report(benchmark::State& state, size_t elements) {
  state.counters["GB/s"] =
      benchmark::Counter(8e-9 * static_cast<double>(elements), benchmark::Counter::kIsIterationInvariantRate);
}

void softmax_of_rows(benchmark::State& state) {
  ThreadPool pool(1);
  Floats x(static_cast<size_t>(state.range(0) * state.range(1)), 1.0f), y(x.size());
  for (auto _ : state) softmax_rows(pool, x.data(), y.data(), state.range(0), state.range(1));
  report(state, x.size());
}
BENCHMARK(softmax_of_rows)->Args({1536, 128})->Args({64, 1000})->Args({8, 32000});

void softmax_of_columns(benchmark::State& state) {
  ThreadPool pool(1);
  Floats x(static_cast<size_t>(state.range(0) * state.range(1) * state.range(2)), 1.0f), y(x.size());
  for (auto _ : state) softmax_middle(pool, x.data(), y.data(), state.range(0), state.range(1), state.range(2));
  report(state, x.size());
}
BENCHMARK(softmax_of_columns)->Args({196, 196, 4})->Args({64, 196, 16})->Args({1, 1000, 64})->Args({1, 21, 65536});

void layer_norm_of_rows(benchmark::State& state) {
  ThreadPool pool(1);
  Floats x(static_cast<size_t>(state.range(0) * state.range(1)), 1.0f), y(x.size());
  Floats scale(static_cast<size_t>(state.range(1)), 1.0f);
  for (auto _ : state) {
    layer_norm(pool, {x.data(), y.data(), state.range(0), state.range(1), scale.data(), scale.data()});
  }
  report(state, x.size());
}
BENCHMARK(layer_norm_of_rows)->Args({128, 768})->Args({128, 4096});

}  // namespace
}  // namespace tenon::kernels
