#include "kernels/peak/floats.h"
#include "kernels/peak/report.h"
#include "kernels/pool/pool.h"

namespace tenon::kernels {
namespace {

// Arguments: channels, height and width, kernel, stride. `Block` channels lie side by side.
template <int64_t Block>
void max_pool_image(benchmark::State& state) {
  PoolShape s;
  s.planes = state.range(0) / Block;
  const int first = Block > 1 ? 0 : 1;
  for (int d = first; d < first + 2; ++d) {
    s.input[d] = state.range(1), s.kernel[d] = state.range(2), s.stride[d] = state.range(3);
    s.output[d] = (s.input[d] - s.kernel[d]) / s.stride[d] + 1;
  }
  if (Block > 1) s.input[2] = s.output[2] = Block;
  ThreadPool pool(1);
  Floats x(static_cast<size_t>(s.planes * s.input_size())), y(static_cast<size_t>(s.planes * s.output_size()));
  for (auto _ : state) max_pool(pool, s, x.data(), y.data());
  report_bytes(state, 4.0 * static_cast<double>(x.size() + y.size()));
}
BENCHMARK(max_pool_image<1>)->Name("max_pool")->Args({64, 112, 3, 2})->Args({64, 56, 2, 2})->Args({64, 56, 3, 1});
BENCHMARK(max_pool_image<8>)
    ->Name("max_pool_blocked")
    ->Args({64, 112, 3, 2})
    ->Args({128, 56, 2, 2})
    ->Args({64, 56, 3, 1});

}  // namespace
}  // namespace tenon::kernels
