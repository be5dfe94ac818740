#include "base/block_storage.h"

#include <algorithm>
#include <new>

#include "base/memory.h"
#include "base/rounding.h"

namespace tenon {
namespace {

// A buffer of this size has huge pages of its own.
constexpr size_t largest_block = 2 << 20;
constexpr size_t smallest_block = 32 << 10, cache_line = 64;

std::shared_ptr<std::byte> allocate_block(size_t bytes) {
  void* memory = allocate_memory(bytes);
  if (!memory) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [bytes](std::byte* data) { free_memory(data, bytes); }};
}

}  // namespace

PackedBuffer BlockStorage::get(size_t bytes, FunctionRef<void(void*)> fill) {
  if (bytes >= largest_block) return make_packed(bytes, fill);
  if (used_ + bytes > size_) {
    // Each block is twice as large as the one before, so that little of the last one stays unused.
    size_ = std::max(std::clamp(2 * size_, smallest_block, largest_block), bytes);
    block_ = allocate_block(size_);
    used_ = 0;
  }
  const std::shared_ptr<std::byte> memory(block_, block_.get() + used_);
  used_ = round_up(used_ + bytes, cache_line);
  fill(memory.get());
  return {memory, bytes};
}

}  // namespace tenon
