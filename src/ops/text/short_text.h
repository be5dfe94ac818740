// Words of short texts, found without a branch for each character: no processor foresees where words end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace tenon::ops {

static_assert(std::endian::native == std::endian::little, "bytes are read as they lie in memory");

inline constexpr size_t short_text_size = 16;

// Whether the memory of a text may be read up to that size.
inline bool is_short(const std::string& text) {
  return text.size() <= short_text_size && text.capacity() + 1 >= short_text_size;
}

// One bit for each byte: where words of other than white space begin, and where they end, behind their last one.
struct WordBounds {
  uint32_t begins = 0, ends = 0;
  int count() const { return std::popcount(begins); }
};

namespace short_text {

inline constexpr uint64_t each_byte = 0x0101010101010101, highest_bits = 0x80 * each_byte;

// The highest bits of eight bytes, side by side.
inline uint32_t gather(uint64_t bytes) {
  return static_cast<uint32_t>(((bytes & highest_bits) >> 7) * 0x0102040810204080 >> 56);
}

// In the highest bit of each byte below 0x80: whether it is white space, from 0x09 to 0x0D or from 0x1C to 0x20.
inline uint64_t white_space(uint64_t bytes) {
  const auto is_from = [bytes](uint64_t least) { return (bytes | highest_bits) - least * each_byte; };
  return (is_from(0x09) & ~is_from(0x0E)) | (is_from(0x1C) & ~is_from(0x21));
}

}  // namespace short_text

// `bytes` are short_text_size ones, of which the text is the first `size`. False if it is more than ASCII.
inline bool find_words(const char* bytes, size_t size, WordBounds& words) {
  uint64_t low, high;
  std::memcpy(&low, bytes, 8);
  std::memcpy(&high, bytes + 8, 8);
  const auto gather_both = [](uint64_t a, uint64_t b) { return short_text::gather(a) | short_text::gather(b) << 8; };
  const uint32_t text = (1u << size) - 1;
  const uint32_t in_words = text & ~gather_both(short_text::white_space(low), short_text::white_space(high));
  words.begins = in_words & ~(in_words << 1);
  words.ends = ~in_words & in_words << 1;
  return (gather_both(low, high) & text) == 0;
}

}  // namespace tenon::ops
