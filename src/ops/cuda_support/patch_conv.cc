#include "ops/cuda_support/patch_conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/rounding.h"

namespace tenon::ops {
namespace {

constexpr int64_t threads = 256, channels_at_once = 4;

// v: channels, then for each of three axes x, y, kernel, stride, dilation, pad. A thread copies what some channels have
// for a pixel.
constexpr std::string_view patches_text = R"(
  const int pixels = line, all = (int)images * pixels, channels = v[0], blocks = (all + THREADS - 1) / THREADS;
  const int at = blockIdx.x % blocks * THREADS + threadIdx.x, first = blockIdx.x / blocks * CHANNELS;
  if (at >= all) return;
  const int image = at / pixels, pixel = at % pixels + (int)begin;
  const int x0 = v[1], x1 = v[7], x2 = v[13], y1 = v[8], y2 = v[14], k0 = v[3], k1 = v[9], k2 = v[15];
  const int from0 = pixel / (y1 * y2) * (int)v[4] - (int)v[6], from1 = pixel / y2 % y1 * (int)v[10] - (int)v[12];
  const int from2 = pixel % y2 * (int)v[16] - (int)v[18], step0 = v[5], step1 = v[11], step2 = v[17];
  const i64 image_size = (i64)x0 * x1 * x2;
  const float* from = x + ((i64)image * channels + first) * image_size;
  float* to = patches + ((i64)image * channels + first) * k0 * k1 * k2 * pixels + at % pixels;
  for (int c = first; c < channels && c < first + CHANNELS; ++c, from += image_size) {
    for (int a = 0, i0 = from0; a < k0; ++a, i0 += step0) {
      for (int b = 0, i1 = from1; b < k1; ++b, i1 += step1) {
        const bool is_line = (u32)i0 < (u32)x0 && (u32)i1 < (u32)x1;
        for (int d = 0, i2 = from2; d < k2; ++d, i2 += step2, to += pixels)
          *to = is_line && (u32)i2 < (u32)x2 ? from[((i64)i0 * x1 + i1) * x2 + i2] : 0;
      }
    }
  })";

int64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// What divides addresses and offsets in floats, up to 16 bytes.
int64_t alignment_of(std::initializer_list<const void*> addresses, std::initializer_list<int64_t> offsets) {
  uintptr_t bits = 16;
  for (const void* address : addresses) bits |= reinterpret_cast<uintptr_t>(address);
  for (int64_t offset : offsets) bits |= static_cast<uintptr_t>(offset) * sizeof(float);
  return static_cast<int64_t>(bits & (~bits + 1));
}

bool all_are(const std::vector<int64_t>& list, int64_t value) {
  return std::ranges::all_of(list, [&](int64_t each) { return each == value; });
}

}  // namespace

bool CudaPatchConv::takes(const cuda::ConvolutionShape& s) {
  constexpr int64_t most = 1 << 30;  // numbers of pixels are of 32 bits
  return s.type == ElementType::float32 && !s.allow_tf32 && s.groups == 1 && !s.transposed && !s.channels_last &&
         s.strides.size() <= 3 && product(s.x) < most && product(s.y) < most &&
         product(std::span(s.w).subspan(1)) * static_cast<int64_t>(sizeof(float)) * threads <=
             cuda::GpuQueue::patches_bytes;
}

