#pragma once

#include "base/packed_storage.h"

namespace tenon {

// Storage for many buffers that live about as long as each other, each filled at once. Small ones are parts of larger
// blocks, which cost fewer page faults than memory for each, and lie in huge pages when there is enough of them.
class BlockStorage final : public PackedStorage {
 public:
  bool fills() const override { return true; }
  // Throws std::bad_alloc.
  PackedBuffer get(size_t bytes, FunctionRef<void(void*)> fill) override;

 private:
  std::shared_ptr<std::byte> block_;
  size_t size_ = 0, used_ = 0;
};

}  // namespace tenon
