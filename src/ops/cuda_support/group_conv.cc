#include "ops/cuda_support/group_conv.h"

#include <algorithm>

#include "base/rounding.h"
#include "cuda/tensor_map.h"

namespace tenon::ops {
namespace {

// What group_matmul_blocks fetches where rows of a are windows over images: 64 channels of a tap, and of its weights. v
// from 8 on: results of a line, lines of results; across and down: strides, pads, dilations; the kernel's columns,
// channels.
constexpr std::string_view from_windows = R"cuda(
struct Fetches {
  int column, x, y, image, step_x, step_y, taps_across, channels, channel = 0, tap = 0, tap_x = 0, tap_y = 0;

  Fetches(const i64* v, int row, int first_column) : column(first_column) {
    const int across = (int)v[8], down = (int)v[9], line = row / across;
    x = row % across * (int)v[10] - (int)v[12];
    y = line % down * (int)v[11] - (int)v[13];
    image = line / down;
    step_x = (int)v[14];
    step_y = (int)v[15];
    taps_across = (int)v[16];
    channels = (int)v[17];
  }
  void fetch_left(u8* to, const TensorMap* a, u64* barrier) const {
    copy_windows(to, a, barrier, channel, x, y, image, tap_x * step_x, tap_y * step_y);
  }
  void fetch_right(u8* to, const TensorMap* b, u64* barrier) const { copy_box(to, b, barrier, channel, tap, column, 0); }
  void go_on() {
    if ((channel += 64) < channels) return;
    channel = 0;
    ++tap;
    if (++tap_x == taps_across) tap_x = 0, ++tap_y;
  }
};
)cuda";

// Sizes across come first here, and last in a convolution's.
cuda::Windows windows_of(const cuda::ConvolutionShape& s) {
  cuda::Windows windows{};
  for (size_t axis = 0; axis < 2; ++axis) {
    const size_t from = 1 - axis;
    windows.kernel[axis] = s.w[from + 2];
    windows.strides[axis] = s.strides[from];
    windows.dilations[axis] = s.dilations[from];
    windows.pads_begin[axis] = s.pads_begin[from];
    windows.pads_end[axis] = s.pads_end[from];
  }
  return windows;
}

// Every tap has whole stages, the last of which may be zeros from some channel on.
MatMulShape product_of(const cuda::ConvolutionShape& s) {
  const int64_t stages = divide_up(s.x[1], group_matmul_depth);
  return {s.type,
          s.y[0] * s.y[2] * s.y[3],
          s.y[1],
          s.w[2] * s.w[3] * stages * group_matmul_depth,
          /*transpose_b=*/true,
          s.has_fixed_weights};
}

std::vector<int64_t> numbers_of(const cuda::ConvolutionShape& s) {
  const cuda::Windows w = windows_of(s);
  std::vector<int64_t> numbers{s.y[3], s.y[2]};
  for (const auto* pair : {&w.strides, &w.pads_begin, &w.dilations})
    numbers.insert(numbers.end(), std::begin(*pair), std::end(*pair));
  numbers.insert(numbers.end(), {w.kernel[0], s.x[1]});
  return numbers;
}

}  // namespace

bool CudaGroupConvolution::takes(KernelRun& run, const cuda::ConvolutionShape& s) {
  // What the copy engine can be told.
  constexpr int64_t most_stride = 8, most_distance = 127;
  if (s.strides.size() != 2 || s.groups != 1 || s.x[1] % 8 != 0) return false;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t reach = (s.w[axis + 2] - 1) * s.dilations[axis];
    if (s.strides[axis] > most_stride || std::min(s.pads_begin[axis], s.pads_end[axis]) < 0 ||
        std::max({s.pads_begin[axis], s.pads_end[axis], reach}) > most_distance)
      return false;
  }
  return CudaGroupMatMul::takes(run, product_of(s));
}

CudaGroupConvolution::CudaGroupConvolution(KernelRun& run, const cuda::ConvolutionShape& shape,
                                           const CudaEpilogue& epilogue, const GroupMatMulTile& tile)
    : shape_(shape),
      tile_(tile),
      blocks_(group_matmul_blocks(run, product_of(shape), epilogue, tile, from_windows, numbers_of(shape))) {}

void CudaGroupConvolution::run(KernelRun& run) const {
  const cuda::Gpu& gpu = queue_of(run).gpu();
  const int64_t images[4] = {shape_.x[1], shape_.x[3], shape_.x[2], shape_.x[0]};
  const int64_t weights[] = {shape_.x[1], shape_.w[2] * shape_.w[3], shape_.y[1], 1};
  const int64_t box[] = {group_matmul_depth, 1, tile_.columns, 1};
  const cuda::TensorMap a = cuda::window_map(gpu, run.input(0).raw(), images, windows_of(shape_), tile_.rows);
  const cuda::TensorMap b = cuda::tensor_map(gpu, run.input(1).raw(), weights, box, true);
  blocks_.run(run, {&a, &b}, {run.output(0).raw(), CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
}

std::vector<GroupMatMulTile> CudaGroupConvolution::tiles(const cuda::ConvolutionShape& shape, int processors) {
  return CudaGroupMatMul::tiles(product_of(shape), processors);
}

}  // namespace tenon::ops
