// Portable bitmaps, graymaps and pixmaps, plain (P1 to P3) and raw (P4 to P6).
#include "ops/image_decoder/cpu_decoders.h"

namespace tenon::ops {
namespace {

class Reader {
 public:
  explicit Reader(Bytes file) : file_(file) {}

  // The next number in decimal; -1 when there is none or it is larger than any size. Comments run from # to the end of
  // their line.
  int64_t number() {
    skip_space();
    int64_t value = -1;
    for (; at_ < file_.size() && file_[at_] >= '0' && file_[at_] <= '9'; ++at_) {
      value = (value < 0 ? 0 : value * 10) + (file_[at_] - '0');
      if (value > INT32_MAX) return -1;
    }
    return value;
  }
  // The next digit of a plain bitmap, which need not be separated.
  int64_t digit() {
    skip_space();
    return at_ < file_.size() ? file_[at_++] - '0' : -1;
  }
  void skip_one() { ++at_; }
  Bytes rest() const { return at_ < file_.size() ? file_.subspan(at_) : Bytes(); }

 private:
  void skip_space() {
    for (; at_ < file_.size(); ++at_) {
      if (file_[at_] == '#') {
        while (at_ < file_.size() && file_[at_] != '\n') ++at_;
      } else if (file_[at_] != ' ' && (file_[at_] < '\t' || file_[at_] > '\r')) {
        return;
      }
    }
  }

  Bytes file_;
  size_t at_ = 2;
};

bool read_plain(Reader& reader, bool bitmap, int64_t most, Canvas& canvas) {
  for (int64_t y = 0; y < canvas.height(); ++y) {
    for (int64_t x = 0; x < canvas.width() * canvas.channels(); ++x) {
      const int64_t value = bitmap ? 1 - reader.digit() : reader.number();
      if (value < 0 || value > most) return false;
      canvas.row(y)[x] = static_cast<uint8_t>((value * 255 + most / 2) / most);
    }
  }
  return true;
}

void read_raw(const uint8_t* from, int64_t most, Canvas& canvas) {
  for (int64_t y = 0; y < canvas.height(); ++y) {
    for (int64_t x = 0; x < canvas.width() * canvas.channels(); ++x) {
      int64_t value = *from++;
      if (most > 255) value = value << 8 | *from++;
      canvas.row(y)[x] = static_cast<uint8_t>((std::min(value, most) * 255 + most / 2) / most);
    }
  }
}

void read_bits(const uint8_t* from, Canvas& canvas) {
  const int64_t bytes = (canvas.width() + 7) / 8;
  for (int64_t y = 0; y < canvas.height(); ++y, from += bytes) {
    for (int64_t x = 0; x < canvas.width(); ++x) canvas.row(y)[x] = from[x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
  }
}

}  // namespace

bool decode_pnm(Bytes file, Canvas& canvas) {
  const int kind = file[1] - '0';
  const bool bitmap = kind == 1 || kind == 4, color = kind == 3 || kind == 6;
  Reader reader(file);
  const int64_t width = reader.number(), height = reader.number(), most = bitmap ? 1 : reader.number();
  if (width < 1 || height < 1 || most < 1 || most > 65535) return false;
  reader.skip_one();
  const Bytes rest = reader.rest();
  const int64_t row = kind == 4 ? (width + 7) / 8 : width * (color ? 3 : 1) * (kind > 4 && most > 255 ? 2 : 1);
  // The raw kinds and, with a digit for each sample at least, the plain ones are as long as they claim.
  if (static_cast<int64_t>(rest.size()) / row < height) return false;
  canvas.start(width, height, color ? 3 : 1, 0);
  if (kind < 4) return read_plain(reader, bitmap, most, canvas);
  if (kind == 4) {
    read_bits(rest.data(), canvas);
  } else {
    read_raw(rest.data(), most, canvas);
  }
  return true;
}

}  // namespace tenon::ops
