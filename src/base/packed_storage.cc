#include "base/packed_storage.h"

#include <new>

#include "base/memory.h"

namespace tenon {
namespace {

class FreshStorage final : public PackedStorage {
 public:
  bool fills() const override { return true; }
  PackedBuffer get(size_t bytes, FunctionRef<void(void*)> fill) override { return make_packed(bytes, fill); }
};

}  // namespace

PackedBuffer make_packed(size_t bytes, FunctionRef<void(void*)> fill) {
  void* memory = allocate_memory(bytes);
  if (!memory) throw std::bad_alloc();
  std::shared_ptr<void> owner(memory, [bytes](void* data) { free_memory(data, bytes); });
  fill(memory);
  return {std::move(owner), bytes};
}

PackedStorage& fresh_storage() {
  static FreshStorage storage;
  return storage;
}

}  // namespace tenon
