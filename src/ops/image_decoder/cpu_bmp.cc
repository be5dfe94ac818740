// Windows bitmaps: 1, 2, 4 and 8 bits with a palette, run-length encoded or not; 16, 24 and 32 bits.
#include <array>
#include <bit>
#include <optional>

#include "ops/image_decoder/cpu_decoders.h"

namespace tenon::ops {
namespace {

enum Compression : uint32_t { none = 0, rle8 = 1, rle4 = 2, bit_fields = 3, alpha_bit_fields = 6 };

struct Header {
  int64_t width = 0, height = 0;
  bool top_down = false;
  int bits = 0;
  uint32_t compression = none;
  size_t pixels = 0;                                  // where they start
  std::array<uint32_t, 3> masks{};                    // of red, green and blue in 16 and 32 bits
  std::array<std::array<uint8_t, 3>, 256> palette{};  // red, green, blue
};

uint32_t little(Bytes file, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size && at + i < file.size(); ++i) value |= uint32_t{file[at + i]} << (8 * i);
  return value;
}

void read_palette(Bytes file, size_t at, size_t entry, size_t colors, Header& header) {
  for (size_t i = 0; i < std::min<size_t>(colors, 256); ++i) {
    const uint32_t color = little(file, at + i * entry, 3);
    header.palette[i] = {static_cast<uint8_t>(color >> 16), static_cast<uint8_t>(color >> 8),
                         static_cast<uint8_t>(color)};
  }
}

bool is_supported(const Header& header) {
  switch (header.compression) {
    case none:
      return header.bits == 1 || header.bits == 2 || header.bits == 4 || header.bits == 8 || header.bits == 16 ||
             header.bits == 24 || header.bits == 32;
    case rle8:
      return header.bits == 8 && !header.top_down;
    case rle4:
      return header.bits == 4 && !header.top_down;
    case bit_fields:
    case alpha_bit_fields:
      return header.bits == 16 || header.bits == 32;
    default:
      return false;
  }
}

std::optional<Header> read_header(Bytes file) {
  Header header;
  if (file.size() < 26) return std::nullopt;
  const uint32_t info = little(file, 14, 4);
  const bool old = info == 12;  // OS/2's, with short fields
  if (!old && (info < 16 || file.size() < 14 + size_t{40})) return std::nullopt;
  header.pixels = little(file, 10, 4);
  header.width = old ? int64_t{little(file, 18, 2)} : int64_t{static_cast<int32_t>(little(file, 18, 4))};
  header.height = old ? int64_t{little(file, 20, 2)} : int64_t{static_cast<int32_t>(little(file, 22, 4))};
  header.bits = static_cast<int>(little(file, old ? 24 : 28, 2));
  if (info >= 40) header.compression = little(file, 30, 4);
  header.top_down = header.height < 0;
  header.height = std::abs(header.height);
  if (header.width < 1 || header.height < 1 || !is_supported(header)) return std::nullopt;
  size_t after = 14 + size_t{info};
  if (header.compression == bit_fields || header.compression == alpha_bit_fields) {
    // The masks follow a header of 40 bytes and are part of longer ones, in the same place.
    for (size_t i = 0; i < 3; ++i) header.masks[i] = little(file, 54 + 4 * i, 4);
    if (info == 40) after += header.compression == bit_fields ? 12 : 16;
  } else if (header.bits == 16) {
    header.masks = {0x7c00, 0x03e0, 0x001f};
  } else {
    header.masks = {0xff0000, 0x00ff00, 0x0000ff};
  }
  if (header.bits <= 8) {
    uint32_t colors = info >= 40 ? little(file, 46, 4) : 0;
    if (colors == 0) colors = 1u << header.bits;
    read_palette(file, after, old ? 3 : 4, colors, header);
  }
  return header;
}

// A field of any width as 8 bits.
uint8_t field(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t value = (pixel & mask) >> shift, most = mask >> shift;
  return static_cast<uint8_t>((value * 255 + most / 2) / most);
}

void decode_row(const Header& header, Bytes row, uint8_t* to) {
  for (int64_t x = 0; x < header.width; ++x, to += 3) {
    const auto at = static_cast<size_t>(x) * static_cast<size_t>(header.bits);
    if (header.bits <= 8) {
      const uint32_t code = row[at / 8] >> (8 - header.bits - static_cast<int>(at % 8)) & ((1u << header.bits) - 1);
      std::copy_n(header.palette[code].begin(), 3, to);
      continue;
    }
    const uint32_t pixel = little(row, at / 8, static_cast<size_t>(header.bits) / 8);
    for (size_t c = 0; c < 3; ++c) {
      to[c] = header.bits == 24 ? static_cast<uint8_t>(pixel >> (16 - 8 * c)) : field(pixel, header.masks[c]);
    }
  }
}

// Runs of one byte, which is one pixel or two; a count of 0 is an escape.
class RunLength {
 public:
  RunLength(const Header& header, Bytes data, Canvas& canvas) : header_(header), data_(data), canvas_(canvas) {}

