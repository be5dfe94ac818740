#include "ops/channels_last/cuda_depthwise.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rounding.h"
#include "cuda/trial.h"
#include "ops/cuda_support/packs.h"

namespace tenon::ops {
namespace {

// A thread has some channels of some pixels side by side. Lines are read as a whole, whatever is outside as zeros, so
// that all reads are under way at the same time.
constexpr std::string_view convolution =
    R"cuda(u32 rest = (u32)i;
    const int c = rest % (u32)v[0] * {pack}; rest /= (u32)v[0];
    const int first = rest % (u32)v[1] * {pixels}; rest /= (u32)v[1];
    const int row = rest % (u32)v[2], n = rest / (u32)v[2];
    const int channels = v[0] * {pack}, rows = v[4], width = v[5], first_x = first * {stride_x} - (int)v[7];
    const T* image = x + ((i64)n * rows * width + first_x) * channels + c;
    Wide<T> sums[{pixels}][{pack}] = {{}};
    #pragma unroll
    for (int ky = 0; ky < {height}; ++ky) {{
      const int iy = row * {stride_y} - (int)v[6] + ky;
      const bool is_inside = (u32)iy < (u32)rows;
      Some taps[{width}], line[{columns}];
      #pragma unroll
      for (int kx = 0; kx < {width}; ++kx) taps[kx] = *(const Some*)(w + (ky * {width} + kx) * channels + c);
      const T* from = image + (i64)iy * width * channels;
      #pragma unroll
      for (int column = 0; column < {columns}; ++column) {{
        const bool is_read = is_inside && (u32)(first_x + column) < (u32)width;
        line[column] = read_or_zeros((const Some*)(from + column * channels), is_read);
      }}
      Wide<T> factors[{width}][{pack}];
      #pragma unroll
      for (int kx = 0; kx < {width}; ++kx)
        #pragma unroll
        for (int e = 0; e < {pack}; ++e) factors[kx][e] = widen(taps[kx].v[e]);
      #pragma unroll
      for (int column = 0; column < {columns}; ++column)
        #pragma unroll
        for (int e = 0; e < {pack}; ++e) {{
          const Wide<T> value = widen(line[column].v[e]);
          #pragma unroll
          for (int p = 0; p < {pixels}; ++p) {{
            const int kx = column - p * {stride_x};
            if (kx >= 0 && kx < {width}) sums[p][e] += value * factors[kx][e];
          }}
        }}
    }}
    #pragma unroll
    for (int p = 0; p < {pixels}; ++p) {{
      if (first + p >= (int)v[3]) break;
      const i64 at = (((i64)n * v[2] + row) * v[3] + first + p) * channels + c;
      Some result;
      #pragma unroll
      for (int e = 0; e < {pack}; ++e) {{
        Wide<T> r = sums[p][e];
        {epilogue}
        result.v[e] = narrow<T>(r);
      }}
      *(Some*)(y + at) = result;
    }})cuda";

int64_t weights_of(const cuda::ConvolutionShape& s) { return s.w[0] * s.w[1] * s.w[2] * s.w[3]; }

}  // namespace

bool CudaDepthwise::takes(const cuda::ConvolutionShape& s) {
  constexpr int64_t most_taps = 49;
  return s.groups == s.x[1] && s.groups == s.y[1] && s.groups > 1 && s.strides.size() == 2 &&
         s.w[2] * s.w[3] <= most_taps && s.dilations[0] == 1 && s.dilations[1] == 1;
}

