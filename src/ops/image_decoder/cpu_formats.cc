#include "ops/image_decoder/cpu_formats.h"

#include <algorithm>

#include "base/fail.h"
#include "ops/image_decoder/cpu_decoders.h"

namespace tenon::ops {
namespace {

// A small file may claim to be any size.
constexpr int64_t most_pixels = int64_t{1} << 27;

bool starts_with(Bytes file, std::string_view text, size_t at = 0) {
  return file.size() >= at + text.size() &&
         std::equal(text.begin(), text.end(), file.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

using namespace std::string_view_literals;

constexpr ImageFormat formats[] = {
    {"bmp", "", [](Bytes file) { return starts_with(file, "BM"); }, decode_bmp},
    {"jpeg", "libjpeg-dev", [](Bytes file) { return starts_with(file, "\xff\xd8\xff"); }, decode_jpeg},
    {"jpeg2000", "libopenjp2-7-dev",
     [](Bytes file) {
       return starts_with(file, "\0\0\0\x0cjP  \r\n\x87\n"sv) || starts_with(file, "\xff\x4f\xff\x51");
     },
     decode_jpeg2000},
    {"png", "libpng-dev", [](Bytes file) { return starts_with(file, "\x89PNG\r\n\x1a\n"); }, decode_png},
    {"pnm", "", [](Bytes file) { return file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6'; },
     decode_pnm},
    {"tiff", "libtiff-dev",
     [](Bytes file) {
       return starts_with(file, "II*\0"sv) || starts_with(file, "MM\0*"sv) || starts_with(file, "II+\0"sv) ||
              starts_with(file, "MM\0+"sv);
     },
     decode_tiff},
    {"webp", "libwebp-dev", [](Bytes file) { return starts_with(file, "RIFF") && starts_with(file, "WEBP", 8); },
     decode_webp},
};

}  // namespace

void Canvas::start(int64_t width, int64_t height, int channels, int working_bytes) {
  if (width < 1 || height < 1 || width > most_pixels / height) {
    fail(ErrorCode::unsupported, "the image claims to be {} x {} pixels; at most {} million are decoded", width, height,
         most_pixels >> 20);
  }
  width_ = width;
  height_ = height;
  channels_ = channels;
  pixels_ = allocate_(width * height * channels);
  if (working_bytes > 0) work_ = allocate_(width * height * working_bytes);
}

std::span<const ImageFormat> image_formats() { return formats; }

const ImageFormat* find_image_format(Bytes file) {
  const auto* found = std::ranges::find_if(formats, [&](const ImageFormat& format) { return format.matches(file); });
  return found == std::end(formats) ? nullptr : found;
}

}  // namespace tenon::ops