  bool run() {
    for (int64_t y = 0; y < canvas_.height(); ++y) {
      for (int64_t x = 0; x < canvas_.width(); ++x) std::copy_n(header_.palette[0].begin(), 3, canvas_.row(y) + 3 * x);
    }
    while (at_ + 1 < data_.size()) {
      const uint8_t count = data_[at_], value = data_[at_ + 1];
      at_ += 2;
      if (count > 0) {
        for (int i = 0; i < count; ++i) put(code(value, i));
      } else if (value == 0) {
        x_ = 0;
        ++y_;
      } else if (value == 1) {
        return true;
      } else if (value == 2) {
        if (at_ + 1 >= data_.size()) return false;
        x_ += data_[at_];
        y_ += data_[at_ + 1];
        at_ += 2;
      } else if (!copy(value)) {
        return false;
      }
    }
    return y_ >= canvas_.height();  // without a mark of the end it must be complete
  }

 private:
  uint8_t code(uint8_t byte, int i) const {
    if (header_.bits == 8) return byte;
    return i % 2 == 0 ? byte >> 4 : byte & 15;
  }
  // `count` pixels as they are, padded to an even number of bytes.
  bool copy(int count) {
    const size_t bytes = header_.bits == 8 ? static_cast<size_t>(count) : static_cast<size_t>(count + 1) / 2;
    if (data_.size() - at_ < bytes) return false;
    for (int i = 0; i < count; ++i) {
      put(code(data_[at_ + (header_.bits == 8 ? static_cast<size_t>(i) : static_cast<size_t>(i) / 2)], i));
    }
    at_ += bytes + bytes % 2;
    return true;
  }
  void put(uint8_t color) {
    if (x_ < canvas_.width() && y_ < canvas_.height())
      std::copy_n(header_.palette[color].begin(), 3, canvas_.row(canvas_.height() - 1 - y_) + 3 * x_);
    ++x_;
  }

  const Header& header_;
  Bytes data_;
  Canvas& canvas_;
  size_t at_ = 0;
  int64_t x_ = 0, y_ = 0;
};

}  // namespace

bool decode_bmp(Bytes file, Canvas& canvas) {
  const std::optional<Header> header = read_header(file);
  if (!header || header->pixels >= file.size()) return false;
  const Bytes data = file.subspan(header->pixels);
  const int64_t row = (header->width * header->bits + 31) / 32 * 4;
  const bool runs = header->compression == rle8 || header->compression == rle4;
  // The last row may lack its padding.
  const int64_t needed = (header->width * header->bits + 7) / 8;
  if (!runs && (static_cast<int64_t>(data.size()) - needed) / row < header->height - 1) return false;
  if (!runs && static_cast<int64_t>(data.size()) < needed) return false;
  canvas.start(header->width, header->height, 3, 0);
  if (runs) return RunLength(*header, data, canvas).run();
  for (int64_t y = 0; y < header->height; ++y) {
    const Bytes from = data.subspan(static_cast<size_t>(y * row), static_cast<size_t>(needed));
    decode_row(*header, from, canvas.row(header->top_down ? y : header->height - 1 - y));
  }
  return true;
}

}  // namespace tenon::ops