CudaDepthwise::CudaDepthwise(KernelRun& run, const cuda::ConvolutionShape& s, const CudaEpilogue& epilogue)
    : weights_(queue_of(run).gpu().allocate(weights_of(s) * bits_of(s.type) / 8)) {
  // The weights of a tap side by side.
  turn_.emplace(run, weights_of(s), "const T* w, T* turned", "turned[i % v[0] * v[1] + i / v[0]] = w[i];",
                std::vector<int64_t>{s.w[2] * s.w[3], s.x[1]}, fmt::format("typedef {} T;", cuda::type_text(s.type)));
  turn(run);
  const int64_t pack = pack_of(s.type, s.x[1],
                               {run.input(0).raw(), static_cast<const void*>(run.output(0).raw()),
                                CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run), weights_.get()});
  // Many pixels read the same columns, few leave work for the whole GPU.
  std::vector<int64_t> pixels{1, 2, 4};
  std::ranges::swap(pixels[0], *std::ranges::find(pixels, pixels_of_thread(4, s.y[0] * s.y[1] * s.y[2] * s.y[3] / pack,
                                                                           queue_of(run).gpu().processors())));
  std::vector<std::optional<CudaLoop>> ways(pixels.size());
  auto way = [&](size_t i) -> CudaLoop& {
    if (!ways[i]) ways[i].emplace(loop_of(run, s, epilogue, pack, pixels[i]));
    return *ways[i];
  };
  std::vector<CudaDepthwiseBoxes> boxes;
  if (CudaDepthwiseBoxes::takes(run, s)) {
    for (int64_t rows : CudaDepthwiseBoxes::rows(run, s)) boxes.emplace_back(run, s, epilogue, rows);
  }
  const std::string key =
      fmt::format("depthwise {} {} {} {} {} {} {} {} {}", name_of(s.type), pack, boxes.size(), fmt::join(s.x, "x"),
                  fmt::join(s.w, "x"), fmt::join(s.y, "x"), fmt::join(s.strides, ","), fmt::join(s.pads_begin, ","),
                  epilogue.text({}, "bias", "residual"));
  chosen_ = cuda::fastest(queue_of(run), key, uses_of(run), pixels.size() + boxes.size(), [&](size_t i) {
    if (i < pixels.size())
      this->run(run, way(i));
    else
      boxes[i - pixels.size()].run(run, weights_.get());
  });
  if (*chosen_ < pixels.size())
    loop_ = std::move(way(*chosen_));
  else
    boxes_ = std::move(boxes[*chosen_ - pixels.size()]);
}

CudaLoop CudaDepthwise::loop_of(KernelRun& run, const cuda::ConvolutionShape& s, const CudaEpilogue& epilogue,
                                int64_t pack, int64_t pixels) {
  const int64_t packs = s.x[1] / pack, strips = divide_up(s.y[3], pixels);
  // v: packs of channels, strips and rows of y, its columns; rows, columns of x; pads.
  const std::vector<int64_t> numbers{packs, strips, s.y[2], s.y[3], s.x[2], s.x[3], s.pads_begin[0], s.pads_begin[1]};
  const std::string text =
      fmt::format(convolution, fmt::arg("pack", pack), fmt::arg("pixels", pixels),
                  fmt::arg("columns", (pixels - 1) * s.strides[1] + s.w[3]), fmt::arg("height", s.w[2]),
                  fmt::arg("width", s.w[3]), fmt::arg("stride_y", s.strides[0]), fmt::arg("stride_x", s.strides[1]),
                  fmt::arg("epilogue", epilogue.text({}, "bias[c + e]", "residual[at + e]")));
  return {run,
          s.y[0] * s.y[2] * strips * packs,
          "const T* x, const T* w, T* y, const T* bias, const T* residual",
          text,
          numbers,
          fmt::format("typedef {} T;\ntypedef Pack<T, {}> Some;\n{}", cuda::type_text(s.type), pack, read_or_zeros)};
}

void CudaDepthwise::run(KernelRun& run, bool weights_may_change) const {
  if (weights_may_change) turn(run);
  if (boxes_)
    boxes_->run(run, weights_.get());
  else
    this->run(run, *loop_);
}

void CudaDepthwise::run(KernelRun& run, const CudaLoop& loop) const {
  loop.run(run, {run.input(0).raw(), weights_.get(), run.output(0).raw(), CudaEpilogue::bias_of(run),
                 CudaEpilogue::residual_of(run)});
}

}  // namespace tenon::ops
