#include "session/arena_layout.h"

#include <algorithm>

#include "base/checked.h"

namespace tenon {

int64_t ArenaLayout::rounded(int64_t bytes) {
  return checked_add(std::max<int64_t>(bytes, 1), alignment - 1) / alignment * alignment;
}

int64_t ArenaLayout::allocate(int64_t bytes) {
  const int64_t size = rounded(bytes);
  auto best = gaps_.end();
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->bytes >= size && (best == gaps_.end() || gap->bytes < best->bytes)) best = gap;
  }
  if (best != gaps_.end()) {
    const int64_t offset = best->offset;
    best->offset += size;
    best->bytes -= size;
    if (best->bytes == 0) gaps_.erase(best);
    return offset;
  }
  // A gap at the end grows.
  const bool ends_in_gap = !gaps_.empty() && gaps_.back().offset + gaps_.back().bytes == end_;
  const int64_t offset = ends_in_gap ? gaps_.back().offset : end_;
  if (ends_in_gap) gaps_.pop_back();
  end_ = checked_add(offset, size);
  return offset;
}

void ArenaLayout::release(int64_t offset, int64_t bytes) {
  Gap gap{offset, rounded(bytes)};
  auto next = std::ranges::lower_bound(gaps_, offset, {}, &Gap::offset);
  if (next != gaps_.end() && gap.offset + gap.bytes == next->offset) {
    gap.bytes += next->bytes;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin() && std::prev(next)->offset + std::prev(next)->bytes == gap.offset) {
    std::prev(next)->bytes += gap.bytes;
  } else {
    gaps_.insert(next, gap);
  }
}

int64_t lay_out_by_size(std::span<ArenaBlock> blocks) {
  std::vector<ArenaBlock*> by_size, by_offset;
  for (ArenaBlock& block : blocks) by_size.push_back(&block);
  std::ranges::stable_sort(by_size, std::ranges::greater{}, &ArenaBlock::bytes);
  int64_t total = 0;
  for (ArenaBlock* block : by_size) {
    const int64_t size = ArenaLayout::rounded(block->bytes);
    int64_t end = 0, best = -1, best_gap = 0;
    for (const ArenaBlock* placed : by_offset) {
      if (placed->last_step < block->first_step || placed->first_step > block->last_step) continue;
      const int64_t gap = placed->offset - end;
      if (gap >= size && (best < 0 || gap < best_gap)) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, placed->offset + ArenaLayout::rounded(placed->bytes));
    }
    block->offset = best < 0 ? end : best;
    total = std::max(total, checked_add(block->offset, size));
    by_offset.insert(std::ranges::upper_bound(by_offset, block->offset, {}, &ArenaBlock::offset), block);
  }
  return total;
}

}  // namespace tenon
