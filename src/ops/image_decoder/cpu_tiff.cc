// TIFF by libtiff: the first image of the file.
#include <tiffio.h>

#include <algorithm>
#include <cstring>

#include "ops/image_decoder/cpu_decoders.h"

namespace tenon::ops {
namespace {

// What libtiff may allocate at once, for strips, tiles and directories.
constexpr tmsize_t most_bytes_at_once = tmsize_t{256} << 20;

struct File {
  Bytes bytes;
  uint64_t at = 0;
};

tmsize_t read_file(thandle_t handle, void* to, tmsize_t size) {
  auto& file = *static_cast<File*>(handle);
  if (size < 0 || file.at >= file.bytes.size()) return 0;
  const size_t count = std::min(static_cast<size_t>(size), file.bytes.size() - static_cast<size_t>(file.at));
  std::memcpy(to, file.bytes.data() + file.at, count);
  file.at += count;
  return static_cast<tmsize_t>(count);
}

toff_t seek_file(thandle_t handle, toff_t offset, int whence) {
  auto& file = *static_cast<File*>(handle);
  if (whence == SEEK_CUR) offset += file.at;
  if (whence == SEEK_END) offset += file.bytes.size();
  return file.at = offset;
}

struct Tiff {
  File file;
  TIFF* tiff = nullptr;

  explicit Tiff(Bytes bytes) : file{bytes} {
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    if (!options) return;
    auto silent = [](TIFF*, void*, const char*, const char*, va_list) { return 1; };
    TIFFOpenOptionsSetErrorHandlerExtR(options, silent, nullptr);
    TIFFOpenOptionsSetWarningHandlerExtR(options, silent, nullptr);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, most_bytes_at_once);
    tiff = TIFFClientOpenExt(
        "image", "rm", &file, read_file, [](thandle_t, void*, tmsize_t) { return tmsize_t{0}; }, seek_file,
        [](thandle_t) { return 0; }, [](thandle_t h) { return toff_t{static_cast<File*>(h)->bytes.size()}; },
        [](thandle_t, void**, toff_t*) { return 0; }, [](thandle_t, void*, toff_t) {}, options);
    TIFFOpenOptionsFree(options);
  }
  Tiff(const Tiff&) = delete;
  Tiff& operator=(const Tiff&) = delete;
  ~Tiff() {
    if (tiff) TIFFClose(tiff);
  }
};

}  // namespace

bool decode_tiff(Bytes file, Canvas& canvas) {
  Tiff image(file);
  uint32_t width = 0, height = 0;
  if (!image.tiff || !TIFFGetField(image.tiff, TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(image.tiff, TIFFTAG_IMAGELENGTH, &height) || width == 0 || height == 0)
    return false;
  canvas.start(width, height, 3, sizeof(uint32_t));
  auto* pixels = static_cast<uint32_t*>(canvas.work());
  if (!TIFFReadRGBAImageOriented(image.tiff, width, height, pixels, ORIENTATION_TOPLEFT, /*stop_on_error=*/1))
    return false;
  for (int64_t y = 0; y < canvas.height(); ++y) {
    uint8_t* to = canvas.row(y);
    for (int64_t x = 0; x < canvas.width(); ++x, ++pixels, to += 3) {
      to[0] = static_cast<uint8_t>(TIFFGetR(*pixels));
      to[1] = static_cast<uint8_t>(TIFFGetG(*pixels));
      to[2] = static_cast<uint8_t>(TIFFGetB(*pixels));
    }
  }
  return true;
}

}  // namespace tenon::ops
