#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "ops/image_decoder/cpu_formats.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

enum class PixelFormat : uint8_t { rgb, bgr, gray };

// The luma of ITU-R 601, rounded.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

void convert_row(const uint8_t* from, int channels, uint8_t* to, PixelFormat format, int64_t width) {
  if (format == PixelFormat::gray) {
    for (int64_t x = 0; x < width; ++x) to[x] = channels == 1 ? from[x] : luma(from + 3 * x);
  } else if (channels == 1) {
    for (int64_t x = 0; x < width; ++x) std::fill_n(to + 3 * x, 3, from[x]);
  } else if (format == PixelFormat::rgb) {
    std::memcpy(to, from, static_cast<size_t>(3 * width));
  } else {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) to[3 * x + c] = from[3 * x + 2 - c];
    }
  }
}

class ImageDecoder final : public Kernel {
 public:
  explicit ImageDecoder(const NodeInfo& info) {
    const std::string name = info.node().string_attribute("pixel_format", "RGB");
    format_ = name == "RGB" ? PixelFormat::rgb : name == "BGR" ? PixelFormat::bgr : PixelFormat::gray;
  }

  // As the standard has it, what cannot be decoded gives an empty image.
  void run(KernelRun& run) const override {
    const Bytes file = run.data<uint8_t>(0);
    const int channels = format_ == PixelFormat::gray ? 1 : 3;
    const ImageFormat* format = find_image_format(file);
    if (format && !format->decode) {
      throw Error(ErrorCode::unsupported, fmt::format("this build cannot decode {} images", format->name),
                  fmt::format("install {} and build Tenon again", format->package));
    }
    Canvas canvas([&](int64_t bytes) { return run.scratch(bytes); });
    if (!format || !format->decode(file, canvas)) {
      run.output(0, Shape{0, 0, channels});
      return;
    }
    Tensor& image = run.output(0, Shape{canvas.height(), canvas.width(), channels});
    uint8_t* to = image.mutable_data<uint8_t>().data();
    for (int64_t y = 0; y < canvas.height(); ++y, to += canvas.width() * channels)
      convert_row(canvas.row(y), canvas.channels(), to, format_, canvas.width());
  }

 private:
  PixelFormat format_;
};

}  // namespace

void cpu_image_decoder(CpuKernels& list) {
  list.add("ImageDecoder", [](const NodeInfo& info) { return std::make_unique<ImageDecoder>(info); });
}

}  // namespace tenon::ops
