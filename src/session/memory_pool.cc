#include "session/memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "base/fail.h"
#include "base/memory.h"

namespace tenon {
namespace {

// Some sizes per power of two, so that a block serves requests of similar size with little waste.
int64_t block_size(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 64);
  if (bytes > int64_t{1} << 60) return bytes;
  const int64_t sizes = bytes < 1 << 20 ? 4 : 16;
  int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / sizes;
  step = std::max<int64_t>(step, 64);
  return (bytes + step - 1) / step * step;
}

}  // namespace

struct MemoryPool::State {
  State(int64_t most, MemoryUse use) : limit(most), keeps_always(use == MemoryUse::normal) {}
  ~State() { trim(); }

  void* take(int64_t size) {
    std::lock_guard lock(mutex);
    if (size > limit - in_use) {
      fail(ErrorCode::out_of_memory, "{} bytes are needed, {} of the limit of {} are in use", size, in_use, limit);
    }
    in_use += size;
    peak = std::max(peak, in_use);
    auto found = free_blocks.find(size);
    if (found == free_blocks.end() || found->second.empty()) return nullptr;
    void* block = found->second.back();
    found->second.pop_back();
    cached -= size;
    return block;
  }

  void give_back(void* block, int64_t size) {
    {
      std::lock_guard lock(mutex);
      in_use -= size;
      // Never keep more than was once needed at the same time.
      if ((keeps_always || runs > 0) && in_use + cached + size <= peak) {
        free_blocks[size].push_back(block);
        cached += size;
        return;
      }
    }
    free_memory(block, static_cast<size_t>(size));
  }

  void cancel(int64_t size) {
    std::lock_guard lock(mutex);
    in_use -= size;
  }

  void trim() {
    std::lock_guard lock(mutex);
    free_kept();
    peak = in_use;
  }

  void begin_run() {
    if (keeps_always) return;
    std::lock_guard lock(mutex);
    ++runs;
  }
  void end_run() {
    if (keeps_always) return;
    std::lock_guard lock(mutex);
    if (--runs == 0) free_kept();
  }

  // The mutex must be held.
  void free_kept() {
    for (auto& [size, blocks] : free_blocks) {
      for (void* block : blocks) free_memory(block, static_cast<size_t>(size));
    }
    free_blocks.clear();
    cached = 0;
  }

  std::mutex mutex;
  std::map<int64_t, std::vector<void*>> free_blocks;
  int64_t limit, in_use = 0, cached = 0, peak = 0;
  const bool keeps_always;
  int runs = 0;  // that go on, unless blocks are always kept
};

MemoryPool::MemoryPool(int64_t limit, MemoryUse use) : state_(std::make_shared<State>(limit, use)) {}
MemoryPool::~MemoryPool() { state_->trim(); }

std::shared_ptr<void> MemoryPool::allocate(int64_t bytes) {
  if (bytes < 0) fail(ErrorCode::overflow, "{} bytes were asked for", bytes);
  int64_t size = block_size(bytes);
  void* block = state_->take(size);
  if (!block) {
    block = allocate_memory(static_cast<size_t>(size));
    if (!block) {
      state_->cancel(size);
      fail(ErrorCode::out_of_memory, "the system has no memory for {} bytes", bytes);
    }
  }
  return {block, [state = state_, size](void* b) { state->give_back(b, size); }};
}

SessionMemory MemoryPool::statistics() const {
  std::lock_guard lock(state_->mutex);
  SessionMemory result;
  result.in_use = state_->in_use;
  result.cached = state_->cached;
  result.peak = state_->peak;
  result.limit = state_->limit;
  return result;
}

void MemoryPool::trim() { state_->trim(); }

MemoryPool::Run::Run(MemoryPool& pool) : state_(*pool.state_) { state_.begin_run(); }
MemoryPool::Run::~Run() { state_.end_run(); }

}  // namespace tenon
