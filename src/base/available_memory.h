#pragma once

#include <cstdint>

namespace tenon {

// Bytes this process can still hope to get: the smaller of the container's limit and what the machine has available.
int64_t available_memory();

}  // namespace tenon
