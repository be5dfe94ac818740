// Large pieces of memory, straight from the system: it gets them back the moment they are freed, which malloc does not
// promise.
#pragma once

#include <cstddef>

namespace tenon {

// Pieces from this size on are worth the system calls.
inline constexpr size_t least_page_bytes = 256 << 10;

// Zeroed memory; from 2 MB on in huge pages where the system has them. Null when there is none.
void* allocate_pages(size_t bytes);
// `bytes` as they were allocated.
void free_pages(void* memory, size_t bytes);

}  // namespace tenon
