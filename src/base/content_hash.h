#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon {

// A number that tells contents apart: other bytes have another one, but for an accident of one in 2^64. It is the same
// on every machine, and no protection against someone who wants it to be equal.
uint64_t content_hash(std::span<const std::byte> bytes);

}  // namespace tenon
