#include "session/arena_layout.h"

#include <algorithm>

#include "base/checked.h"

namespace tenon {
namespace {

int64_t rounded(int64_t bytes) {
  constexpr int64_t step = ArenaLayout::alignment;
  return checked_add(std::max<int64_t>(bytes, 1), step - 1) / step * step;
}

}  // namespace

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

}  // namespace tenon
