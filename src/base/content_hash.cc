#include "base/content_hash.h"

#include <bit>
#include <cstring>

namespace tenon {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

// The digits of the golden ratio and of the square root of 3: no patterns of their own.
constexpr uint64_t odd = 0x9e3779b97f4a7c15, other_odd = 0xbb67ae8584caa73b;
constexpr size_t lanes = 4, word = sizeof(uint64_t);

uint64_t mix(uint64_t value) {
  value ^= value >> 32;
  value *= odd;
  value ^= value >> 29;
  value *= odd;
  return value ^ (value >> 32);
}

// Multiplied before and after the rotation: no change of a few bits in one word undoes that of a few in another.
uint64_t step(uint64_t state, uint64_t next) { return std::rotl(state + next * odd, 31) * other_odd; }

uint64_t load(const std::byte* from, size_t count) {
  uint64_t value = 0;
  std::memcpy(&value, from, count);
  return value;
}

}  // namespace

uint64_t content_hash(std::span<const std::byte> bytes) {
  uint64_t states[lanes] = {1, 2, 3, 4};  // several, so that multiplications need not wait for each other
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= lanes * word; at += lanes * word, left -= lanes * word)
    for (size_t i = 0; i < lanes; ++i) states[i] = step(states[i], load(at + i * word, word));
  for (; left >= word; at += word, left -= word) states[0] = step(states[0], load(at, word));
  if (left > 0) states[1] = step(states[1], load(at, left));
  uint64_t result = bytes.size();
  for (uint64_t state : states) result = mix(result ^ mix(state));
  return result;
}

}  // namespace tenon
