// Writes that the core sends to memory without reading there first: whole cache lines, filled from the first byte to
// the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tenon {

using Bytes16 [[gnu::vector_size(16)]] = uint32_t;

inline Bytes16 load_16(const void* from) {
  Bytes16 v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// Four vectors, one after the other. The compiler would change the order of stores.
inline void store_line(void* to, Bytes16 a, Bytes16 b, Bytes16 c, Bytes16 d) {
#ifdef __aarch64__
  asm volatile("stp %q1, %q2, [%0]\n\tstp %q3, %q4, [%0, #32]" ::"r"(to), "w"(a), "w"(b), "w"(c), "w"(d) : "memory");
#else
  auto* target = static_cast<char*>(to);
  std::memcpy(target, &a, sizeof a);
  std::memcpy(target + 16, &b, sizeof b);
  std::memcpy(target + 32, &c, sizeof c);
  std::memcpy(target + 48, &d, sizeof d);
#endif
}

// memcpy for rows, whose end that writes first. `next`, where it is not null, is as long and copied soon: it is brought
// into the second cache meanwhile. Of long rows x86_64 finds all but the first lines by itself, and sooner.
inline void copy_in_order(void* to, const void* from, size_t bytes, const void* next = nullptr) {
  constexpr size_t line = 64;
#ifndef __aarch64__
  for (size_t i = 0; next && i < bytes && i < 4 * line; i += line)
    __builtin_prefetch(static_cast<const char*>(next) + i);
  if (bytes > 0) std::memcpy(to, from, bytes);
#else
  constexpr size_t most_bytes = 16 << 10;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  const auto fetch = [ahead = static_cast<const char*>(next)](size_t at) {
    if (ahead) __builtin_prefetch(ahead + at, 0, 2);
  };
  if (bytes > 0 && bytes <= most_bytes) fetch(bytes - 1);  // a line of its own if rows do not start with one
  size_t at = 0;
  for (; bytes <= most_bytes && at + line <= bytes; at += line) {
    fetch(at);
    store_line(target + at, load_16(source + at), load_16(source + at + 16), load_16(source + at + 32),
               load_16(source + at + 48));
  }
  for (size_t i = at; bytes <= most_bytes && i < bytes; i += line) fetch(i);
  if (at < bytes) std::memcpy(target + at, source + at, bytes - at);
#endif
}

}  // namespace tenon
