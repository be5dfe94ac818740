// JPEG 2000 by OpenJPEG: files (JP2) and bare codestreams.
#include <openjpeg.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ops/image_decoder/cpu_decoders.h"

namespace tenon::ops {
namespace {

struct File {
  Bytes bytes;
  size_t at = 0;
};

OPJ_SIZE_T read_file(void* to, OPJ_SIZE_T size, void* user) {
  auto& file = *static_cast<File*>(user);
  const size_t count = std::min<size_t>(size, file.bytes.size() - file.at);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, file.bytes.data() + file.at, count);
  file.at += count;
  return count;
}

OPJ_BOOL seek_file(OPJ_OFF_T to, void* user) {
  auto& file = *static_cast<File*>(user);
  if (to < 0 || static_cast<size_t>(to) > file.bytes.size()) return OPJ_FALSE;
  file.at = static_cast<size_t>(to);
  return OPJ_TRUE;
}

OPJ_OFF_T skip_file(OPJ_OFF_T by, void* user) {
  auto& file = *static_cast<File*>(user);
  const auto left = static_cast<OPJ_OFF_T>(file.bytes.size() - file.at);
  if (by < 0 || by > left) return -1;
  file.at += static_cast<size_t>(by);
  return by;
}

template <auto release>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
using Codec = std::unique_ptr<opj_codec_t, Release<opj_destroy_codec>>;
using Stream = std::unique_ptr<opj_stream_t, Release<opj_stream_destroy>>;
using Picture = std::unique_ptr<opj_image_t, Release<opj_image_destroy>>;

// A sample as 8 bits. Components may have fewer columns and rows than the image.
int sample(const opj_image_comp_t& c, const opj_image_comp_t& first, int64_t x, int64_t y) {
  const int64_t column = std::min<int64_t>(x * first.dx / c.dx, c.w - 1),
                row = std::min<int64_t>(y * first.dy / c.dy, c.h - 1);
  int64_t value = c.data[row * c.w + column];
  if (c.sgnd) value += int64_t{1} << (c.prec - 1);
  if (c.prec > 8) {
    value >>= c.prec - 8;
  } else if (c.prec < 8) {
    value = value * 255 / ((int64_t{1} << c.prec) - 1);
  }
  return static_cast<int>(std::clamp<int64_t>(value, 0, 255));
}

// From luma and two differences of color, as in ITU-R 601.
void to_rgb(std::array<int, 3>& p) {
  const double y = p[0], blue = p[1] - 128, red = p[2] - 128;
  const double rgb[] = {y + 1.402 * red, y - 0.344136 * blue - 0.714136 * red, y + 1.772 * blue};
  for (size_t i = 0; i < 3; ++i) p[i] = std::clamp(static_cast<int>(std::lround(rgb[i])), 0, 255);
}

bool is_supported(const opj_image_t& image) {
  if (image.numcomps < 1 || image.numcomps > 4) return false;
  return std::all_of(image.comps, image.comps + image.numcomps, [](const opj_image_comp_t& c) {
    return c.w > 0 && c.h > 0 && c.dx > 0 && c.dy > 0 && c.prec > 0 && c.prec <= 31;
  });
}

void copy_pixels(const opj_image_t& image, Canvas& canvas) {
  const bool luma = image.color_space == OPJ_CLRSPC_SYCC && canvas.channels() == 3;
  for (int64_t y = 0; y < canvas.height(); ++y) {
    uint8_t* to = canvas.row(y);
    for (int64_t x = 0; x < canvas.width(); ++x) {
      std::array<int, 3> pixel{};
      for (int c = 0; c < canvas.channels(); ++c)
        pixel[static_cast<size_t>(c)] = sample(image.comps[c], image.comps[0], x, y);
      if (luma) to_rgb(pixel);
      for (int c = 0; c < canvas.channels(); ++c) *to++ = static_cast<uint8_t>(pixel[static_cast<size_t>(c)]);
    }
  }
}

}  // namespace

bool decode_jpeg2000(Bytes file, Canvas& canvas) {
  const bool bare = file[0] == 0xff;
  File source{file};
  const Codec codec(static_cast<opj_codec_t*>(opj_create_decompress(bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2)));
  const Stream stream(static_cast<opj_stream_t*>(opj_stream_default_create(OPJ_TRUE)));
  if (!codec || !stream) return false;
  opj_stream_set_read_function(stream.get(), read_file);
  opj_stream_set_seek_function(stream.get(), seek_file);
  opj_stream_set_skip_function(stream.get(), skip_file);
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.size());
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (!opj_setup_decoder(codec.get(), &parameters)) return false;
  opj_decoder_set_strict_mode(codec.get(), OPJ_TRUE);
  opj_image_t* header = nullptr;
  const bool read = opj_read_header(stream.get(), codec.get(), &header);
  const Picture image(header);
  if (!read || !image || !is_supported(*image)) return false;
  // Samples are 32 bits, in the image and once more in a tile, which may be all of it.
  canvas.start(image->comps[0].w, image->comps[0].h, image->numcomps < 3 ? 1 : 3,
               static_cast<int>(image->numcomps) * 8);
  if (!opj_decode(codec.get(), stream.get(), image.get()) || !opj_end_decompress(codec.get(), stream.get()))
    return false;
  // A palette may have given the image other components than its header.
  if (!is_supported(*image) || static_cast<int>(image->numcomps) < canvas.channels()) return false;
  for (int c = 0; c < canvas.channels(); ++c) {
    if (!image->comps[c].data) return false;
  }
  if (image->comps[0].w != canvas.width() || image->comps[0].h != canvas.height()) return false;
  copy_pixels(*image, canvas);
  return true;
}

}  // namespace tenon::ops
