// The first bytes of a compiled file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/content_hash.h"

namespace tenon {

constexpr std::string_view compiled_magic("\x89TENON\r\n", 8);
// Changes whenever a reader of another version could not read the file.
constexpr uint32_t compiled_format = 1;
constexpr int64_t contents_offset = 4096;

struct CompiledHeader {
  struct Part {
    uint64_t offset, bytes, hash;
  };

  char magic[8] = {'\x89', 'T', 'E', 'N', 'O', 'N', '\r', '\n'};
  uint32_t format = compiled_format, unused = 0;
  uint64_t file_bytes = 0;
  Part graph = {}, description = {};
  uint64_t hash = 0;  // own_hash() when it was written

  uint64_t own_hash() const {
    return content_hash(std::as_bytes(std::span(this, 1)).first(offsetof(CompiledHeader, hash)));
  }
};
static_assert(sizeof(CompiledHeader) == 80 && std::is_trivially_copyable_v<CompiledHeader>);

}  // namespace tenon
