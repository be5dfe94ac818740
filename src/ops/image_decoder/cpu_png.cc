// PNG by libpng.
#include <png.h>

#include <cstring>

#include "ops/image_decoder/cpu_decoders.h"

namespace tenon::ops {
namespace {

// libpng reports errors by a function that must not return. It jumps to read_image, where nothing has a destructor.
struct Reading {
  png_structp png;
  png_infop info = nullptr;
  Bytes rest;
  int passes = 0;

  explicit Reading(Bytes file)
      : png(png_create_read_struct(
            PNG_LIBPNG_VER_STRING, nullptr, [](png_structp p, png_const_charp) { png_longjmp(p, 1); },
            [](png_structp, png_const_charp) {})),
        rest(file) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { png_destroy_read_struct(&png, &info, nullptr); }
};

void read_bytes(png_structp png, png_bytep to, size_t size) {
  auto& reading = *static_cast<Reading*>(png_get_io_ptr(png));
  if (reading.rest.size() < size) png_error(png, "the file ends too early");
  std::memcpy(to, reading.rest.data(), size);
  reading.rest = reading.rest.subspan(size);
}

bool read_image(Reading& r, Canvas& canvas) {
  if (setjmp(png_jmpbuf(r.png))) return false;
  r.info = png_create_info_struct(r.png);
  if (!r.info) return false;
  png_set_read_fn(r.png, &r, read_bytes);
  png_set_user_limits(r.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // Canvas has its own
  png_read_info(r.png, r.info);
  png_set_expand(r.png);  // palettes, and fewer than 8 bits
  png_set_scale_16(r.png);
  png_set_strip_alpha(r.png);
  r.passes = png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  canvas.start(png_get_image_width(r.png, r.info), png_get_image_height(r.png, r.info),
               png_get_channels(r.png, r.info) == 1 ? 1 : 3, 0);
  if (png_get_rowbytes(r.png, r.info) != static_cast<size_t>(canvas.width() * canvas.channels())) return false;
  for (; r.passes > 0; --r.passes) {
    for (int64_t y = 0; y < canvas.height(); ++y) png_read_row(r.png, canvas.row(y), nullptr);
  }
  png_read_end(r.png, nullptr);
  return true;
}

}  // namespace

bool decode_png(Bytes file, Canvas& canvas) {
  Reading reading(file);
  return reading.png && read_image(reading, canvas);
}

}  // namespace tenon::ops