CudaPatchConv::CudaPatchConv(KernelRun& run, const cuda::ConvolutionShape& s, const cuda::ConvolutionData& data)
    : images_(s.x[0]),
      channels_(s.x[1]),
      outputs_(s.y[1]),
      depth_(product(std::span(s.w).subspan(1))),
      in_pixels_(product(std::span(s.x).subspan(2))),
      pixels_(product(std::span(s.y).subspan(2))),
      is_plain_(depth_ == channels_ && all_are(s.strides, 1) && all_are(s.pads_begin, 0) && all_are(s.pads_end, 0)) {
  const int64_t room = cuda::GpuQueue::patches_bytes / (depth_ * static_cast<int64_t>(sizeof(float)));
  const bool is_whole = is_plain_ || pixels_ <= room;
  most_ = {.image = 0,
           .images = is_plain_  ? images_
                     : is_whole ? std::min(images_, room / pixels_)
                                : 1,
           .pixel = 0,
           .pixels = is_whole ? pixels_ : room / threads * threads};
  if (!is_plain_) {
    std::vector<int64_t> numbers{channels_};
    for (size_t d = 0; d < 3; ++d) {
      if (const size_t missing = 3 - s.strides.size(); d < missing) {
        numbers.insert(numbers.end(), {1, 1, 1, 1, 1, 0});
      } else {
        const size_t axis = d - missing;
        numbers.insert(numbers.end(), {s.x[axis + 2], s.y[axis + 2], s.w[axis + 2], s.strides[axis], s.dilations[axis],
                                       s.pads_begin[axis]});
      }
    }
    cuda::Grid grid;
    grid.threads = threads;
    patches_.emplace(run, "i64 images, i64 line, i64 begin, const float* x, float* patches",
                     fmt::format("#define THREADS {}\n#define CHANNELS {}\n", threads, channels_at_once), patches_text,
                     numbers, grid);
  }
  for_each_part([&](const Part& part) {
    auto& gemm = part.images == most_.images && part.pixels == most_.pixels ? whole_ : last_;
    if (!gemm) gemm = product_of(run, part, data);
  });
}

template <typename Visit>
void CudaPatchConv::for_each_part(Visit&& visit) const {
  for (int64_t image = 0; image < images_; image += most_.images) {
    const int64_t images = std::min(most_.images, images_ - image);
    for (int64_t pixel = 0; pixel < pixels_; pixel += most_.pixels)
      visit(Part{image, images, pixel, std::min(most_.pixels, pixels_ - pixel)});
  }
}

cuda::Gemm CudaPatchConv::product_of(KernelRun& run, const Part& part, const cuda::ConvolutionData& data) const {
  cuda::GemmShape shape;
  shape.m = outputs_;
  shape.n = part.pixels;
  shape.k = depth_;
  shape.a_row = depth_;
  shape.b_row = part.pixels;
  shape.b_step = depth_ * part.pixels;
  shape.y_row = pixels_;
  shape.batch = part.images;
  shape.y_step = outputs_ * pixels_;
  const void* patches = is_plain_ ? data.x : queue_of(run).patches();
  shape.alignment = alignment_of({patches, data.w, data.y}, {shape.b_step, shape.y_step, most_.pixels});
  cuda::Gemm gemm(queue_of(run), shape);
  gemm.choose_by_trial(queue_of(run), uses_of(run), data.w, patches, data.y, nullptr, nullptr);
  return gemm;
}

void CudaPatchConv::collect(KernelRun& run, const Part& part, const void* x) const {
  const int64_t groups = divide_up(channels_, channels_at_once);
  CudaBlocks blocks = *patches_;
  blocks.set_blocks(divide_up(part.images * part.pixels, threads) * groups);
  const auto* image = static_cast<const float*>(x) + part.image * channels_ * in_pixels_;
  blocks.run(run, {&part.images, &part.pixels, &part.pixel}, {image, queue_of(run).patches()});
}

void CudaPatchConv::run(KernelRun& run, const cuda::ConvolutionData& data) const {
  for_each_part([&](const Part& part) {
    if (!is_plain_) collect(run, part, data.x);
    const bool is_whole = part.images == most_.images && part.pixels == most_.pixels;
    float* y = static_cast<float*>(data.y) + part.image * outputs_ * pixels_ + part.pixel;
    (is_whole ? whole_ : last_)->run(queue_of(run), data.w, is_plain_ ? data.x : queue_of(run).patches(), y);
  });
}

}  // namespace tenon::ops
