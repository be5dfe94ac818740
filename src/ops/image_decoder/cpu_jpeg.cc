// JPEG by libjpeg.
#include <csetjmp>
#include <cstdio>
// It needs stdio's types before it.
#include <jerror.h>
#include <jpeglib.h>

#include "ops/image_decoder/cpu_decoders.h"

namespace tenon::ops {
namespace {

// A progressive file of a few bytes may have any number of scans over a large image.
constexpr int most_scans = 500;

// libjpeg reports errors by a function that must not return. It jumps to read_image, where nothing has a destructor.
struct Decompression {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  JSAMPROW row = nullptr;

  Decompression() {
    info.err = jpeg_std_error(&errors);
    info.client_data = this;
    errors.error_exit = [](j_common_ptr common) { fail_at(common); };
    errors.output_message = [](j_common_ptr) {};
    errors.emit_message = [](j_common_ptr common, int) {
      if (common->err->msg_code == JWRN_JPEG_EOF) fail_at(common);
    };
    progress.progress_monitor = [](j_common_ptr common) {
      if (static_cast<Decompression*>(common->client_data)->info.input_scan_number > most_scans) fail_at(common);
    };
  }
  Decompression(const Decompression&) = delete;
  Decompression& operator=(const Decompression&) = delete;
  ~Decompression() { jpeg_destroy_decompress(&info); }

 private:
  static void fail_at(j_common_ptr common) { std::longjmp(static_cast<Decompression*>(common->client_data)->jump, 1); }
};

// Cyan, magenta, yellow and black to red, green and blue; Adobe's files have them inverted.
void from_cmyk(const uint8_t* from, uint8_t* to, int64_t width, bool inverted) {
  for (int64_t x = 0; x < width; ++x, from += 4, to += 3) {
    const unsigned black = inverted ? from[3] : 255u - from[3];
    for (int c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>((inverted ? from[c] : 255u - from[c]) * black / 255);
  }
}

bool read_image(Decompression& d, Bytes file, Canvas& canvas) {
  if (setjmp(d.jump)) return false;
  jpeg_create_decompress(&d.info);
  d.info.progress = &d.progress;
  jpeg_mem_src(&d.info, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&d.info, TRUE);
  const bool gray = d.info.num_components == 1, cmyk = d.info.num_components == 4;
  d.info.out_color_space = gray ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
  // Progressive files keep 16 bits for each sample; a row of four samples is there for conversion.
  canvas.start(d.info.image_width, d.info.image_height, gray ? 1 : 3, 4 + (d.info.progressive_mode ? 8 : 0));
  jpeg_start_decompress(&d.info);
  while (d.info.output_scanline < d.info.output_height) {
    uint8_t* to = canvas.row(d.info.output_scanline);
    d.row = cmyk ? static_cast<JSAMPROW>(canvas.work()) : to;
    jpeg_read_scanlines(&d.info, &d.row, 1);
    if (cmyk) from_cmyk(d.row, to, canvas.width(), d.info.saw_Adobe_marker);
  }
  jpeg_finish_decompress(&d.info);
  return true;
}

}  // namespace

bool decode_jpeg(Bytes file, Canvas& canvas) {
  Decompression decompression;
  return read_image(decompression, file, canvas);
}

}  // namespace tenon::ops
