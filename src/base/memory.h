// Memory for tensors and kernels. Large pieces come straight from the system, which gets them back the moment they are
// freed; malloc does not promise that.
#pragma once

#include <cstddef>

namespace tenon {

// Memory aligned to cache lines; large pieces lie in huge pages where the system has them. Null when there is none.
void* allocate_memory(size_t bytes);
// `bytes` as they were allocated.
void free_memory(void* memory, size_t bytes);

// Lets the system have the pages that lie wholly inside. What was in them is lost, or read again from their file.
void release_pages(const void* memory, size_t bytes);

}  // namespace tenon
