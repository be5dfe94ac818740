#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/conv_blocked/conv_blocked.h"
#include "kernels/peak/floats.h"
#include "kernels/peak/report.h"
#include "kernels/winograd/winograd.h"

namespace tenon::kernels {
namespace {

// Arguments: channels in and out, groups, height and width, kernel, stride.
// prepare(pool, shape, weights) returns run(x, y), which is measured. Where `cold`, several of them take turns, so that
// weights come from memory as they do in a network.
template <typename Prepare>
void measure(benchmark::State& state, Prepare prepare, bool cold = false) {
  ConvShape s;
  s.in_channels = state.range(0), s.out_channels = state.range(1), s.groups = state.range(2);
  for (int d = 1; d < 3; ++d) {
    s.input[d] = state.range(3), s.kernel[d] = state.range(4), s.stride[d] = state.range(5);
    s.pad[d] = s.kernel[d] / 2;
    s.output[d] = (s.input[d] + 2 * s.pad[d] - s.kernel[d]) / s.stride[d] + 1;
  }
  ThreadPool pool(bench_threads());
  const ThreadPool::Run run(pool);
  const int64_t per_output = s.in_channels / s.groups * s.kernel_size();
  Floats x(static_cast<size_t>(s.in_channels * s.input_size()), 1.0f);
  Floats weights(static_cast<size_t>(s.out_channels * per_output), 1.0f);
  Floats y(static_cast<size_t>(s.out_channels * s.output_size()));
  constexpr size_t cold_floats = 12 << 20;
  std::vector<decltype(prepare(pool, s, weights.data()))> runs;
  for (size_t copies = cold ? 1 + cold_floats / weights.size() : 1; copies > 0; --copies)
    runs.push_back(prepare(pool, s, weights.data()));
  size_t turn = 0;
  for (auto _ : state) runs[turn++ % runs.size()](x.data(), y.data());
  report_flops(state, 2.0 * static_cast<double>(s.out_channels * s.output_size() * per_output), pool.size());
}

void conv_image(benchmark::State& state) {
  measure(state, [](ThreadPool& pool, const ConvShape& s, const float* weights) {
    return [&pool, s, packed = PackedConvWeights(pool, s, weights)](const float* x, float* y) {
      conv(pool, s, x, packed, y);
    };
  });
}

// Arguments: channels in and out, height and width, kernel, stride.
void conv_transpose_image(benchmark::State& state) {
  ConvShape s;
  s.in_channels = state.range(0), s.out_channels = state.range(1);
  for (int d = 1; d < 3; ++d) {
    s.input[d] = state.range(2), s.kernel[d] = state.range(3), s.stride[d] = state.range(4);
    s.pad[d] = (s.kernel[d] - s.stride[d] + 1) / 2;
    s.output[d] = s.input[d] * s.stride[d];
  }
  ThreadPool pool(bench_threads());
  const ThreadPool::Run run(pool);
  const int64_t per_input = s.out_channels * s.kernel_size();
  const Floats x(static_cast<size_t>(s.in_channels * s.input_size()), 1.0f);
  const Floats weights(static_cast<size_t>(s.in_channels * per_input), 1.0f);
  Floats y(static_cast<size_t>(s.out_channels * s.output_size()));
  const PackedConvTransposeWeights packed(pool, s, weights.data());
  for (auto _ : state) conv_transpose(pool, s, x.data(), packed, y.data());
  report_flops(state, 2.0 * static_cast<double>(s.in_channels * s.input_size() * per_input), pool.size());
}

template <bool Cold = false>
void conv_blocked_image(benchmark::State& state) {
  const auto prepare = [](ThreadPool& pool, const ConvShape& s, const float* weights) {
    return [&pool, s, packed = BlockedConvWeights(pool, s, s.in_channels % conv_block() != 0, weights)](
               const float* x, float* y) { conv_blocked(pool, s, x, packed, y); };
  };
  measure(state, prepare, Cold);
}

// Of half precision.
template <bool Cold = false>
void conv_blocked_half_image(benchmark::State& state) {
  if (half_conv_block() == 0) return state.SkipWithError("this processor has no arithmetic of half precision");
  const auto prepare = [](ThreadPool& pool, const ConvShape& s, const float* /*weights*/) {
    const std::vector<uint16_t> halves(
        static_cast<size_t>(s.out_channels * s.in_channels / s.groups * s.kernel_size()));
    const bool plain = s.in_channels % half_conv_block() != 0;
    return [&pool, s, packed = HalfBlockedConvWeights(pool, s, plain, halves.data())](const float* x, float* y) {
      conv_blocked(pool, s, reinterpret_cast<const uint16_t*>(x), packed, reinterpret_cast<uint16_t*>(y));
    };
  };
  measure(state, prepare, Cold);
}

template <int Tile, bool Cold = false>
void conv_winograd_image(benchmark::State& state) {
  const auto prepare = [](ThreadPool& pool, const ConvShape& s, const float* weights) {
    return [&pool, s, packed = WinogradWeights(pool, s, Tile, weights)](const float* x, float* y) {
      conv_winograd(pool, s, x, packed, y);
    };
  };
  measure(state, prepare, Cold);
}

void add_images(benchmark::internal::Benchmark* images) {
  const std::vector<int64_t> shapes[] = {
      {3, 64, 1, 224, 7, 2},     {64, 64, 1, 224, 3, 1},    {256, 256, 1, 56, 3, 1},   {512, 512, 1, 28, 3, 1},
      {64, 64, 1, 56, 3, 1},     {128, 128, 1, 28, 3, 1},   {256, 256, 1, 14, 3, 1},   {512, 512, 1, 7, 3, 1},
      {64, 256, 1, 56, 1, 1},    {256, 64, 1, 56, 1, 1},    {512, 128, 1, 28, 1, 1},   {1024, 256, 1, 14, 1, 1},
      {256, 1024, 1, 14, 1, 1},  {512, 2048, 1, 7, 1, 1},   {2048, 512, 1, 7, 1, 1},   {256, 512, 1, 56, 1, 2},
      {16, 96, 1, 112, 1, 1},    {96, 16, 1, 112, 1, 1},    {96, 96, 96, 112, 3, 1},   {96, 96, 96, 112, 3, 2},
      {240, 240, 240, 28, 5, 1}, {576, 576, 576, 14, 3, 1}, {384, 384, 384, 14, 5, 1},
  };
  for (const std::vector<int64_t>& shape : shapes) images->Args(shape);
  images->UseRealTime();
}
BENCHMARK(conv_image)->Name("conv")->Apply(add_images);
BENCHMARK(conv_image)
    ->Name("conv_grouped")
    ->Args({256, 256, 32, 28, 3, 1})
    ->Args({512, 512, 32, 14, 3, 1})
    ->Args({1024, 1024, 32, 7, 3, 1})
    ->UseRealTime();
BENCHMARK(conv_transpose_image)
    ->Name("conv_transpose")
    ->Args({256, 128, 28, 2, 2})
    ->Args({64, 32, 112, 2, 2})
    ->Args({64, 64, 56, 3, 2})
    ->Args({128, 64, 32, 4, 2})
    ->UseRealTime();
BENCHMARK(conv_blocked_image<>)->Name("conv_blocked")->Apply(add_images);
BENCHMARK(conv_blocked_image<true>)->Name("conv_blocked_cold")->Apply(add_images);

BENCHMARK(conv_blocked_half_image<>)->Name("conv_blocked_half")->Apply(add_images);
BENCHMARK(conv_blocked_half_image<true>)->Name("conv_blocked_half_cold")->Apply(add_images);

void add_winograd_images(benchmark::internal::Benchmark* images) {
  for (auto [channels, size] : {std::pair{64, 224},
                                {128, 112},
                                {256, 56},
                                {512, 28},
                                {512, 14},
                                {64, 56},
                                {128, 28},
                                {256, 14},
                                {512, 7},
                                {32, 80}})
    images->Args({channels, channels, 1, size, 3, 1});
  images->UseRealTime();
}
BENCHMARK(conv_blocked_image<>)->Name("conv_3x3")->Apply(add_winograd_images);
BENCHMARK(conv_blocked_half_image<>)->Name("conv_3x3_half")->Apply(add_winograd_images);
BENCHMARK(conv_winograd_image<2>)->Name("winograd_2")->Apply(add_winograd_images);
BENCHMARK(conv_winograd_image<4>)->Name("winograd_4")->Apply(add_winograd_images);
BENCHMARK(conv_blocked_image<true>)->Name("conv_3x3_cold")->Apply(add_winograd_images);
BENCHMARK(conv_winograd_image<2, true>)->Name("winograd_2_cold")->Apply(add_winograd_images);
BENCHMARK(conv_winograd_image<4, true>)->Name("winograd_4_cold")->Apply(add_winograd_images);

}  // namespace
}  // namespace tenon::kernels
